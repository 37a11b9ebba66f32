/* The mean of several workers' values, added up in the order of a ring, whoever does it. */
#ifndef WORKER_EXCHANGE_RING_MEAN_H
#define WORKER_EXCHANGE_RING_MEAN_H

#include "common/vector/layout.h"

#include <stdint.h>

/* Of `part`, which lies in the bucket. vectors[k]: rank k's values of the part, of `world` at most
 * ALL_REDUCE_SHARED_MAX workers; each becomes the mean. No two overlap. The sum of chunk c of N is
 * taken in the order of ranks c, c+1, ... */
void ring_mean(struct span bucket, struct span part, float *const *vectors, uint32_t world);

#endif
