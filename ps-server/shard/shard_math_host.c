/* The arithmetic of a shard in memory of the host, block by block. */
#include "common/base/memory.h"
#include "common/vector/vector.h"
#include "ps-server/shard/shard_math.h"

#include <string.h>

// Summed, scaled and applied at once, so that the values stay in the cache. In floats.
#define BLOCK_FLOATS 4096

/* Sums one chunk's piece of the part over the contributors and applies it, block by block. */
static void update_piece(struct shard *shard, const struct part *part, struct span piece,
                         uint32_t contributor_count, uint64_t update, double rate)
{
    const uint32_t *ranks = shard->contributors;
    const float mean_factor = 1.0f / (float)contributor_count;
    float sum[BLOCK_FLOATS];
    for (uint64_t done = 0; done < piece.count;) {
        uint64_t rest = piece.count - done;
        uint64_t count = rest < BLOCK_FLOATS ? rest : BLOCK_FLOATS;
        uint64_t at = piece.offset + done - part->span.offset;
        const float *first = part->values[ranks[0]] + at;
        if (contributor_count == 1) {
            memcpy(sum, first, count * sizeof(float));
        } else {
            vector_sum(sum, first, part->values[ranks[1]] + at, count);
        }
        for (uint32_t i = 2; i < contributor_count; i++) {
            vector_add(sum, part->values[ranks[i]] + at, count);
        }
        if (contributor_count > 1) {
            vector_scale(sum, mean_factor, count);
        }
        float *params = shard->params + part->offset + at;
        if (shard->config.hands_back_means) {
            memcpy(params, sum, count * sizeof(float));
        } else {
            optimizer_apply(shard->optimizer, (struct span){part->offset + at, count}, params, sum,
                            update, rate);
        }
        done += count;
    }
}

static void apply_mean(struct shard *shard, const struct unit *unit, uint64_t update, double rate)
{
    uint32_t workers = shard->config.workers;
    for (uint32_t chunk = 0; chunk < workers; chunk++) {
        uint32_t contributor_count = shard_list_contributors(shard, unit, chunk);
        for (uint32_t i = unit->first; i < unit->end; i++) {
            const struct part *part = &shard->parts[i];
            struct span bucket = shard->config.layout.buckets[i];
            struct span piece = span_intersect(part->span, span_part(bucket, workers, chunk));
            if (part->span.count > 0) {
                update_piece(shard, part, piece, contributor_count, update, rate);
            }
        }
    }
}

/* The gradient of a block as the remedy leaves it: in `scratch`, or where it was. */
static const float *remedied(struct shard *shard, uint32_t rank, uint64_t at, const float *gradient,
                             size_t count, float *scratch)
{
    const struct remedy *remedy = shard->config.remedy;
    if (remedy == NULL || remedy->adjust == NULL) {
        return gradient;
    }
    const struct remedy_block block = {
        .gradient = gradient,
        .params = shard->params + at,
        .read = shard->reads != NULL ? shard->reads + rank * shard->value_count + at : NULL,
        .squares = shard->squares != NULL ? shard->squares + at : NULL,
        .result = scratch,
        .count = count,
        .staleness = shard->units[0].seats[rank].staleness,
        .lambda = shard->config.remedy_lambda,
    };
    remedy->adjust(&block);
    return scratch;
}

static void take_part(struct shard *shard, const struct part *part, uint32_t rank, uint64_t update,
                      double rate)
{
    float scratch[BLOCK_FLOATS];
    for (uint64_t done = 0; done < part->span.count;) {
        uint64_t rest = part->span.count - done;
        uint64_t count = rest < BLOCK_FLOATS ? rest : BLOCK_FLOATS;
        uint64_t at = part->offset + done;
        const float *gradient =
            remedied(shard, rank, at, part->values[rank] + done, count, scratch);
        if (shard->sum != NULL) {
            vector_add(shard->sum + at, gradient, count);
        } else {
            optimizer_apply(shard->optimizer, (struct span){at, count}, shard->params + at,
                            gradient, update, rate);
        }
        done += count;
    }
}

static void apply_sum(struct shard *shard, uint32_t count, uint64_t update, double rate)
{
    vector_scale(shard->sum, 1.0f / (float)count, shard->value_count);
    optimizer_apply(shard->optimizer, (struct span){0, shard->value_count}, shard->params,
                    shard->sum, update, rate);
    memset(shard->sum, 0, shard->value_count * sizeof(float));
}

static enum status begin(struct shard *shard)
{
    return optimizer_create(shard->config.optimizer, &shard->config.settings, shard->value_count,
                            &shard->optimizer);
}

static void end(struct shard *shard)
{
    optimizer_destroy(shard->optimizer);
}

static enum status create(const struct shard *shard, uint64_t count, float **ret_vector)
{
    (void)shard;
    *ret_vector = memory_create_large(count * sizeof(float));
    return *ret_vector != NULL ? STATUS_OK : STATUS_NO_MEMORY;
}

static void destroy(const struct shard *shard, float *vector, uint64_t count)
{
    (void)shard;
    memory_destroy_large(vector, count * sizeof(float));
}

static void copy(struct shard *shard, float *to, const float *from, uint64_t count)
{
    (void)shard;
    memcpy(to, from, count * sizeof(float));
}

static float *state(const struct shard *shard, uint32_t index)
{
    return optimizer_state(shard->optimizer, index);
}

static void finish(struct shard *shard)
{
    (void)shard; // it was done at once
}

const struct shard_math shard_math_host = {
    .begin = begin,
    .end = end,
    .create = create,
    .destroy = destroy,
    .copy = copy,
    .apply_mean = apply_mean,
    .take_part = take_part,
    .apply_sum = apply_sum,
    .state = state,
    .finish = finish,
};
