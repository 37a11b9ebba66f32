/* Updates of unsynchronised workers: from one push each, with its staleness, the remedy against it,
 * and the versions that a seeded order reads. */
#include "ps-server/shard/shard_checkpoint.h"
#include "ps-server/shard/shard_math.h"
#include "ps-server/shard/shard_settings.h"

#include <stdbool.h>

/* The rate of an update, and the momentum to go with it. */
static double prepare_rate(struct shard *shard, const struct unit *unit, uint32_t rank)
{
    const struct shard_config *config = &shard->config;
    const struct told *told = &shard->told[rank];
    double rate = shard_settings_use(shard, unit, rank), momentum, factor;
    if (config->remedy == NULL || !config->remedy->corrects_momentum) {
        return rate;
    }
    // Of one group: what it was before, not what the last correction has left.
    const struct optimizer_group *said = told->has_settings ? told->groups : shard->groups;
    remedy_momentum(said->settings.momentum, staleness_mean(&shard->staleness), &momentum, &factor);
    optimizer_set_momentum(shard->optimizer, momentum);
    return factor * rate;
}

/* The gradients that have been summed become an update; one by one, they were each. */
static void end_update(struct shard *shard, struct unit *unit)
{
    if (shard->sum != NULL) {
        shard_note(shard, unit, SHARD_UPDATE, true);
        shard->math->apply_sum(shard, unit->summed, shard_update_number(shard, unit),
                               unit->summed_rate);
        shard_note(shard, unit, SHARD_UPDATE, false);
    }
    unit->summed = 0;
    unit->version++;
    shard_keep_version(shard, unit);
}

static void apply_push(struct shard *shard, struct unit *unit, uint32_t rank)
{
    const struct shard_config *config = &shard->config;
    struct seat *seat = &unit->seats[rank];
    seat->staleness = unit->version - seat->read_version;
    staleness_add(&shard->staleness, seat->staleness);
    double rate = prepare_rate(shard, unit, rank);
    seat->rate = shard_settings_rate(shard, rate);
    enum shard_work work = shard->sum != NULL ? SHARD_SUM : SHARD_UPDATE;
    shard_note(shard, unit, work, true);
    for (uint32_t i = unit->first; i < unit->end; i++) {
        shard->math->take_part(shard, &shard->parts[i], rank, shard_update_number(shard, unit),
                               rate);
    }
    shard->math->finish(shard);
    shard_note(shard, unit, work, false);
    shard_drop_push(shard, unit, rank);
    unit->applied++;
    unit->summed++;
    unit->summed_rate = rate;
    if (unit->summed == config->gradients_per_update || unit->applied == shard->gradient_total) {
        end_update(shard, unit);
    }
}

void shard_apply_summed(struct shard *shard)
{
    for (uint32_t i = 0; i < shard->unit_count; i++) {
        if (shard->units[i].summed > 0) {
            end_update(shard, &shard->units[i]);
        }
    }
}

/* A gradient in the place of this one is in the parameters already, and was counted: all shards
 * have to come to a mark with the same pushes. */
static void pass_over(struct shard *shard, struct unit *unit, uint32_t rank)
{
    shard_drop_push(shard, unit, rank);
    unit->applied++; // and no update: the version has begun with it
}

void shard_take_push(struct shard *shard, struct unit *unit, uint32_t rank)
{
    if (shard_is_final(shard, unit)) {
        shard_drop_late(shard, unit, rank);
        return;
    }
    if (unit->applied < shard->config.gradients_ahead) {
        pass_over(shard, unit, rank);
    } else {
        apply_push(shard, unit, rank);
    }
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
