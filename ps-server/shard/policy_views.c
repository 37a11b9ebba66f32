/* A seeded order with a view for each worker: all pushes of an iteration are applied together. */
#include "ps-server/shard/shard_policy.h"

static void advance(struct shard *shard, struct unit *unit, uint32_t arrived)
{
    (void)arrived;
    if (shard_keep_mark(shard, unit) && shard_everybody_has_pushed(shard, unit)) {
        shard_views_update(shard, unit);
        shard_pass_marks(shard, unit);
    }
}

static struct answer answer(const struct shard *shard, const struct unit *unit, uint32_t rank)
{
    bool may_read = unit->version == unit->seats[rank].pull_step * shard->config.workers;
    return may_read ? (struct answer){shard_view(shard, rank), unit->version, false}
                    : shard_no_answer;
}

const struct shard_policy policy_views = {
    .is_unsynchronised = true, .advance = advance, .answer = answer, .seeded = shard_views_seed};
