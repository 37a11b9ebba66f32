/* Gradient exchange: how one worker's gradients become every worker's next parameters.
 *
 * The trainer drives every strategy the same way, on its own thread:
 *
 *         forward; before it reads the parameters of a bucket: exchange_await_bucket(bucket)
 *     exchange_end_step()               the step before is over: all parameters are there
 *     exchange_begin_step(step)         grads may be overwritten from here
 *         for each bucket: backward, exchange_bucket_ready(bucket)
 *
 * or with end_step straight after backward, and no await_bucket: where parameters are wanted at
 * once. await_bucket, end_step and begin_step are the only calls that wait. In between, buckets
 * travel while later ones are computed, and while the next forward pass computes with those that
 * have arrived. A strategy is a row of the table in exchange.c and a file of its own:
 *
 *     mode   file                      thread     delivers
 *     local  exchange_local.c          link's     the gradient, without a network
 *     ring   chunks/exchange_chunks.c  link's     the mean gradient, by messages
 *            shared/exchange_shared.c  trainer's  the mean gradient, in shared memory
 *     ps-*   exchange_ps.c             link's     new parameters, by push and pull
 *
 * On the link's thread, which communicates, a strategy's functions run as events, and the trainer's
 * thread waits for them in exchange_threaded.c; on the trainer's own, exchange_inline.c calls them.
 *
 * Where workers are unsynchronised, a worker's steps are its own: after each it settles, and asks
 * how far the phase is (exchange_marks_passed). Steps are counted from 0 in every phase, and an
 * exchange lives for one phase.
 *
 * What is shared between the two threads is in `struct exchange` under its mutex: how many buckets
 * of the step are complete, how many zero-copy sends still read from grads, and whether the job was
 * stopped. */
#ifndef WORKER_EXCHANGE_EXCHANGE_H
#define WORKER_EXCHANGE_EXCHANGE_H

#include "common/base/status.h"
#include "common/channel/callers.h"
#include "common/channel/channel.h"
#include "common/codec/codec.h"
#include "common/job/all_reduce.h"
#include "common/job/mode.h"
#include "common/transport/lanes.h"
#include "common/vector/layout.h"

#include <assert.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define EXCHANGE_PULL UINT32_MAX // posted in the place of a bucket

struct exchange;
struct group;

enum exchange_delivers {
    EXCHANGE_GRADIENTS, // the mean gradient, in grads, at end_step; the caller runs the optimizer
    EXCHANGE_PARAMS,    // new parameters, in params, at the next begin_step
};

struct exchange_ops {
    enum exchange_delivers delivers;

    /* On the communication thread; none blocks. Where there is a wait, `ready` is called on the
     * trainer's. */
    enum status (*start)(struct exchange *exchange); // once, before the first step
    enum status (*ready)(struct exchange *exchange, uint32_t bucket);
    enum status (*pull)(
        struct exchange *exchange); // what exchange->pull_* say; NULL without servers

    /* Waits until the bucket, which is ready, is complete. On the trainer's thread, in the order of
     * buckets, in the place of exchange_mark_done. NULL: the communication thread marks them. */
    enum status (*wait)(struct exchange *exchange, uint32_t bucket);

    /* Sends what had to wait and may go now; NULL: nothing ever waits. */
    enum status (*go_on)(struct exchange *exchange);

    /* Data messages. May take the envelope by envelope_move. STATUS_MALFORMED for what the protocol
     * does not allow, STATUS_DENIED for what does not come from where it should: the caller drops
     * it and logs. */
    enum status (*deliver)(struct exchange *exchange, const struct message *message,
                           struct envelope *envelope);
    void (*destroy)(struct exchange *exchange);
};

/* Whose thread does the work, and so how the trainer's calls are answered. */
struct exchange_driver {
    enum status (*begin_step)(struct exchange *exchange, uint64_t step);
    void (*bucket_ready)(struct exchange *exchange, uint32_t bucket);
    enum status (*await_bucket)(struct exchange *exchange, uint32_t bucket,
                                enum status (*apply)(void *context, uint32_t bucket),
                                void *context); // NULL: nothing is won by it
    enum status (*end_step)(struct exchange *exchange,
                            enum status (*apply)(void *context, uint32_t bucket), void *context);
    enum status (*settle)(struct exchange *exchange);
};

/* Borrows everything until exchange_destroy. */
struct exchange_options {
    enum mode_kind mode;
    uint32_t rank, world;
    const struct layout *layout;
    float *params, *grads; // (layout->value_count), host

    /* Steps of workers are apart from each other: the first parameters are pulled as well, and the
     * servers say how far the job is. */
    bool is_unsynchronised;

    // The optimizer's states that rank 0 gives to servers with the first parameters.
    float *const *states; // (state_count, layout->value_count)
    uint32_t state_count;
    struct channel *channel;

    // The workers of one host that have mapped each other's gradients; NULL: ring by messages.
    struct group *group;

    struct codec codec; // of what is sent

    // Of ring by messages: which buckets take which algorithm, see chunks.h.
    struct all_reduce_limits limits;

    // Connections: of ps modes to each shard; of ring to each worker, by rank, where there is one:
    // to those that all_reduce_meets says.
    const struct lanes *peers; // (peer_count)
    uint32_t peer_count;
    struct callers *callers; // of ring by messages: at which connections others are; of all phases

    /* Tells the communication thread to call exchange_run_ready(bucket), where bucket may be
     * EXCHANGE_PULL as well. From the trainer's thread. */
    void (*post_ready)(void *context, uint32_t bucket);
    void *context;
};

/* First member of every strategy's own struct. */
struct exchange {
    const struct exchange_ops *ops;
    const struct exchange_driver *driver;
    struct exchange_options options;
    float mean_factor; // 1/world

    pthread_mutex_t mutex;
    pthread_cond_t changed;
    _Atomic uint64_t step;             // being computed; written by the trainer's thread only
    uint32_t done[LAYOUT_BUCKETS_MAX]; // buckets of that step, in the order of their completion
    uint32_t bucket_done_count;
    uint32_t taken_count;              // of them, by the trainer's thread, which has applied them
    bool is_taken[LAYOUT_BUCKETS_MAX]; // trainer's thread only
    bool is_awaiting;                  // the buckets of a step or of a pull are on their way
    uint32_t sends_outstanding;        // zero-copy sends that may still read grads
    _Atomic uint64_t pull_mark;   // what is pulled: 0 parameters to go on with, m those of mark m
    _Atomic uint32_t pull_vector; // from 1: states of the optimizer
    float *pull_target;           // (layout->value_count) where those go
    uint64_t marks_passed;        // marks of the phase, as servers say; is_unsynchronised only
    double staleness_sum;         // of the last gradient, in updates, over staleness_count answers
    uint32_t staleness_count;
    double rate;        // that the last gradient was applied with; 0: not known
    double late_share;  // of the shards: they have dropped it
    uint64_t posted_ns; // when the first bucket of a step that is on its way was posted; 0: none
    uint64_t wire_ns;   // of complete steps that nobody has asked for yet
    _Atomic(enum status) stopped; // not STATUS_OK: every wait ends with it
};

enum status exchange_create(const struct exchange_options *options, struct exchange **ret_exchange);
void exchange_destroy(struct exchange *exchange); // NULL is fine

/* What a mode delivers. */
const struct exchange_ops *exchange_of(enum mode_kind mode);

/* Trainer's thread. */
static inline enum status exchange_begin_step(struct exchange *exchange, uint64_t step)
{
    assert(exchange->step == UINT64_MAX || step == exchange->step + 1);
    return exchange->driver->begin_step(exchange, step);
}

static inline void exchange_bucket_ready(struct exchange *exchange, uint32_t bucket)
{
    assert(bucket < exchange->options.layout->bucket_count);
    exchange->driver->bucket_ready(exchange, bucket);
}

/* Ends the step: where gradients are delivered, apply(context, bucket) is called for each bucket as
 * soon as its mean is there, on this thread and in any order, while later ones are on their way.
 * Its failure ends the step. */
static inline enum status exchange_end_step(struct exchange *exchange,
                                            enum status (*apply)(void *context, uint32_t bucket),
                                            void *context)
{
    return exchange->driver->end_step(exchange, apply, context);
}

/* Whether there is something to be won by await_bucket: buckets that come while this thread does
 * something else. */
static inline bool exchange_overlaps(const struct exchange *exchange)
{
    return exchange->driver->await_bucket != NULL && exchange->options.world > 1 &&
           !exchange->options.is_unsynchronised;
}

/* Between the last bucket_ready of a step and its end_step: waits until the bucket's parameters may
 * be read. What comes meanwhile is applied as in end_step. */
static inline enum status
exchange_await_bucket(struct exchange *exchange, uint32_t bucket,
                      enum status (*apply)(void *context, uint32_t bucket), void *context)
{
    assert(exchange_overlaps(exchange));
    return exchange->driver->await_bucket(exchange, bucket, apply, context);
}

/* Waits until params hold the result of the last step, without beginning another: for evaluation,
 * and at the end. */
static inline enum status exchange_settle(struct exchange *exchange)
{
    return exchange->driver->settle(exchange);
}

/* How long steps were on their way that have become complete since the last call: each from its
 * first bucket posted to its last one complete. What of it was no wait went on behind the
 * computing. 0 where a worker is alone and nothing travels. */
uint64_t exchange_take_wire_ns(struct exchange *exchange);

/* Where workers are unsynchronised: how many marks of the phase were passed, after exchange_settle.
 */
uint64_t exchange_marks_passed(struct exchange *exchange);

/* What became of this worker's last gradient, where workers are unsynchronised. */
struct exchange_fate {
    double staleness;  // how old it was when it was applied, in updates (mean over the shards)
    double rate;       // that it was applied with; 0: not known
    double late_share; // of the shards: it came too late for them, and was dropped
};
struct exchange_fate exchange_fate(struct exchange *exchange);

/* Pulls parameters, and waits for them: those of a mark (from 1), to evaluate them, or with 0 those
 * to go on with. Each mark once, in order. Where workers are unsynchronised. */
enum status exchange_pull(struct exchange *exchange, uint64_t mark);

/* Pulls a state of the optimizer (from 1) into `target`, and waits for it: after the last step of a
 * phase with servers. */
enum status exchange_pull_state(struct exchange *exchange, uint32_t vector, float *target);

/* Waits until nothing that was sent is read any more: the exchange may be destroyed then. */
enum status exchange_drain(struct exchange *exchange);

/* Communication thread. */
enum status exchange_start(struct exchange *exchange);
enum status exchange_run_ready(struct exchange *exchange, uint32_t bucket); // or EXCHANGE_PULL
enum status exchange_go_on(struct exchange *exchange); // whenever the thread was woken
enum status exchange_deliver(struct exchange *exchange, const struct message *message,
                             struct envelope *envelope);

/* Ends every wait with `status`, now and later. Any thread. */
void exchange_stop(struct exchange *exchange, enum status status);

/* What exchange_stop was first called with; STATUS_OK before. Any thread. */
enum status exchange_stopped(struct exchange *exchange);

/* For strategies: this bucket of the step is complete. */
void exchange_mark_done(struct exchange *exchange, uint32_t bucket);

/* For strategies: what an answer to go on with says of the job, and of this worker's gradient: it
 * has an outcome. */
void exchange_note_progress(struct exchange *exchange, const struct message *params);

/* For strategies: which share of the shards has dropped the gradient of the step that ends. */
void exchange_note_late(struct exchange *exchange, double share);

/* For strategies: sends values that lie in params or grads without a copy; end_step waits until
 * they have been read. */
enum status exchange_send(struct exchange *exchange, uint64_t peer, const struct message *message);

/* For strategies: says hello by each lane of a peer, with its number. */
enum status exchange_say_hello(struct exchange *exchange, const struct lanes *lanes, bool is_far);

/* For those who send by themselves: something that end_step has to wait for, and: it has been read,
 * on any thread. */
void exchange_count_send(struct exchange *exchange);
void exchange_count_read(void *hint); // the exchange: as a release

#endif
