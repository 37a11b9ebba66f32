/* Whom a worker exchanges with: the shards, and the next worker of the ring. */
#ifndef WORKER_NEIGHBOURS_H
#define WORKER_NEIGHBOURS_H

#include "common/channel.h"
#include "common/job.h"
#include "common/status.h"

#include <stdint.h>

/* Zeroed is empty. */
struct neighbours {
    uint64_t *peers;       // (count) connections: to the servers first
    uint32_t server_count; // those of the job
    uint32_t count;        // with the next worker, if a phase of the job needs it
};

/* Who a worker is among those that the coordinator named in its first START. */
struct neighbours_named {
    const char *places; // one a line: of the servers; then of the next worker, or of all workers
    bool has_all_workers;
    uint32_t rank;
};

/* Connects to the servers and to the next worker, by what --transport allows; to nobody where a
 * worker is alone. Logs. */
enum status neighbours_connect(struct channel *channel, const struct job *job,
                               const struct neighbours_named *named,
                               struct neighbours *ret_neighbours);

/* Where the places of workers begin: behind those of the servers. */
const char *neighbours_workers(const char *places, uint32_t server_count);

/* Lets those on this host read the channel's shared region, if it has one. */
enum status neighbours_offer(struct channel *channel, const struct neighbours *neighbours);

void neighbours_free(struct neighbours *neighbours);

#endif
