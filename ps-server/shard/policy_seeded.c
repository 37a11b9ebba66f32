/* ps-ssp and ps-async with a seeded order: pushes are applied in turn, and each gradient is
 * computed on the version that the order gives to it. */
#include "ps-server/shard/shard_policy.h"

static uint32_t next_pusher(const struct shard *shard, const struct unit *unit)
{
    uint32_t workers = shard->config.workers;
    if (!shard_is_final(shard, unit)) {
        uint32_t rank = (uint32_t)(unit->version % workers);
        return shard_push_is_whole(unit, rank) ? rank : workers;
    }
    for (uint32_t rank = 0; rank < workers; rank++) {
        if (shard_push_is_whole(unit, rank)) {
            return rank; // late, in no order
        }
    }
    return workers;
}

static void advance(struct shard *shard, struct unit *unit, uint32_t arrived)
{
    (void)arrived;
    while (shard_keep_mark(shard, unit)) {
        uint32_t rank = next_pusher(shard, unit);
        if (rank == shard->config.workers) {
            return;
        }
        shard_take_push(shard, unit, rank);
    }
}

/* The version that the gradient of a worker's step is computed on. A bound on staleness may ask for
 * a newer one than the order. */
static uint64_t seeded_version(const struct shard *shard, uint32_t rank, uint64_t step)
{
    const struct shard_config *config = &shard->config;
    uint64_t slack = config->consistency.slack_steps;
    uint64_t version = order_version(&config->order, config->seed, config->workers,
                                     step * config->workers + rank + 1);
    uint64_t bound = step > slack ? (step - slack) * config->workers : 0;
    return version > bound ? version : bound;
}

static struct answer answer(const struct shard *shard, const struct unit *unit, uint32_t rank)
{
    uint64_t step = unit->seats[rank].pull_step;
    uint64_t version = seeded_version(shard, rank, step);
    if (version > unit->version || step * shard->config.workers + rank >= shard->gradient_total) {
        return shard_no_answer; // not made yet, or the worker's last step is done: it waits for the
                                // end
    }
    uint64_t entry = version % shard->history_count;
    return (struct answer){shard->history + entry * shard->value_count, version, false};
}

const struct shard_policy policy_seeded = {
    .is_unsynchronised = true, .advance = advance, .answer = answer};
