/* Copies of a shard's vectors for a checkpoint, each unit in the very moment in which it has had
 * the updates that the checkpoint is of: together they are consistent. And the way back. Pure. */
#ifndef PS_SERVER_SHARD_SHARD_CHECKPOINT_H
#define PS_SERVER_SHARD_SHARD_CHECKPOINT_H

#include "common/base/status.h"
#include "common/channel/fetch.h"
#include "common/channel/snapshot.h"
#include "ps-server/shard/shard.h"

#include <stdbool.h>
#include <stdint.h>

/* Rounds of the phase (ps-sync), or gradients, that a unit has had after `steps` of the job. */
uint64_t shard_checkpoint_count(const struct shard_config *config, uint64_t steps);

/* Adds the shard's spans to an empty snapshot, and takes memory for them. */
enum status shard_checkpoint_prepare(const struct shard *shard, struct snapshot *ret_snapshot);

/* From now on: the snapshot (borrowed) is taken when units have had so many; UINT64_MAX: never. */
void shard_checkpoint_await(struct shard *shard, struct snapshot *snapshot, uint64_t count);

/* Whether a unit has had as many already. */
bool shard_checkpoint_is_late(const struct shard *shard, uint64_t count);

/* Whether all units have had as many; never where there are no values. */
bool shard_checkpoint_is_reached(const struct shard *shard, uint64_t count);

/* Whether all units have been copied; if is_free is false none is, and it says when all would have
 * been. */
bool shard_checkpoint_is_whole(const struct shard *shard);
void shard_checkpoint_set_free(struct shard *shard, bool is_free);

/* Whether a unit was not copied because the snapshot was not free. */
bool shard_checkpoint_was_missed(const struct shard *shard);

/* What the shard had counted in this phase when all units had been copied. */
const struct staleness *shard_checkpoint_staleness(const struct shard *shard);
uint64_t shard_checkpoint_late_count(const struct shard *shard);

/* Copies everything as it is: after the last update. */
void shard_checkpoint_copy(struct shard *shard);

/* The same at any time, into a snapshot that shard_checkpoint_prepare has laid out. Gradients that
 * wait for more of them (gradients_per_update) become an update before. Returns how many gradients
 * of the phase are in it, where workers race; UINT64_MAX if the shard has no values. */
uint64_t shard_checkpoint_copy_to(struct shard *shard, struct snapshot *snapshot);

/* A unit has had an update or a gradient. For what makes updates. */
struct unit;
void shard_checkpoint_note(struct shard *shard, const struct unit *unit);

/* Takes the memory by which a device's shard is restored. Before the first span. */
enum status shard_checkpoint_begin_restore(struct shard *shard);

/* The index-th span that a restored shard needs; false behind the last. The target is the
 * shard's. */
bool shard_checkpoint_restore(struct shard *shard, uint32_t index, struct fetch *ret_fetch);

/* That span has come. */
enum status shard_checkpoint_take(struct shard *shard, const struct fetch *fetch);

/* They have all come. */
void shard_checkpoint_restored(struct shard *shard);

/* Frees what a restore that has not ended needs. */
void shard_checkpoint_finish(struct shard *shard);

#endif
