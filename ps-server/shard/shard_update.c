/* Sums up gradients, and updates the parameters. */
#include "common/vector/vector.h"
#include "ps-server/shard/shard_state.h"

#include <stdbool.h>
#include <string.h>

// Summed, scaled and applied at once, so that the values stay in the cache. In floats.
#define BLOCK_FLOATS 4096

/* The number of the next update in the job, from 1. */
static uint64_t number_of_update(const struct shard *shard, const struct unit *unit)
{
    return shard->config.updates_before + unit->version + 1;
}

/* The ranks whose pushes are whole, in ring order: from `chunk` on. How many there are. */
static uint32_t list_contributors(struct shard *shard, const struct unit *unit, uint32_t chunk)
{
    uint32_t workers = shard->config.workers, count = 0;
    for (uint32_t i = 0; i < workers; i++) {
        uint32_t rank = chunk + i < workers ? chunk + i : chunk + i - workers;
        if (unit->seats[rank].part_pushes == unit->part_count) {
            shard->contributors[count++] = rank;
        }
    }
    return count;
}

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
        optimizer_apply(shard->optimizer, (struct span){part->offset + at, count},
                        shard->params + part->offset + at, sum, update, rate);
        done += count;
    }
}

static void release_push(struct part *part, uint32_t rank)
{
    if (part->values[rank] != NULL) {
        envelope_release(&part->pushes[rank]);
        part->values[rank] = NULL;
    }
}

void shard_drop_push(struct shard *shard, struct unit *unit, uint32_t rank)
{
    for (uint32_t i = unit->first; i < unit->end; i++) {
        release_push(&shard->parts[i], rank);
    }
    unit->seats[rank].part_pushes = 0;
    unit->seats[rank].clock++;
    unit->handled++;
}

/* The step of the job whose rate counts. Where workers are unsynchronised it follows the samples
 * that were seen: N gradients are what a step of ps-sync has. */
static uint64_t step_of(const struct shard *shard, const struct unit *unit)
{
    const struct shard_config *config = &shard->config;
    uint64_t made =
        shard_is_unsynchronised(shard) ? unit->applied / config->workers : unit->version;
    return config->marks.first + made;
}

void shard_update_from_all(struct shard *shard, struct unit *unit)
{
    uint32_t workers = shard->config.workers, contributor_count = 0;
    double rate = schedule_rate(&shard->config.schedule, step_of(shard, unit));
    uint64_t update = number_of_update(shard, unit);
    for (uint32_t chunk = 0; chunk < workers; chunk++) {
        contributor_count = list_contributors(shard, unit, chunk);
        for (uint32_t i = unit->first; i < unit->end; i++) {
            const struct part *part = &shard->parts[i];
            struct span bucket = shard->config.layout.buckets[i];
            struct span piece = span_intersect(part->span, span_part(bucket, workers, chunk));
            if (part->span.count > 0) {
                update_piece(shard, part, piece, contributor_count, update, rate);
            }
        }
    }
    for (uint32_t i = 0; i < contributor_count; i++) {
        unit->seats[shard->contributors[i]].rate = rate;
        shard_drop_push(shard, unit, shard->contributors[i]);
    }
    if (shard_is_unsynchronised(shard)) {
        unit->applied += workers;
        staleness_add_many(&shard->staleness, 0, contributor_count);
    }
    unit->version++;
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

/* One part of a push: into the sum, or straight into the parameters. */
static void take_part(struct shard *shard, const struct unit *unit, const struct part *part,
                      uint32_t rank, double rate)
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
                            gradient, number_of_update(shard, unit), rate);
        }
        done += count;
    }
}

/* An update from the mean of what was summed. */
static void apply_sum(struct shard *shard, struct unit *unit, double rate)
{
    vector_scale(shard->sum, 1.0f / (float)unit->summed, shard->value_count);
    optimizer_apply(shard->optimizer, (struct span){0, shard->value_count}, shard->params,
                    shard->sum, number_of_update(shard, unit), rate);
    memset(shard->sum, 0, shard->value_count * sizeof(float));
}

/* The rate of an update, and the momentum to go with it. */
static double prepare_rate(struct shard *shard, const struct unit *unit)
{
    const struct shard_config *config = &shard->config;
    double rate = schedule_rate(&config->schedule, step_of(shard, unit)), momentum, factor;
    if (config->remedy == NULL || !config->remedy->corrects_momentum) {
        return rate;
    }
    remedy_momentum(config->settings.momentum, staleness_mean(&shard->staleness), &momentum,
                    &factor);
    optimizer_set_momentum(shard->optimizer, momentum);
    return factor * rate;
}

static void apply_push(struct shard *shard, struct unit *unit, uint32_t rank)
{
    const struct shard_config *config = &shard->config;
    struct seat *seat = &unit->seats[rank];
    seat->staleness = unit->version - seat->read_version;
    staleness_add(&shard->staleness, seat->staleness);
    double rate = prepare_rate(shard, unit);
    seat->rate = rate;
    for (uint32_t i = unit->first; i < unit->end; i++) {
        take_part(shard, unit, &shard->parts[i], rank, rate);
    }
    shard_drop_push(shard, unit, rank);
    unit->applied++;
    unit->summed++;
    bool is_whole =
        unit->summed == config->gradients_per_update || unit->applied == shard->gradient_total;
    if (is_whole) {
        if (shard->sum != NULL) {
            apply_sum(shard, unit, rate);
        }
        unit->summed = 0;
        unit->version++;
        shard_keep_version(shard, unit);
    }
}

void shard_drop_late(struct shard *shard, struct unit *unit, uint32_t rank)
{
    unit->seats[rank].is_late = true;
    shard_drop_push(shard, unit, rank);
    shard->late_count++;
}

void shard_take_push(struct shard *shard, struct unit *unit, uint32_t rank)
{
    if (shard_is_final(shard, unit)) {
        shard_drop_late(shard, unit, rank);
        return;
    }
    apply_push(shard, unit, rank);
    shard_pass_marks(shard, unit);
}

void shard_keep_read(struct shard *shard, uint32_t rank, const float *values)
{
    if (shard->reads != NULL) {
        memcpy(shard->reads + rank * shard->value_count, values,
               shard->value_count * sizeof(float));
    }
}

void shard_keep_version(struct shard *shard, const struct unit *unit)
{
    if (shard->history_count > 0) {
        uint64_t entry = unit->version % shard->history_count;
        memcpy(shard->history + entry * shard->value_count, shard->params,
               shard->value_count * sizeof(float));
    }
}
