/* Ranges of NVTX, by which a profiler such as Nsight Systems shows what a thread does beside what
 * its GPU does.
 *
 * The profiler names a library in the environment (NVTX_INJECTION64_PATH), which NVTX loads at the
 * first range. Without one nothing is loaded, and nobody asks for ranges. A build without NVTX's
 * headers has none. */
#ifndef COMMON_TRACE_TRACE_RANGES_H
#define COMMON_TRACE_TRACE_RANGES_H

#include "common/trace/trace_kinds.h"

#include <stdbool.h>
#include <stdint.h>

/* Whether there is a profiler that takes ranges. */
bool trace_ranges_are_wanted(void);

/* Begins a range on this thread: "backward 3", or without a bucket (TRACE_NO_BUCKET) "forward". */
void trace_ranges_push(enum trace_kind kind, uint32_t bucket);

/* Ends the last one that has begun on this thread. */
void trace_ranges_pop(void);

#endif
