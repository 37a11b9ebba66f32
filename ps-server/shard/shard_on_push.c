/* Has gradients summed up, and parameters updated. */
#include "ps-server/shard/shard_checkpoint.h"
#include "ps-server/shard/shard_math.h"

#include <stdbool.h>

/* The number of the next update in the job, from 1. */
static uint64_t number_of_update(const struct shard *shard, const struct unit *unit)
{
    return shard->config.updates_before + unit->version + 1;
}

uint32_t shard_list_contributors(struct shard *shard, const struct unit *unit, uint32_t chunk)
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
    double rate = schedule_rate(&shard->config.schedule, step_of(shard, unit));
    shard->math->apply_mean(shard, unit, number_of_update(shard, unit), rate);
    shard->math->finish(shard);
    uint32_t contributor_count = shard_list_contributors(shard, unit, 0);
    for (uint32_t i = 0; i < contributor_count; i++) {
        unit->seats[shard->contributors[i]].rate = rate;
        shard_drop_push(shard, unit, shard->contributors[i]);
    }
    if (shard_is_unsynchronised(shard)) {
        unit->applied += shard->config.workers;
        staleness_add_many(&shard->staleness, 0, contributor_count);
    }
    unit->version++;
    shard_checkpoint_note(shard, unit);
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
        shard->math->take_part(shard, &shard->parts[i], rank, number_of_update(shard, unit), rate);
    }
    shard->math->finish(shard);
    shard_drop_push(shard, unit, rank);
    unit->applied++;
    unit->summed++;
    bool is_whole =
        unit->summed == config->gradients_per_update || unit->applied == shard->gradient_total;
    if (is_whole) {
        if (shard->sum != NULL) {
            shard->math->apply_sum(shard, unit->summed, number_of_update(shard, unit), rate);
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
    shard_checkpoint_note(shard, unit);
    shard_pass_marks(shard, unit);
}

void shard_keep_read(struct shard *shard, uint32_t rank, const float *values)
{
    if (shard->reads != NULL) {
        shard->math->copy(shard, shard->reads + rank * shard->value_count, values,
                          shard->value_count);
    }
}

void shard_keep_version(struct shard *shard, const struct unit *unit)
{
    if (shard->history_count > 0) {
        uint64_t entry = unit->version % shard->history_count;
        shard->math->copy(shard, shard->history + entry * shard->value_count, shard->params,
                          shard->value_count);
    }
}
