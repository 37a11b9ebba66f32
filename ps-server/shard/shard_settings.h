/* Which rates and settings an update has: those of the job, or those that came with its pushes. */
#ifndef PS_SERVER_SHARD_SHARD_SETTINGS_H
#define PS_SERVER_SHARD_SHARD_SETTINGS_H

#include "ps-server/shard/shard_state.h"

/* After the optimizer and the units were made. */
enum status shard_settings_create(struct shard *shard);
void shard_settings_destroy(struct shard *shard);

/* Notes what a push says, before it is accepted. STATUS_MALFORMED, and nothing is noted, if it
 * cannot be; then it may be a dispute, see shard_dispute. */
enum status shard_settings_hear(struct shard *shard, const struct part *part,
                                const struct message *push);

/* Gives the optimizer the settings that the next update of a unit has: from the push of `rank`, or,
 * in ps-sync, from those of all. Returns the learning rate to apply it with. */
double shard_settings_use(struct shard *shard, const struct unit *unit, uint32_t rank);

/* The rate of the first group, of an update with that learning rate. */
double shard_settings_rate(const struct shard *shard, double learning_rate);

/* The unit's update is made. */
void shard_settings_end(struct shard *shard, const struct unit *unit);

#endif
