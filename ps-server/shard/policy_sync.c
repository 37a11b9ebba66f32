/* ps-sync: an update from the gradients of all workers; pulls wait for it. */
#include "ps-server/shard/shard_policy.h"

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
