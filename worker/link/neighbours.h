/* Connects a worker to those that it exchanges with: the shards, and other workers. */
#ifndef WORKER_LINK_NEIGHBOURS_H
#define WORKER_LINK_NEIGHBOURS_H

#include "common/base/status.h"
#include "common/channel/callers.h"
#include "common/channel/channel.h"
#include "common/job/all_reduce.h"
#include "common/job/job.h"
#include "common/transport/endpoints.h"
#include "common/transport/lanes.h"

#include <stdbool.h>
#include <stdint.h>

/* Zeroed is empty. */
struct neighbours {
    struct lanes *shards;  // (shard_count)
    struct lanes *workers; // (worker_count) by process; empty where there is no connection
    uint32_t shard_count, worker_count;
    struct callers callers; // workers that have connected to this one
};

/* The places that the coordinator has named. */
struct neighbours_named {
    // One a line: of the shards; then of the workers that it connects to, the next one first, or,
    // where memory is shared, of all by their numbers.
    const char *places;
    enum all_reduce all_reduce; // says of which workers, and to whom to connect
    uint32_t process;           // this one
};

/* Connects to the shards, and to other workers as all_reduce_meets says, unless it is connected
 * already. --transport limits the transports. --connections sets the number of connections to each;
 * those on this host get one. A worker that is alone connects to none. Logs. Returns
 * STATUS_MISMATCH if a place is missing. */
enum status neighbours_connect(struct neighbours *neighbours, struct channel *channel,
                               const struct job *job, const struct neighbours_named *named);

/* Reads the place in the first line; *ret_next is the next line. Returns false if there is none. */
bool neighbours_read_place(const char *line, char ret_place[ENDPOINTS_PLACE_BYTES],
                           const char **ret_next);

/* Skips the first `count` places: those of the shards stand before those of workers. */
const char *neighbours_skip(const char *places, uint32_t count);

/* Lets neighbours on this host read the channel's shared region, if it has one: shards in a phase
 * with servers, other workers in one without. Offers it once to each, when it can take it. */
enum status neighbours_offer(struct channel *channel, const struct neighbours *neighbours,
                             bool has_servers);

/* Finds a member whose data connection was closed: a shard in a phase with servers, or else another
 * worker. One that this worker connects to is found at each call; a caller once, since it is taken
 * from `departures` (of the channel's transport). */
bool neighbours_find_broken(const struct neighbours *neighbours, bool has_servers,
                            struct transport *transport, struct departures *departures,
                            enum member_role *ret_role, uint32_t *ret_index);

void neighbours_free(struct neighbours *neighbours);

#endif
