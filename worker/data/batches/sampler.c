/* Permutations of the samples, and the slices of them that make batches. */
#include "worker/data/batches/sampler.h"

#include "common/base/random.h"
#include "common/vector/layout.h"

#include <assert.h>
#include <stdlib.h>

struct sampler {
    struct batcher_options options;
    struct span part; // samples that this worker may take
    uint64_t step_count;
    uint32_t *order; // (part.count) the samples of `part`, shuffled for `epoch`; training only
    uint64_t epoch;
    uint64_t shuffle_stream; // keeps the shuffles of disjoint parts apart
};

/* The part of `rank` in every global batch: `offset` in it, `count` samples. */
static struct span slice_of(const struct batcher_options *options)
{
    return span_part((struct span){0, options->global_batch}, options->world, options->rank);
}

static struct span local_part(const struct batcher_options *options, uint64_t step_count)
{
    uint64_t left_over = options->sample_count - step_count * options->global_batch;
    struct span slice = slice_of(options);
    struct span extra = span_part((struct span){0, left_over}, options->world, options->rank);
    return (struct span){
        .offset = step_count * slice.offset + extra.offset,
        .count = step_count * slice.count + extra.count,
    };
}

static void plan_training(struct sampler *sampler)
{
    const struct batcher_options *options = &sampler->options;
    assert(options->global_batch > 0 && options->global_batch <= options->sample_count);
    assert(slice_of(options).count <= options->batch_size);
    sampler->step_count = options->sample_count / options->global_batch;
    sampler->part = (struct span){0, options->sample_count};
    if (options->is_local) {
        sampler->part = local_part(options, sampler->step_count);
        sampler->shuffle_stream = options->rank;
    }
}

static void plan_evaluation(struct sampler *sampler)
{
    const struct batcher_options *options = &sampler->options;
    sampler->part =
        span_part((struct span){0, options->sample_count}, options->world, options->rank);
    sampler->step_count = (sampler->part.count + options->batch_size - 1) / options->batch_size;
}

/* Fisher and Yates's shuffle, from the same start for every epoch, so that an epoch's order depends
 * on no other. */
static void shuffle(struct sampler *sampler, uint64_t epoch)
{
    uint32_t *order = sampler->order;
    for (uint64_t i = 0; i < sampler->part.count; i++) {
        order[i] = (uint32_t)(sampler->part.offset + i);
    }
    struct random_sequence sequence = {
        random_key(sampler->options.seed, RANDOM_SHUFFLE, epoch, sampler->shuffle_stream)};
    for (uint64_t i = sampler->part.count - 1; i > 0; i--) {
        uint64_t j = random_below(&sequence, i + 1);
        uint32_t index = order[i];
        order[i] = order[j];
        order[j] = index;
    }
    sampler->epoch = epoch;
}

enum status sampler_create(const struct batcher_options *options, struct sampler **ret_sampler)
{
    assert(options->rank < options->world && options->batch_size > 0);
    assert(options->sample_count > 0 && options->sample_count <= UINT32_MAX);
    struct sampler *sampler = calloc(1, sizeof(*sampler));
    if (sampler == NULL) {
        return STATUS_NO_MEMORY;
    }
    sampler->options = *options;
    if (!options->is_training) {
        plan_evaluation(sampler);
        *ret_sampler = sampler;
        return STATUS_OK;
    }
    plan_training(sampler);
    sampler->order = calloc(sampler->part.count, sizeof(*sampler->order));
    if (sampler->order == NULL) {
        sampler_destroy(sampler);
        return STATUS_NO_MEMORY;
    }
    shuffle(sampler, 0);
    *ret_sampler = sampler;
    return STATUS_OK;
}

void sampler_destroy(struct sampler *sampler)
{
    if (sampler == NULL) {
        return;
    }
    free(sampler->order);
    free(sampler);
}

struct span sampler_part(const struct sampler *sampler)
{
    return sampler->part;
}

uint64_t sampler_step_count(const struct sampler *sampler)
{
    return sampler->step_count;
}

/* The places of a step in the shuffled order: one global order for all workers, or this worker's.
 */
static struct span places_of(const struct sampler *sampler, uint64_t step)
{
    const struct batcher_options *options = &sampler->options;
    struct span slice = slice_of(options);
    if (options->is_local) {
        return (struct span){step * slice.count, slice.count};
    }
    return (struct span){step * options->global_batch + slice.offset, slice.count};
}

static void take_in_order(const struct sampler *sampler, uint64_t step, uint32_t *ret_indices,
                          uint32_t *ret_count)
{
    uint64_t begin = step * sampler->options.batch_size;
    uint64_t left = sampler->part.count - begin;
    uint32_t count =
        left < sampler->options.batch_size ? (uint32_t)left : sampler->options.batch_size;
    for (uint32_t i = 0; i < count; i++) {
        ret_indices[i] = (uint32_t)(sampler->part.offset + begin + i);
    }
    *ret_count = count;
}

void sampler_take(struct sampler *sampler, uint64_t epoch, uint64_t step, uint32_t *ret_indices,
                  uint32_t *ret_count)
{
    assert(step < sampler->step_count);
    if (!sampler->options.is_training) {
        take_in_order(sampler, step, ret_indices, ret_count);
        return;
    }
    if (epoch != sampler->epoch) {
        shuffle(sampler, epoch);
    }
    struct span places = places_of(sampler, step);
    for (uint32_t i = 0; i < places.count; i++) {
        ret_indices[i] = sampler->order[places.offset + i];
    }
    *ret_count = (uint32_t)places.count;
}
