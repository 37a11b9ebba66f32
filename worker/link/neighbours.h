/* Whom a worker exchanges with: the shards, and other workers. */
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
    struct lanes *workers; // (worker_count) by rank; empty where there is no connection
    uint32_t shard_count, worker_count;
    struct callers callers; // workers that have connected to this one
};

/* What the coordinator has named. */
struct neighbours_named {
    // One a line: of the shards; then of the workers that it connects to, the next one first, or,
    // where memory is shared, of all by rank.
    const char *places;
    enum all_reduce all_reduce; // says of which workers, and to whom to connect
    uint32_t rank;
};

/* Connects to the shards, and to other workers by all_reduce_meets, as far as that has not been
 * done before, by what --transport allows and so often as --connections says; once to those on this
 * host, and to nobody where a worker is alone. Logs. STATUS_MISMATCH if somebody's place is
 * missing. */
enum status neighbours_connect(struct neighbours *neighbours, struct channel *channel,
                               const struct job *job, const struct neighbours_named *named);

/* The place that the first line holds; *ret_next is the line behind it. False if there is none. */
bool neighbours_read_place(const char *line, char ret_place[ENDPOINTS_PLACE_BYTES],
                           const char **ret_next);

/* What is behind the first `count` places: those of workers are behind those of the shards. */
const char *neighbours_skip(const char *places, uint32_t count);

/* Lets those on this host read the channel's shared region, if it has one: shards in a phase with
 * servers, other workers in one without. Once each, when they can take it. */
enum status neighbours_offer(struct channel *channel, const struct neighbours *neighbours,
                             bool has_servers);

void neighbours_free(struct neighbours *neighbours);

#endif
