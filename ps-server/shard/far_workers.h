/* The workers of a shard. For those behind a network, answers are paced and pushes need credits.
 * Messages from and to each worker are counted, so that a lost one is found (common/plan/blame.h).
 */
#ifndef PS_SERVER_SHARD_FAR_WORKERS_H
#define PS_SERVER_SHARD_FAR_WORKERS_H

#include "common/channel/callers.h"
#include "common/channel/pacer.h"
#include "common/job/job.h"
#include "ps-server/shard/credits.h"

struct far_workers {
    struct channel *channel; // borrowed
    struct callers callers;
    struct pacer *pacer;
    struct credits credits;

    // (processes) Messages of the phase; owned.
    uint64_t *taken; // SEED, PUSH and PULL that have come from each
    uint64_t *given; // PARAMS that went to each
};

/* Zeroed is fine for destroy, also after a failure. */
enum status far_workers_create(struct channel *channel, const struct job *job,
                               struct far_workers *ret_far);

/* After its channel. */
void far_workers_destroy(struct far_workers *far);

/* A phase begins: its messages are counted from 0. */
void far_workers_begin_phase(struct far_workers *far);

/* A SEED, PUSH or PULL of a worker has come. */
void far_workers_note_taken(struct far_workers *far, uint32_t rank);

/* Answers a worker, near or far: as channel_send. Values that stay as they are until they have been
 * read may wait for their turn; others are copied now. */
enum status far_workers_answer(struct far_workers *far, uint32_t rank,
                               const struct message *message, bool is_stable);

/* A push has come: whoever may make another is told. Logs who is gone. */
void far_workers_credit(struct far_workers *far, const struct message *push);

#endif
