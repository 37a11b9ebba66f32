/* What the parts of a shard's service share: shard_service.c (the loop) and service_phase.c (the
 * shard of a phase). */
#ifndef PS_SERVER_SHARD_SERVICE_STATE_H
#define PS_SERVER_SHARD_SERVICE_STATE_H

#include "common/channel/member.h"
#include "common/job/faults.h"
#include "ps-server/shard/answer_encoder.h"
#include "ps-server/shard/far_workers.h"
#include "ps-server/shard/service_checkpoint.h"
#include "ps-server/shard/shard.h"
#include "ps-server/shard/shard_service.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* One more shard of the same server. */
struct shard_thread {
    struct shard_service_options options;
    pthread_t id;
};

/* Faults of the job that strike this server at its shard. */
struct service_fault {
    struct faults faults;
    const struct fault *next; // of `faults`; NULL: none strikes in this phase any more
};

struct service {
    const struct shard_service_options *options;
    struct channel *channel;
    struct member member;
    struct job job;
    uint32_t index;      // of its shard, among those of the job
    uint32_t next_phase; // that the next START begins
    uint64_t begin_step; // of a program that commits: steps made that its workers go on from
    bool is_running;     // the phase before that one: GO came, and no START since
    uint64_t running_ms; // since when its generation trains; 0: it has not begun
    struct shard *shard; // of this phase; NULL before, and in a phase without servers
    struct far_workers far;
    struct departures *departures; // of those who connect; borrowed from the transport

    // What workers of this host may read: the parameters, and behind them a buffer for each
    // worker's answers where workers are unsynchronised. Empty if there is none.
    struct region region;
    uint64_t answer_count, // of the buffers
        value_count;       // that the parameters, and each buffer, have room for

    // Where parameters are kept on a GPU: the region is memory of it. NULL: the host's.
    struct vector_device *vectors;
    struct sharing_device device;

    // Of the phases that are over.
    struct staleness staleness;
    uint64_t late_count, update_count;

    struct answer_encoder answer_encoder; // of compressed gradients
    struct service_checkpoint checkpoint;
    struct service_fault fault;

    struct shard_thread *threads; // (thread_count), owned
    uint32_t thread_count;

    // For a timeline: the step of the message that is handled, and since when the shard computes.
    uint64_t handled_step, work_ns;

    // Its load.
    uint64_t started_ns, busy_ns;
    uint64_t backlog, backlog_max; // messages that came without a wait between them
};

/* Records what a shard computes; nobody watches without a timeline. */
struct shard_watch service_watch(struct service *service);

/* START: a phase begins, with a shard of its own. What is not due is ignored. */
enum status service_begin_phase(struct service *service, const struct message *message);

/* After each message of a worker: a fault whose step the shard has reached strikes, and is logged.
 * Does not return from a kill, and returns from a stop when it is over. STATUS_NO_MEMORY: see
 * fault_strike. */
enum status service_strike(struct service *service);

/* GO came: the phase runs, or there is a coordinator again (service_alone.c). */
void service_go(struct service *service, const struct message *go);

/* Before each look at the coordinator: for how long this shard would wait for the next one. */
void service_prepare_alone(struct service *service);

/* After that: says BACK where a new connection was made, and whether this shard can be taken in as
 * it is. If it cannot, it is told to join anew (STOP with AGAIN). */
void service_knock(struct service *service);

/* What service_begin_phase has made besides shards; once nobody reads it. */
void service_free_region(struct service *service);

/* Adds what the shard has counted to what the phases before had. */
void service_add_counts(struct service *service);

#endif
