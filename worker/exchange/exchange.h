/* Exchanges gradients: turns one worker's gradients into every worker's next parameters.
 *
 * The trainer drives every strategy the same way, on its own thread:
 *
 *         forward; before it reads the parameters of a bucket: exchange_await_bucket(bucket)
 *     exchange_end_step()               the step before is over: all parameters are there
 *     exchange_begin_step(step)         grads may be overwritten from here
 *         for each bucket: backward, exchange_buckets_ready(bucket, 1)
 *
 * Where parameters are wanted at once, end_step follows backward directly, and there is no
 * await_bucket. Only await_bucket, end_step and begin_step wait. In between, buckets travel while
 * later ones are computed, and while the next forward pass computes with those that have arrived. A
 * strategy is a choice in exchange.c and a file of its own:
 *
 *     mode   file                      thread     delivers
 *     local  exchange_local.c          link's     the gradient, without a network
 *     ring   chunks/exchange_chunks.c  link's     the mean gradient, by messages
 *            shared/exchange_shared.c  trainer's  the mean gradient, in shared memory
 *            exchange_devices.c        trainer's  the mean gradient, by the devices' library
 *     ps-*   exchange_ps.c             link's     new parameters, by push and pull; or the mean
 *                                                 gradient, where servers of ps-sync hand it back
 *
 * On the link's thread, which communicates, a strategy's functions run as events, and the trainer's
 * thread waits for them in exchange_threaded.c; on the trainer's own, exchange_inline.c calls them.
 *
 * An unsynchronised worker counts its steps by itself: after each it settles, and asks how far the
 * phase is (exchange_marks_passed). Steps are counted from 0 in every phase, and an exchange lives
 * for one phase.
 *
 * A process may carry several ranks: then it computes their gradients one after the other, each
 * into a vector of its own, and a bucket is ready when the last of them has it. Where workers are
 * unsynchronised every gradient is an update, so the ranks of a process take turns: each step has
 * an exchange for each of them, in their order, with its own pull and push. All gradients are in
 * `grads` then, and what this file calls a step is a turn.
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
#include "common/job/carriers.h"
#include "common/job/mode.h"
#include "common/transport/lanes.h"
#include "common/vector/layout.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define EXCHANGE_PULL UINT32_MAX // posted instead of a bucket
#define EXCHANGE_NONE UINT32_MAX // of exchange_take_written

struct exchange;
struct exchange_device;
struct vector_device;
struct group;

enum exchange_delivers {
    EXCHANGE_GRADIENTS, // the mean gradient, in grads, at end_step; the caller runs the optimizer
    EXCHANGE_PARAMS,    // new parameters, in params, at the next begin_step
};

/* Of a strategy by which messages travel. They run on the communication thread, and none blocks. */
struct exchange_message_ops {
    enum status (*start)(struct exchange *exchange); // once, before the first step

    /* Handles a data message. May take the envelope by envelope_move. Returns STATUS_MALFORMED for
     * what the protocol does not allow, and STATUS_DENIED for the wrong sender; the caller then
     * drops the message and logs. */
    enum status (*deliver)(struct exchange *exchange, const struct message *message,
                           struct envelope *envelope);

    enum status (*go_on)(struct exchange *exchange); // sends what had to wait and may go now

    /* See exchange_awaits. */
    bool (*awaits)(const struct exchange *exchange, struct wire_wait *ret_wait);

    /* Pulls what exchange->pull_* say. NULL without servers. */
    enum status (*pull)(struct exchange *exchange);
};

/* Of a strategy whose work is done on the trainer's thread: see exchange_inline.c. */
struct exchange_inline_ops {
    /* See exchange_meet. Without it gradients always come to the host. */
    enum status (*meet)(struct exchange *exchange, const struct exchange_device *device,
                        bool *ret_has_met);

    /* Waits until a ready bucket is complete; in the order of buckets. */
    enum status (*wait)(struct exchange *exchange, uint32_t bucket);

    /* Ends waits that `stopped` does not end. Any thread. */
    void (*stop)(struct exchange *exchange);
};

struct exchange_ops {
    enum exchange_delivers delivers;
    const struct exchange_message_ops *message_ops; // NULL: no message travels
    const struct exchange_inline_ops *inline_ops;   // NULL: the communication thread does the work

    /* A bucket's gradients are there. On the thread that does the work; it does not block. A
     * strategy without inline_ops calls exchange_mark_done then or later. */
    enum status (*ready)(struct exchange *exchange, uint32_t bucket);

    void (*destroy)(struct exchange *exchange);
};

/* The thread that does the work, and with it how the trainer's calls are answered. */
struct exchange_driver {
    enum status (*begin_step)(struct exchange *exchange, uint64_t step);
    void (*buckets_ready)(struct exchange *exchange, uint32_t first, uint32_t count);
    enum status (*await_bucket)(struct exchange *exchange, uint32_t bucket,
                                enum status (*apply)(void *context, uint32_t bucket),
                                void *context); // NULL: nothing is won by it
    enum status (*take_ready)(struct exchange *exchange,
                              enum status (*apply)(void *context, uint32_t bucket),
                              void *context); // NULL: likewise
    enum status (*end_step)(struct exchange *exchange,
                            enum status (*apply)(void *context, uint32_t bucket), void *context);
    enum status (*settle)(struct exchange *exchange);
};

/* Borrows everything until exchange_destroy. */
struct exchange_options {
    enum mode_kind mode;
    uint32_t rank, world; // the first rank that this process carries, of how many
    const struct layout *layout;
    float *params, *grads; // (layout->value_count), host, unless there is a device

    // Where processes carry several ranks (carriers.h): how many there are, 0: one for each rank;
    // and the gradients of each rank of this one, in their order, the last of which are `grads`.
    // What is delivered goes to grads; the others are of no use behind end_step. Where ranks take
    // turns there may be grads alone.
    uint32_t processes;
    struct rank_list left_out; // their gradients are zeros
    float *const *vectors;     // (block.count, layout->value_count); NULL: grads alone

    // By exchange_create, of the above.
    struct carriers carriers;
    struct rank_block block;
    uint32_t process;

    /* That has both vectors, as servers have theirs: they are read and written where they are, by
     * devices alone. NULL: the host. ps modes only. */
    struct vector_device *device;

    /* Workers make steps independently: they also pull the first parameters, and servers say how
     * far the job is. */
    bool is_unsynchronised;

    /* Of ps-sync: servers make no updates, and what is pulled is the mean gradient. */
    bool takes_means;

    // A job that is resumed goes on here: servers are not seeded, and steps of each rank may count
    // from another than 0.
    bool is_restored;
    uint64_t first_step;

    // The optimizer's states that rank 0 gives to servers with the first parameters.
    float *const *states; // (state_count, layout->value_count)
    uint32_t state_count;
    struct channel *channel;

    // The workers of one host, if they have mapped each other's gradients; NULL: ring by messages.
    struct group *group;

    // (EXCHANGE_ID_BYTES) where the devices of a ring join, that have a library to sum by; NULL
    const unsigned char *devices_id;

    struct codec codec; // of what is sent

    // Spans of the parameters, one behind the other, in which is noticed what somebody writes
    // besides the servers that deliver them: see exchange_take_written. On the host.
    const struct span *watched; // (watched_count)
    uint32_t watched_count;     // 0: nothing is noticed

    // Of ring by messages: which buckets take which algorithm, see chunks.h.
    struct all_reduce_limits limits;

    // Connections: of ps modes to each shard; of ring to each worker process, where there is one:
    // to those that all_reduce_meets says.
    const struct lanes *peers; // (peer_count)
    uint32_t peer_count;
    struct callers *callers; // ring by messages: connections of other workers, for all phases

    /* Tells the communication thread to call exchange_run_ready for each of `count` buckets from
     * `first` on, or for EXCHANGE_PULL and 1. From the trainer's thread. */
    void (*post_ready)(void *context, uint32_t first, uint32_t count);
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
    uint32_t done[LAYOUT_BUCKETS_MAX]; // complete buckets of that step, in that order
    uint32_t bucket_done_count;
    uint32_t taken_count; // how many of them the trainer's thread has taken and applied
    bool is_taken[LAYOUT_BUCKETS_MAX]; // trainer's thread only
    bool is_awaiting;                  // the buckets of a step or of a pull are on their way
    uint32_t sends_outstanding;        // zero-copy sends that may still read grads
    _Atomic uint64_t pull_mark; // what is pulled: 0 parameters to continue with, m those of mark m
    _Atomic uint32_t pull_vector; // from 1: states of the optimizer
    float *pull_target;           // (layout->value_count) where they are written
    uint64_t marks_passed;        // marks of the phase, as servers say; is_unsynchronised only
    double staleness_sum; // staleness of the last gradient in updates, summed over staleness_count
                          // answers
    uint32_t staleness_count;
    double rate;                           // that the last gradient was applied with; 0: not known
    const struct optimizer_groups *groups; // the settings that pushes say, borrowed; see
                                           // exchange_say
    double late_share;                     // of the shards: they have dropped it
    uint64_t posted_ns;   // when the first bucket of a step that is on its way was posted; 0: none
    uint64_t wire_ns;     // of complete steps that nobody has asked for yet
    _Atomic bool has_met; // devices sum
    enum status failure;  // of an exchange on the trainer's thread: its steps end with it
    struct encoder *encoders; // (encoder_count) the strategy's, of the first ranks carried
    uint32_t encoder_count;
    _Atomic uint32_t written;     // of exchange_take_written
    _Atomic(enum status) stopped; // not STATUS_OK: every wait ends with it
};

enum status exchange_create(const struct exchange_options *options, struct exchange **ret_exchange);
void exchange_destroy(struct exchange *exchange); // NULL is fine

/* Whose gradient a step of the exchange has, where ranks take turns. */
struct exchange_turn {
    uint64_t step;  // of the rank
    uint32_t index; // of the rank, among those that this process carries
};

/* How many steps of the exchange a step of every rank has: 1, unless ranks take turns. */
static inline uint32_t exchange_turns(const struct exchange *exchange)
{
    const struct exchange_options *options = &exchange->options;
    return options->is_unsynchronised ? options->block.count : 1;
}

/* Which turn a step of the exchange is. */
static inline struct exchange_turn exchange_turn(const struct exchange *exchange, uint64_t step)
{
    uint32_t turns = exchange_turns(exchange);
    return (struct exchange_turn){step / turns, (uint32_t)(step % turns)};
}

/* Returns what the exchange of a mode delivers, where servers make updates. */
const struct exchange_ops *exchange_of(enum mode_kind mode);

/* (value_count) Errors of what was encoded of the gradients of the index-th rank that this process
 * carries; NULL: nothing is encoded. The strategy's. */
float *exchange_residual(const struct exchange *exchange, uint32_t index);

/* Agrees on whether the workers' devices sum the gradients (exchange_device.h). They do if all of
 * them can. Then a bucket counts as ready once its computation is queued, and its mean lies on the
 * device. NULL: this worker's device cannot. All workers call it on the trainer's thread before the
 * first step of a phase. Waits. The device is borrowed until the job's last exchange is
 * destroyed. */
enum status exchange_meet(struct exchange *exchange, const struct exchange_device *device,
                          bool *ret_has_met);

/* What the pushes of a step say of its update, without runs: from the next step on. Between the end
 * of a step and the begin of the next one; borrowed, and unchanged until that ends. NULL: nothing.
 */
static inline void exchange_say(struct exchange *exchange, const struct optimizer_groups *groups)
{
    exchange->groups = groups;
}

/* Trainer's thread. */
static inline enum status exchange_begin_step(struct exchange *exchange, uint64_t step)
{
    assert(exchange->step == UINT64_MAX || step == exchange->step + 1);
    return exchange->driver->begin_step(exchange, step);
}

/* The gradients of `count` buckets from `first` on are there, which set out together. */
static inline void exchange_buckets_ready(struct exchange *exchange, uint32_t first, uint32_t count)
{
    assert(count > 0 && first + count <= exchange->options.layout->bucket_count);
    exchange->driver->buckets_ready(exchange, first, count);
}

/* Ends the step. Where gradients are delivered, calls apply(context, bucket) for each bucket as
 * soon as its mean is there, on this thread and in any order, while later ones are under way. A
 * failure of apply ends the step. */
static inline enum status exchange_end_step(struct exchange *exchange,
                                            enum status (*apply)(void *context, uint32_t bucket),
                                            void *context)
{
    return exchange->driver->end_step(exchange, apply, context);
}

/* Whether await_bucket gains anything: whether buckets come while this thread does something
 * else. */
static inline bool exchange_overlaps(const struct exchange *exchange)
{
    return exchange->driver->await_bucket != NULL && exchange->options.processes > 1 &&
           !exchange->options.is_unsynchronised;
}

/* Waits until the bucket's parameters may be read. Call it between the last buckets_ready of a step
 * and its end_step. Applies what comes meanwhile, as end_step does. */
static inline enum status
exchange_await_bucket(struct exchange *exchange, uint32_t bucket,
                      enum status (*apply)(void *context, uint32_t bucket), void *context)
{
    assert(exchange_overlaps(exchange));
    return exchange->driver->await_bucket(exchange, bucket, apply, context);
}

/* Between two bucket_readies of a step: applies, as end_step does, the means that have come by now,
 * and does not wait. So a device gets them while later gradients leave it. */
static inline enum status exchange_take_ready(struct exchange *exchange,
                                              enum status (*apply)(void *context, uint32_t bucket),
                                              void *context)
{
    return exchange->driver->take_ready != NULL
               ? exchange->driver->take_ready(exchange, apply, context)
               : STATUS_OK;
}

/* Waits until params hold the result of the last step, without beginning another: for evaluation,
 * and at the end. */
static inline enum status exchange_settle(struct exchange *exchange)
{
    return exchange->driver->settle(exchange);
}

/* Returns how long the steps that became complete since the last call were under way, each from
 * posting its first bucket to completing its last. The part that was not waited for was hidden
 * behind computation. 0 if a worker is alone, because nothing travels. */
uint64_t exchange_take_wire_ns(struct exchange *exchange);

/* Returns how many marks of the phase were passed. For unsynchronised workers, after
 * exchange_settle. */
uint64_t exchange_marks_passed(struct exchange *exchange);

/* What became of an unsynchronised worker's last gradient. */
struct exchange_fate {
    double staleness;  // how old it was when it was applied, in updates (mean over the shards)
    double rate;       // rate that it was applied with; 0: not known
    double late_share; // share of the shards that dropped it because it came too late
};
struct exchange_fate exchange_fate(struct exchange *exchange);

/* Pulls parameters, and waits for them: those of a mark (from 1), to evaluate them, or with 0 those
 * to continue with. Takes each mark once, in order. For unsynchronised workers. */
enum status exchange_pull(struct exchange *exchange, uint64_t mark);

/* Pulls a state of the optimizer (from 1) into `target`, and waits for it. Call it after the last
 * step of a phase with servers. */
enum status exchange_pull_state(struct exchange *exchange, uint32_t vector, float *target);

/* Returns which of the watched spans somebody besides the servers has written between two
 * deliveries, of which the second one was over it; EXCHANGE_NONE: none since the last call. Of
 * several the first one. */
static inline uint32_t exchange_take_written(struct exchange *exchange)
{
    return atomic_exchange(&exchange->written, EXCHANGE_NONE);
}

/* Waits until nothing that was sent is still being read. Then the exchange may be destroyed. */
enum status exchange_drain(struct exchange *exchange);

/* Communication thread. */
enum status exchange_start(struct exchange *exchange);
enum status exchange_run_ready(struct exchange *exchange, uint32_t bucket); // or EXCHANGE_PULL
enum status exchange_go_on(struct exchange *exchange); // call it whenever the thread was woken
enum status exchange_deliver(struct exchange *exchange, const struct message *message,
                             struct envelope *envelope);

/* Whether a step, or a pull, lacks nothing but what others have to send: then from whom it comes.
 * The time of the wait is the caller's. `given` is the exchange's. */
bool exchange_awaits(const struct exchange *exchange, struct wire_wait *ret_wait);

/* Ends every wait with `status`, now and later. Any thread. */
void exchange_stop(struct exchange *exchange, enum status status);

/* Returns the status of the first exchange_stop; STATUS_OK before that. Any thread. */
enum status exchange_stopped(struct exchange *exchange);

/* For strategies: marks this bucket of the step as complete. */
void exchange_mark_done(struct exchange *exchange, uint32_t bucket);

/* For strategies: notes what an answer, other than a mark's, says about the job and this worker's
 * gradient. The message has an outcome. */
void exchange_note_progress(struct exchange *exchange, const struct message *params);

/* For strategies: notes which share of the shards dropped the gradient of the step that ends. */
void exchange_note_late(struct exchange *exchange, double share);

/* For strategies by which no byte of ours travels: for comparison, counts those of the bucket that
 * a ring would have carried. The job's details say that they are modelled. */
void exchange_count_modelled(struct exchange *exchange, uint32_t bucket);

/* For strategies: sends values that lie in params or grads without a copy; end_step waits until
 * they have been read. */
enum status exchange_send(struct exchange *exchange, uint64_t peer, const struct message *message);

/* For strategies: sends HELLO on each lane of a peer, with the lane's number. */
enum status exchange_say_hello(struct exchange *exchange, const struct lanes *lanes, bool is_far);

/* For code that sends by itself: counts a send that end_step has to wait for, and notes that it has
 * been read, on any thread. */
void exchange_count_send(struct exchange *exchange);
void exchange_count_read(void *hint); // hint: the exchange; for use as a release callback

#endif
