/* Hands ranges to NVTX. */
#include "common/trace/trace.h"
#include "common/trace/trace_ranges.h"

#include <nvtx3/nvToolsExt.h>
#include <stdio.h>
#include <stdlib.h>

#define NAME_BYTES 64

bool trace_ranges_are_wanted(void)
{
    // NOLINTNEXTLINE(concurrency-mt-unsafe): nobody sets it
    const char *library = getenv("NVTX_INJECTION64_PATH");
    return library != NULL && library[0] != '\0';
}

void trace_ranges_push(enum trace_kind kind, uint32_t bucket)
{
    char name[NAME_BYTES];
    if (bucket == TRACE_NO_BUCKET) {
        nvtxRangePushA(trace_kinds[kind].name);
        return;
    }
    snprintf(name, sizeof(name), "%s %u", trace_kinds[kind].name, bucket);
    nvtxRangePushA(name);
}

void trace_ranges_pop(void)
{
    nvtxRangePop();
}
