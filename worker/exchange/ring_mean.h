/* Takes the mean of several workers' values, added up in the order of a ring, whichever worker does
 * it. */
#ifndef WORKER_EXCHANGE_RING_MEAN_H
#define WORKER_EXCHANGE_RING_MEAN_H

#include "common/vector/layout.h"

#include <stdint.h>

/* Takes the mean of `part`, which lies in the bucket. vectors[k] has rank k's values of the part
 * and becomes the mean. There are `world` of them, at most ALL_REDUCE_SHARED_MAX, and no two
 * overlap. The sum of chunk c of N is taken in the order of ranks c, c+1, ... */
void ring_mean(struct span bucket, struct span part, float *const *vectors, uint32_t world);

#endif
