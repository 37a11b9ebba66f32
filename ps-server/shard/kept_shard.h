/* What a server keeps of a shard from one generation of its job to the next, where gradients race
 * (ps-server/coordinator/in_place.h): its vectors, and how many gradients are in them. Pure. */
#ifndef PS_SERVER_SHARD_KEPT_SHARD_H
#define PS_SERVER_SHARD_KEPT_SHARD_H

#include "common/base/status.h"
#include "common/channel/snapshot.h"
#include "ps-server/shard/shard.h"

#include <stdbool.h>
#include <stdint.h>

/* Zeroed: nothing is kept. */
struct kept_shard {
    struct snapshot values; // all spans that a restored shard needs
    uint64_t gradients;     // in them, since the job began: N for each step of earlier phases. 0:
                            // nothing is kept. UINT64_MAX: the shard has no values, and is at any
                            // step
};

/* Keeps a shard as it is now, in the place of what was kept before. On failure nothing is kept. */
enum status kept_shard_take(struct kept_shard *kept, struct shard *shard);
void kept_shard_finish(struct kept_shard *kept);

/* How many gradients are there beyond so many steps. STATUS_INVALID: there are fewer, or nothing is
 * kept. */
enum status kept_shard_ahead(const struct kept_shard *kept, uint64_t steps, uint32_t workers,
                             uint64_t *ret_ahead);

/* Gives a shard of the next generation all that it needs to be restored. STATUS_INVALID: it needs
 * something else than what was kept. */
enum status kept_shard_restore(struct kept_shard *kept, struct shard *shard);

#endif
