/* How a bucket that is summed in shared memory is cut into blocks. Arithmetic only. */
#ifndef WORKER_EXCHANGE_SHARED_BLOCK_PLAN_H
#define WORKER_EXCHANGE_SHARED_BLOCK_PLAN_H

#include <stdint.h>

// The floats of a block: few enough to stay in a cache while its mean is written, and enough to be
// worth taking. Small buckets have smaller blocks, so that there is one for each worker.
#define BLOCK_FLOATS       (UINT64_C(16) * 1024)
#define SMALL_BLOCK_FLOATS (UINT64_C(2) * 1024)
#define SMALL_BUCKET       (8 * BLOCK_FLOATS)

/* The floats of each block of a bucket; the last one may have less. */
static inline uint64_t block_plan_floats(uint64_t bucket_floats)
{
    return bucket_floats <= SMALL_BUCKET ? SMALL_BLOCK_FLOATS : BLOCK_FLOATS;
}

static inline uint32_t block_plan_count(uint64_t bucket_floats)
{
    uint64_t block = block_plan_floats(bucket_floats);
    return (uint32_t)((bucket_floats + block - 1) / block);
}

#endif
