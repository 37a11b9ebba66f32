/* Stands for NVTX in builds without it: no profiler is told anything. */
#include "common/trace/trace_ranges.h"

bool trace_ranges_are_wanted(void)
{
    return false;
}

void trace_ranges_push(enum trace_kind kind, uint32_t bucket)
{
    (void)kind;
    (void)bucket;
}

void trace_ranges_pop(void)
{
}
