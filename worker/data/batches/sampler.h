/* Which samples make up each batch of a worker; batcher.h says by which rule.
 *
 * With is_local, the worker `rank` keeps to the samples of its steps: of an epoch of S steps, the
 * slices of size b that part `rank` takes of each global batch make S*b samples, and these lie
 * together; what is left over of all samples is dealt out likewise. So every worker has the same
 * number of steps, and together they have every sample.
 *
 * Decides only: it reads no sample. One thread at a time. */
#ifndef WORKER_DATA_BATCHES_SAMPLER_H
#define WORKER_DATA_BATCHES_SAMPLER_H

#include "common/base/status.h"
#include "common/vector/layout.h"
#include "worker/data/batches/batcher.h"

#include <stdint.h>

struct sampler;

/* options->sample_count is the number of samples there are: not 0 here, below 2^32, and for
 * training at least the global batch. */
enum status sampler_create(const struct batcher_options *options, struct sampler **ret_sampler);
void sampler_destroy(struct sampler *sampler); // NULL is fine

/* The samples that this worker may take. */
struct span sampler_part(const struct sampler *sampler);

/* Batches of an epoch (evaluation: of the one pass; 0 if this worker's part is empty). */
uint64_t sampler_step_count(const struct sampler *sampler);

/* Writes the samples of a step, and how many they are: in training those of the worker's part of
 * the global batch, which is at most batch_size; in an evaluation batch_size, but for the last
 * batch. step is below sampler_step_count. A new epoch costs a shuffle. */
void sampler_take(struct sampler *sampler, uint64_t epoch, uint64_t step, uint32_t *ret_indices,
                  uint32_t *ret_count);

#endif
