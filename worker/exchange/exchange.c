/* The part that all strategies share: the table, and what the two threads wait for. */
#include "worker/exchange/exchange.h"

#include "common/base/clock.h"
#include "worker/exchange/strategies.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

static const struct exchange_strategy *const strategies[] = {
    [MODE_LOCAL] = &exchange_local, [MODE_RING] = &exchange_chunks, [MODE_PS_SYNC] = &exchange_ps,
    [MODE_PS_SSP] = &exchange_ps,   [MODE_PS_ASYNC] = &exchange_ps,
};

const struct exchange_ops *exchange_of(enum mode_kind mode)
{
    return &strategies[mode]->ops;
}

enum status exchange_create(const struct exchange_options *options, struct exchange **ret_exchange)
{
    const struct exchange_strategy *strategy = strategies[options->mode];
    if (strategy == &exchange_chunks && options->group != NULL) {
        strategy = &exchange_shared;
    }
    assert(options->rank < options->world);
    struct exchange *exchange;
    enum status status = strategy->create(options, &exchange);
    if (status != STATUS_OK) {
        return status;
    }
    exchange->ops = &strategy->ops;
    exchange->options = *options;
    exchange->mean_factor = 1.0f / (float)options->world;
    exchange->stopped = STATUS_OK;
    exchange->step = UINT64_MAX;
    exchange->is_awaiting = options->is_free; // the first parameters
    pthread_mutex_init(&exchange->mutex, NULL);
    pthread_cond_init(&exchange->changed, NULL);
    *ret_exchange = exchange;
    return STATUS_OK;
}

void exchange_destroy(struct exchange *exchange)
{
    if (exchange == NULL) {
        return;
    }
    pthread_cond_destroy(&exchange->changed);
    pthread_mutex_destroy(&exchange->mutex);
    exchange->ops->destroy(exchange);
}

/* Whether the trainer's thread does the work itself. It shares nothing with the communication
 * thread then, but that it may be stopped: what is under the mutex elsewhere needs none. */
static bool works_here(const struct exchange *exchange)
{
    return exchange->ops->wait != NULL;
}

/* Whether params hold the result of the last step that was begun, or of the last pull. */
static bool is_delivered(const struct exchange *exchange)
{
    return !exchange->is_awaiting ||
           exchange->bucket_done_count == exchange->options.layout->bucket_count;
}

/* With the mutex held. */
static enum status wait_until_delivered(struct exchange *exchange)
{
    while (exchange->stopped == STATUS_OK && !is_delivered(exchange)) {
        pthread_cond_wait(&exchange->changed, &exchange->mutex);
    }
    return exchange->stopped;
}

enum status exchange_settle(struct exchange *exchange)
{
    if (works_here(exchange)) {
        return exchange->stopped;
    }
    pthread_mutex_lock(&exchange->mutex);
    enum status status = wait_until_delivered(exchange);
    pthread_mutex_unlock(&exchange->mutex);
    return status;
}

/* With the mutex held. */
static enum status wait_for_sends(struct exchange *exchange)
{
    while (exchange->stopped == STATUS_OK && exchange->sends_outstanding > 0) {
        pthread_cond_wait(&exchange->changed, &exchange->mutex);
    }
    return exchange->stopped;
}

enum status exchange_drain(struct exchange *exchange)
{
    pthread_mutex_lock(&exchange->mutex);
    enum status status = wait_for_sends(exchange);
    pthread_mutex_unlock(&exchange->mutex);
    return status;
}

enum status exchange_begin_step(struct exchange *exchange, uint64_t step)
{
    assert(exchange->step == UINT64_MAX || step == exchange->step + 1);
    if (works_here(exchange)) {
        atomic_store_explicit(&exchange->step, step, memory_order_relaxed);
        return exchange->stopped;
    }
    pthread_mutex_lock(&exchange->mutex);
    enum status status = wait_until_delivered(exchange);
    if (status == STATUS_OK) {
        status = wait_for_sends(exchange);
    }
    if (status == STATUS_OK) {
        exchange->step = step;
        exchange->is_awaiting = true;
        exchange->bucket_done_count = exchange->taken_count = 0;
        memset(exchange->is_taken, 0, sizeof(exchange->is_taken));
        exchange->staleness_sum = 0;
        exchange->staleness_count = 0;
    }
    pthread_mutex_unlock(&exchange->mutex);
    return status;
}

/* The first bucket of a step sets out. */
static void note_posted(struct exchange *exchange)
{
    bool is_alone = exchange->options.world == 1 && exchange->ops->delivers == EXCHANGE_GRADIENTS;
    bool is_shared = !works_here(exchange);
    if (is_shared) {
        pthread_mutex_lock(&exchange->mutex);
    }
    if (exchange->posted_ns == 0 && !is_alone) {
        exchange->posted_ns = clock_now_ns();
    }
    if (is_shared) {
        pthread_mutex_unlock(&exchange->mutex);
    }
}

/* The last bucket of a step, or of a pull, has arrived. With the mutex held. */
static void note_complete(struct exchange *exchange)
{
    if (exchange->posted_ns > 0) {
        exchange->wire_ns += clock_now_ns() - exchange->posted_ns;
        exchange->posted_ns = 0;
    }
}

uint64_t exchange_take_wire_ns(struct exchange *exchange)
{
    pthread_mutex_lock(&exchange->mutex);
    uint64_t wire_ns = exchange->wire_ns;
    exchange->wire_ns = 0;
    pthread_mutex_unlock(&exchange->mutex);
    return wire_ns;
}

void exchange_bucket_ready(struct exchange *exchange, uint32_t bucket)
{
    assert(bucket < exchange->options.layout->bucket_count);
    if (bucket == 0) {
        note_posted(exchange);
    }
    if (!works_here(exchange)) {
        exchange->options.post_ready(exchange->options.context, bucket);
        return;
    }
    enum status status = exchange->ops->ready(exchange, bucket);
    if (status != STATUS_OK) {
        exchange_stop(exchange, status); // end_step returns it
    }
}

/* exchange_end_step where this thread does the work. */
static enum status end_step_here(struct exchange *exchange,
                                 enum status (*apply)(void *context, uint32_t bucket),
                                 void *context)
{
    uint32_t bucket_count = exchange->options.layout->bucket_count;
    enum status status = STATUS_OK;
    for (uint32_t bucket = 0; bucket < bucket_count && status == STATUS_OK; bucket++) {
        status = exchange->ops->wait(exchange, bucket);
        if (status != STATUS_OK) {
            exchange_stop(exchange, status);
            break;
        }
        if (bucket + 1 == bucket_count) {
            note_complete(exchange);
        }
        status = apply(context, bucket);
    }
    return status;
}

/* The next bucket that is complete; without the mutex while its mean is applied. */
static enum status take_bucket(struct exchange *exchange,
                               enum status (*apply)(void *context, uint32_t bucket), void *context)
{
    uint32_t bucket = exchange->done[exchange->taken_count++];
    exchange->is_taken[bucket] = true;
    if (exchange->ops->delivers != EXCHANGE_GRADIENTS) {
        return STATUS_OK;
    }
    pthread_mutex_unlock(&exchange->mutex);
    enum status status = apply(context, bucket);
    pthread_mutex_lock(&exchange->mutex);
    return status;
}

enum status exchange_await_bucket(struct exchange *exchange, uint32_t bucket,
                                  enum status (*apply)(void *context, uint32_t bucket),
                                  void *context)
{
    assert(exchange_overlaps(exchange));
    if (exchange->is_taken[bucket]) {
        return STATUS_OK;
    }
    enum status status = STATUS_OK;
    pthread_mutex_lock(&exchange->mutex);
    while (status == STATUS_OK && exchange->stopped == STATUS_OK && !exchange->is_taken[bucket]) {
        if (exchange->taken_count < exchange->bucket_done_count) {
            status = take_bucket(exchange, apply, context);
        } else {
            pthread_cond_wait(&exchange->changed, &exchange->mutex);
        }
    }
    status = exchange->stopped != STATUS_OK ? exchange->stopped : status;
    pthread_mutex_unlock(&exchange->mutex);
    return status;
}

bool exchange_overlaps(const struct exchange *exchange)
{
    return exchange->options.world > 1 && !exchange->options.is_free && !works_here(exchange);
}

enum status exchange_end_step(struct exchange *exchange,
                              enum status (*apply)(void *context, uint32_t bucket), void *context)
{
    if (works_here(exchange)) {
        return end_step_here(exchange, apply, context);
    }
    uint32_t expected =
        exchange->ops->delivers == EXCHANGE_GRADIENTS ? exchange->options.layout->bucket_count : 0;
    // A server may hold a push until this worker has read the end of an epoch: no wait for that
    // here.
    bool waits_for_sends = !exchange->options.is_free;
    enum status status = STATUS_OK;
    pthread_mutex_lock(&exchange->mutex);
    while (status == STATUS_OK && exchange->stopped == STATUS_OK &&
           ((waits_for_sends && exchange->sends_outstanding > 0) ||
            exchange->taken_count < expected)) {
        if (exchange->taken_count < expected &&
            exchange->taken_count < exchange->bucket_done_count) {
            status = take_bucket(exchange, apply, context);
        } else {
            pthread_cond_wait(&exchange->changed, &exchange->mutex);
        }
    }
    status = exchange->stopped != STATUS_OK ? exchange->stopped : status;
    pthread_mutex_unlock(&exchange->mutex);
    return status;
}

uint64_t exchange_epochs_passed(struct exchange *exchange)
{
    pthread_mutex_lock(&exchange->mutex);
    uint64_t epochs = exchange->epochs_passed;
    pthread_mutex_unlock(&exchange->mutex);
    return epochs;
}

struct exchange_fate exchange_fate(struct exchange *exchange)
{
    pthread_mutex_lock(&exchange->mutex);
    uint32_t count = exchange->staleness_count > 0 ? exchange->staleness_count : 1;
    const struct exchange_fate fate = {
        .staleness = exchange->staleness_sum / count,
        .rate = exchange->rate,
        .late_share = exchange->late_share,
    };
    pthread_mutex_unlock(&exchange->mutex);
    return fate;
}

/* Has the communication thread pull what exchange->pull_* say, and waits for it. */
static enum status pull_and_wait(struct exchange *exchange, uint64_t epoch, uint32_t vector,
                                 float *target)
{
    pthread_mutex_lock(&exchange->mutex);
    enum status status = wait_until_delivered(exchange);
    exchange->pull_epoch = epoch;
    exchange->pull_vector = vector;
    exchange->pull_target = target;
    exchange->is_awaiting = true;
    exchange->bucket_done_count = 0;
    pthread_mutex_unlock(&exchange->mutex);
    if (status != STATUS_OK) {
        return status;
    }
    exchange->options.post_ready(exchange->options.context, EXCHANGE_PULL);
    status = exchange_settle(exchange);
    exchange->pull_epoch = 0;
    exchange->pull_vector = 0;
    return status;
}

enum status exchange_pull(struct exchange *exchange, uint64_t epoch)
{
    assert(exchange->options.is_free);
    return pull_and_wait(exchange, epoch, 0, NULL);
}

enum status exchange_pull_state(struct exchange *exchange, uint32_t vector, float *target)
{
    assert(vector > 0 && exchange->ops->pull != NULL);
    return pull_and_wait(exchange, 0, vector, target);
}

void exchange_note_progress(struct exchange *exchange, const struct message *params)
{
    pthread_mutex_lock(&exchange->mutex);
    if (params->epoch > exchange->epochs_passed) {
        exchange->epochs_passed = params->epoch;
    }
    exchange->staleness_sum += (double)params->staleness;
    exchange->staleness_count++;
    exchange->rate = params->rate;
    pthread_mutex_unlock(&exchange->mutex);
}

void exchange_note_late(struct exchange *exchange, double share)
{
    pthread_mutex_lock(&exchange->mutex);
    exchange->late_share = share;
    pthread_mutex_unlock(&exchange->mutex);
}

enum status exchange_start(struct exchange *exchange)
{
    return exchange->ops->start(exchange);
}

enum status exchange_run_ready(struct exchange *exchange, uint32_t bucket)
{
    return bucket == EXCHANGE_PULL ? exchange->ops->pull(exchange)
                                   : exchange->ops->ready(exchange, bucket);
}

enum status exchange_go_on(struct exchange *exchange)
{
    return exchange->ops->go_on != NULL ? exchange->ops->go_on(exchange) : STATUS_OK;
}

enum status exchange_deliver(struct exchange *exchange, const struct message *message,
                             struct envelope *envelope)
{
    return exchange->ops->deliver(exchange, message, envelope);
}

void exchange_stop(struct exchange *exchange, enum status status)
{
    assert(status != STATUS_OK);
    pthread_mutex_lock(&exchange->mutex);
    if (exchange->stopped == STATUS_OK) {
        exchange->stopped = status;
    }
    pthread_cond_broadcast(&exchange->changed);
    pthread_mutex_unlock(&exchange->mutex);
}

enum status exchange_stopped(struct exchange *exchange)
{
    return exchange->stopped;
}

void exchange_mark_done(struct exchange *exchange, uint32_t bucket)
{
    pthread_mutex_lock(&exchange->mutex);
    assert(exchange->bucket_done_count < exchange->options.layout->bucket_count);
    exchange->done[exchange->bucket_done_count++] = bucket;
    if (exchange->bucket_done_count == exchange->options.layout->bucket_count) {
        note_complete(exchange);
    }
    // Only who waits in end_step has a use for a single one; a wake for nothing costs a little.
    pthread_cond_broadcast(&exchange->changed);
    pthread_mutex_unlock(&exchange->mutex);
}

void exchange_count_send(struct exchange *exchange)
{
    pthread_mutex_lock(&exchange->mutex);
    exchange->sends_outstanding++;
    pthread_mutex_unlock(&exchange->mutex);
}

void exchange_count_read(void *hint)
{
    struct exchange *exchange = hint;
    pthread_mutex_lock(&exchange->mutex);
    if (--exchange->sends_outstanding == 0) {
        pthread_cond_broadcast(&exchange->changed);
    }
    pthread_mutex_unlock(&exchange->mutex);
}

enum status exchange_send(struct exchange *exchange, uint64_t peer, const struct message *message)
{
    exchange_count_send(exchange);
    enum status status =
        channel_send(exchange->options.channel, peer, message, exchange_count_read, exchange);
    if (status != STATUS_OK) {
        exchange_count_read(exchange);
    }
    return status;
}

enum status exchange_say_hello(struct exchange *exchange, const struct lanes *lanes,
                               const struct message *hello)
{
    struct message one = *hello;
    enum status status = STATUS_OK;
    for (one.lane = 0; one.lane < lanes->count && status == STATUS_OK; one.lane++) {
        status = channel_send(exchange->options.channel, lanes->peers[one.lane], &one, NULL, NULL);
    }
    return status;
}
