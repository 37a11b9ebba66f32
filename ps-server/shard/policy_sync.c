/* ps-sync: an update from the gradients of all workers; pulls wait for it. */
#include "ps-server/shard/shard_checkpoint.h"
#include "ps-server/shard/shard_math.h"
#include "ps-server/shard/shard_policy.h"
#include "ps-server/shard/shard_settings.h"

/* The contributor that has made most steps, the first of several. */
static uint32_t find_furthest(struct shard *shard, const struct unit *unit)
{
    uint32_t count = shard_list_contributors(shard, unit, 0), furthest = shard->contributors[0];
    for (uint32_t i = 1; i < count; i++) {
        uint32_t rank = shard->contributors[i];
        furthest = unit->seats[rank].clock > unit->seats[furthest].clock ? rank : furthest;
    }
    return furthest;
}

void shard_update_from_all(struct shard *shard, struct unit *unit)
{
    double rate = shard_settings_use(shard, unit, find_furthest(shard, unit));
    enum shard_work work = shard->config.hands_back_means ? SHARD_SUM : SHARD_SUM_AND_UPDATE;
    shard_note(shard, unit, work, true);
    shard->math->apply_mean(shard, unit, shard_update_number(shard, unit), rate);
    shard->math->finish(shard);
    shard_note(shard, unit, work, false);
    uint32_t contributor_count = shard_list_contributors(shard, unit, 0);
    for (uint32_t i = 0; i < contributor_count; i++) {
        unit->seats[shard->contributors[i]].rate = shard_settings_rate(shard, rate);
        shard_drop_push(shard, unit, shard->contributors[i]);
    }
    if (shard_is_unsynchronised(shard)) {
        unit->applied += shard->config.workers;
        staleness_add_many(&shard->staleness, 0, contributor_count);
    }
    shard_settings_end(shard, unit);
    unit->version++;
    shard_checkpoint_note(shard, unit);
}

static void advance(struct shard *shard, struct unit *unit, uint32_t arrived)
{
    (void)arrived;
    if (shard_everybody_has_pushed(shard, unit)) {
        shard_update_from_all(shard, unit);
    }
}

static struct answer answer(const struct shard *shard, const struct unit *unit, uint32_t rank)
{
    bool may_read = consistency_may_read(&shard->config.consistency, unit->version,
                                         unit->seats[rank].pull_step);
    return may_read ? shard_answer_live(shard, unit) : shard_no_answer;
}

const struct shard_policy policy_sync = {.advance = advance, .answer = answer};
