/* Policies: when pushes are applied, and when pulls are answered. A row, and a file, for each way.
 */
#ifndef PS_SERVER_SHARD_SHARD_POLICY_H
#define PS_SERVER_SHARD_SHARD_POLICY_H

#include "ps-server/shard/shard_state.h"

#include <stdbool.h>
#include <stdint.h>

struct shard_policy {
    bool is_unsynchronised; // steps of workers are apart, and all parts are one unit
    bool says_version;      // with answers to go on with: workers ask again until all shards agree

    /* Applies the pushes that are due. `arrived` is the worker whose message came last. */
    void (*advance)(struct shard *shard, struct unit *unit, uint32_t arrived);

    /* What a worker whose own pushes were handled may have now, to go on with. */
    struct answer (*answer)(const struct shard *shard, const struct unit *unit, uint32_t rank);

    /* All parameters have come from rank 0; NULL: nothing to do. */
    void (*seeded)(struct shard *shard);
};

extern const struct shard_policy policy_sync, policy_backup; // UPDATE_WHEN_ALL_PUSHED
extern const struct shard_policy policy_races, policy_seeded, policy_views; // UPDATE_ON_PUSH

static const struct answer shard_no_answer = {NULL, 0, false};

/* The parameters as they are. */
static inline struct answer shard_answer_live(const struct shard *shard, const struct unit *unit)
{
    return (struct answer){shard->params, unit->version, false};
}

static inline bool shard_push_is_whole(const struct unit *unit, uint32_t rank)
{
    return unit->seats[rank].part_pushes == unit->part_count;
}

bool shard_everybody_has_pushed(const struct shard *shard, const struct unit *unit);

#endif
