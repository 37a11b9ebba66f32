/* ps-sync with backup workers: an update once enough workers have pushed; drops what comes late. */
#include "ps-server/shard/shard_policy.h"

static void advance(struct shard *shard, struct unit *unit, uint32_t arrived)
{
    (void)arrived;
    uint32_t workers = shard->config.workers, whole = workers;
    while (whole >= workers - shard->config.backup && shard_keep_mark(shard, unit)) {
        whole = 0;
        for (uint32_t rank = 0; rank < workers; rank++) {
            const struct seat *seat = &unit->seats[rank];
            if (seat->part_pushes < unit->part_count) {
                continue;
            }
            if (seat->read_version == unit->version && !shard_is_final(shard, unit)) {
                whole++;
            } else {
                shard_drop_late(shard, unit, rank);
            }
        }
        if (whole >= workers - shard->config.backup) {
            shard_update_from_all(shard, unit);
            shard_pass_marks(shard, unit);
        }
    }
}

/* The step that the worker has contributed to is over; another shard may have told of this version.
 */
static struct answer answer(const struct shard *shard, const struct unit *unit, uint32_t rank)
{
    bool may_read = unit->version >= unit->seats[rank].pull_version;
    return may_read ? shard_answer_live(shard, unit) : shard_no_answer;
}

const struct shard_policy policy_backup = {
    .is_unsynchronised = true, .says_version = true, .advance = advance, .answer = answer};
