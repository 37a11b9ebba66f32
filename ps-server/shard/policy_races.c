/* ps-ssp and ps-async without an order: each push is an update as it arrives. */
#include "ps-server/shard/shard_policy.h"

/* The worker whose whole push is to be applied next; `workers` if there is none. The one that has
 * just arrived comes first: the others that are whole were held back by a mark's copy, in no order.
 */
static uint32_t next_pusher(const struct shard *shard, const struct unit *unit, uint32_t arrived)
{
    uint32_t workers = shard->config.workers;
    if (shard_push_is_whole(unit, arrived)) {
        return arrived;
    }
    for (uint32_t rank = 0; rank < workers; rank++) {
        if (shard_push_is_whole(unit, rank)) {
            return rank;
        }
    }
    return workers;
}

static void advance(struct shard *shard, struct unit *unit, uint32_t arrived)
{
    while (shard_keep_mark(shard, unit)) {
        uint32_t rank = next_pusher(shard, unit, arrived);
        if (rank == shard->config.workers) {
            return;
        }
        shard_take_push(shard, unit, rank);
    }
}

/* Steps that every worker has contributed to the parameters. */
static uint64_t slowest_step(const struct shard *shard, const struct unit *unit)
{
    uint64_t clock = UINT64_MAX;
    for (uint32_t i = 0; i < shard->config.workers; i++) {
        clock = unit->seats[i].clock < clock ? unit->seats[i].clock : clock;
    }
    return clock;
}

static struct answer answer(const struct shard *shard, const struct unit *unit, uint32_t rank)
{
    bool may_read = consistency_may_read(&shard->config.consistency, slowest_step(shard, unit),
                                         unit->seats[rank].pull_step);
    return may_read ? shard_answer_live(shard, unit) : shard_no_answer;
}

const struct shard_policy policy_races = {
    .is_unsynchronised = true, .advance = advance, .answer = answer};
