/* Adds up values chunk by chunk in the order of the ring. A part may begin within a chunk. */
#include "worker/exchange/ring_mean.h"

#include "common/job/all_reduce.h"
#include "common/vector/vector.h"

#include <assert.h>

void ring_mean(struct span bucket, struct span part, float *const *vectors, uint32_t world)
{
    assert(world <= ALL_REDUCE_SHARED_MAX);
    for (uint32_t c = 0; c < world; c++) {
        struct span piece = span_intersect(span_part(bucket, world, c), part);
        if (piece.count == 0) {
            continue;
        }
        float *ordered[ALL_REDUCE_SHARED_MAX];
        for (uint32_t k = 0; k < world; k++) {
            ordered[k] = vectors[(c + k) % world] + (piece.offset - part.offset);
        }
        vector_mean(ordered, world, 1.0f / (float)world, piece.count);
    }
}
