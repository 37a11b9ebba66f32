/* Names of algorithms, and when which is faster. */
#include "common/all_reduce.h"

#define NS_PER_SECOND 1e9

static const char *const names[ALL_REDUCE_COUNT] = {
    [ALL_REDUCE_RING] = "ring",
    [ALL_REDUCE_DIRECT] = "direct",
    [ALL_REDUCE_SHARED] = "direct in shared memory",
};

const char *all_reduce_name(enum all_reduce algorithm)
{
    return names[algorithm];
}

uint64_t all_reduce_direct_bytes(uint32_t workers, uint64_t latency_ns, uint64_t bandwidth)
{
    // 2(N-1) latencies against 2(N-1)/N S / bandwidth.
    double bytes = 10.0 * workers * (double)latency_ns / NS_PER_SECOND * (double)bandwidth;
    return bytes < (double)(UINT64_C(1) << 40) ? (uint64_t)bytes : UINT64_C(1) << 40;
}
