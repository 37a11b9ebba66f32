/* The workers of a shard. Of those behind a network answers are paced, and pushes credited. */
#ifndef PS_SERVER_FAR_WORKERS_H
#define PS_SERVER_FAR_WORKERS_H

#include "common/job.h"
#include "common/lanes.h"
#include "common/pacer.h"
#include "ps-server/credits.h"

struct far_workers {
    struct channel *channel; // borrowed
    struct lanes *lanes;     // (workers) where each worker's HELLOs came from; owned
    bool *is_far;            // (workers), as their HELLO says; owned
    uint32_t worker_count;
    uint32_t lane_count; // of a far worker; a near one has one
    struct pacer *pacer;
    struct credits credits;
};

/* Zeroed is fine for destroy, also after a failure. */
enum status far_workers_create(struct channel *channel, const struct job *job,
                               struct far_workers *ret_far);

/* After its channel. */
void far_workers_destroy(struct far_workers *far);

/* A HELLO: the worker of that rank is at this connection. *ret_is_new: it was not known before.
 * STATUS_MALFORMED if there is no such rank or lane. */
enum status far_workers_meet(struct far_workers *far, const struct message *hello, uint64_t peer,
                             bool *ret_is_new);

/* Whether a worker has said hello by this connection. */
bool far_workers_know(const struct far_workers *far, uint32_t rank, uint64_t peer);

/* Answers a worker, near or far: as channel_send. Values that stay as they are until they have been
 * read may wait for their turn; others are copied now. */
enum status far_workers_answer(struct far_workers *far, uint32_t rank,
                               const struct message *message, bool is_stable);

/* A push has come: whoever may make another is told. Logs who is gone. */
void far_workers_credit(struct far_workers *far, const struct message *push);

#endif
