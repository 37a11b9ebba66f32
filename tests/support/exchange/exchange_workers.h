/* Workers of ring mode in one process, over real sockets: each with a trainer's thread and a
 * communication thread, as in the program. Or one of them, whose neighbours a test plays.
 *
 * Gradients are drawn from rank, step and index, so that everybody can say what their mean is. */
#ifndef TESTS_SUPPORT_EXCHANGE_EXCHANGE_WORKERS_H
#define TESTS_SUPPORT_EXCHANGE_EXCHANGE_WORKERS_H

#include "worker/exchange/exchange.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define EXCHANGE_WORLD_MAX 9

struct exchange_worker {
    uint32_t rank, world;               // the first rank that it carries
    struct carriers carriers;           // a process to each rank, unless a test says otherwise
    const struct layout *layout;        // borrowed
    float *params, *grads;              // (layout->value_count), grads of its last rank
    float *vectors[EXCHANGE_WORLD_MAX]; // of each of its ranks
    struct channel *channel;
    struct lanes peers[EXCHANGE_WORLD_MAX];
    struct callers callers;
    struct exchange *exchange;
    char endpoint[TRANSPORT_ENDPOINT_BYTES];
    _Atomic uint32_t ready_count; // buckets posted in all
    _Atomic bool is_over;
    bool has_codes;
    uint64_t step;                        // the trainer's
    uint64_t applied[LAYOUT_BUCKETS_MAX]; // times that each bucket was applied
    uint64_t digest;                      // of what every step ended with
    pthread_t communication, trainer;
};

/* What a job of some steps is. */
struct exchange_job {
    uint32_t world;
    const struct layout *layout;
    const char *scheme; // of endpoints, as transport_bind has it
    struct all_reduce_limits limits;
    struct codec codec;
    uint32_t connections; // of each two over tcp; 0: one
    uint32_t processes;   // that carry the ranks; 0: one for each
};

/* Runs all workers of a job, which must end every step with the same bits: those of the mean in the
 * order of ranks, unless it is compressed. Connects each worker to those that the limits say and to
 * nobody else. Returns the digest of what the steps ended with. */
uint64_t exchange_workers_run(const struct exchange_job *job);

/* The connection of a neighbour that a test plays: the neighbour of that rank has said hello by it.
 */
static inline uint64_t exchange_played_peer(uint32_t rank)
{
    return 1000 + rank;
}

/* A worker of ring mode that sends to itself, whoever it sends to: what of the options is not 0. */
struct exchange_options exchange_worker_options(struct exchange_worker *worker);

/* Opens such a worker, one of as many as there are ranks. The layout is borrowed until close. */
void exchange_worker_open(struct exchange_worker *worker, uint32_t rank, uint32_t world,
                          const struct layout *layout);

/* The same for a process, which carries several ranks. */
void exchange_carrier_open(struct exchange_worker *worker, uint32_t process,
                           struct carriers carriers, const struct layout *layout);

/* Creates its exchange. */
void exchange_worker_create(struct exchange_worker *worker, const struct exchange_options *options);
void exchange_worker_close(struct exchange_worker *worker);

/* Delivers a message with so many values, or the bytes of a code, as if it had come from the
 * connection of its rank, or from another one. */
enum status exchange_worker_deliver(struct exchange_worker *worker, const struct message *message);
enum status exchange_worker_deliver_from(struct exchange_worker *worker, uint64_t peer,
                                         const struct message *message);

#endif
