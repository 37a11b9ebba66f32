/* Runs the exchange on the communication thread: holds what the trainer's thread waits for and what
 * strategies report, under the exchange's mutex. */
#include "common/base/clock.h"
#include "worker/exchange/strategies.h"

#include <assert.h>
#include <string.h>

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

static enum status settle(struct exchange *exchange)
{
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

static enum status begin_step(struct exchange *exchange, uint64_t step)
{
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
    const struct exchange_message_ops *ops = exchange->ops->message_ops;
    bool has_servers = ops != NULL && ops->pull != NULL;
    bool is_alone = exchange->options.processes == 1 && !has_servers;
    pthread_mutex_lock(&exchange->mutex);
    if (exchange->posted_ns == 0 && !is_alone) {
        exchange->posted_ns = clock_now_ns();
    }
    pthread_mutex_unlock(&exchange->mutex);
}

static void buckets_ready(struct exchange *exchange, uint32_t first, uint32_t count)
{
    if (first == 0) {
        note_posted(exchange);
    }
    exchange->options.post_ready(exchange->options.context, first, count);
}

/* Takes the next complete bucket. Releases the mutex while its mean is applied. */
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

static enum status await_bucket(struct exchange *exchange, uint32_t bucket,
                                enum status (*apply)(void *context, uint32_t bucket), void *context)
{
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

static enum status take_ready(struct exchange *exchange,
                              enum status (*apply)(void *context, uint32_t bucket), void *context)
{
    enum status status = STATUS_OK;
    pthread_mutex_lock(&exchange->mutex);
    while (status == STATUS_OK && exchange->stopped == STATUS_OK &&
           exchange->taken_count < exchange->bucket_done_count) {
        status = take_bucket(exchange, apply, context);
    }
    status = exchange->stopped != STATUS_OK ? exchange->stopped : status;
    pthread_mutex_unlock(&exchange->mutex);
    return status;
}

static enum status end_step(struct exchange *exchange,
                            enum status (*apply)(void *context, uint32_t bucket), void *context)
{
    uint32_t expected =
        exchange->ops->delivers == EXCHANGE_GRADIENTS ? exchange->options.layout->bucket_count : 0;
    // A server may hold a push until this worker has read a mark, so this does not wait for it.
    bool waits_for_sends = !exchange->options.is_unsynchronised;
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

const struct exchange_driver exchange_threaded = {
    .begin_step = begin_step,
    .buckets_ready = buckets_ready,
    .await_bucket = await_bucket,
    .take_ready = take_ready,
    .end_step = end_step,
    .settle = settle,
};

/* The last bucket of a step, or of a pull, has arrived. With the mutex held. */
static void note_complete(struct exchange *exchange)
{
    if (exchange->posted_ns > 0) {
        exchange->wire_ns += clock_now_ns() - exchange->posted_ns;
        exchange->posted_ns = 0;
    }
}

void exchange_mark_done(struct exchange *exchange, uint32_t bucket)
{
    pthread_mutex_lock(&exchange->mutex);
    assert(exchange->bucket_done_count < exchange->options.layout->bucket_count);
    exchange->done[exchange->bucket_done_count++] = bucket;
    if (exchange->bucket_done_count == exchange->options.layout->bucket_count) {
        note_complete(exchange);
    }
    // A single bucket only matters to a trainer in end_step, and a needless wake costs a little.
    pthread_cond_broadcast(&exchange->changed);
    pthread_mutex_unlock(&exchange->mutex);
}

uint64_t exchange_take_wire_ns(struct exchange *exchange)
{
    pthread_mutex_lock(&exchange->mutex);
    uint64_t wire_ns = exchange->wire_ns;
    exchange->wire_ns = 0;
    pthread_mutex_unlock(&exchange->mutex);
    return wire_ns;
}

uint64_t exchange_marks_passed(struct exchange *exchange)
{
    pthread_mutex_lock(&exchange->mutex);
    uint64_t count = exchange->marks_passed;
    pthread_mutex_unlock(&exchange->mutex);
    return count;
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

/* Lets the communication thread pull what exchange->pull_* say, and waits for it. */
static enum status pull_and_wait(struct exchange *exchange, uint64_t mark, uint32_t vector,
                                 float *target)
{
    pthread_mutex_lock(&exchange->mutex);
    enum status status = wait_until_delivered(exchange);
    exchange->pull_mark = mark;
    exchange->pull_vector = vector;
    exchange->pull_target = target;
    exchange->is_awaiting = true;
    exchange->bucket_done_count = 0;
    pthread_mutex_unlock(&exchange->mutex);
    if (status != STATUS_OK) {
        return status;
    }
    exchange->options.post_ready(exchange->options.context, EXCHANGE_PULL, 1);
    status = settle(exchange);
    exchange->pull_mark = 0;
    exchange->pull_vector = 0;
    return status;
}

enum status exchange_pull(struct exchange *exchange, uint64_t mark)
{
    assert(exchange->options.is_unsynchronised);
    return pull_and_wait(exchange, mark, 0, NULL);
}

enum status exchange_pull_state(struct exchange *exchange, uint32_t vector, float *target)
{
    assert(vector > 0 && exchange->ops->delivers == EXCHANGE_PARAMS);
    return pull_and_wait(exchange, 0, vector, target);
}

void exchange_note_progress(struct exchange *exchange, const struct message *params)
{
    pthread_mutex_lock(&exchange->mutex);
    if (params->mark > exchange->marks_passed) {
        exchange->marks_passed = params->mark;
    }
    exchange->staleness_sum += (double)params->outcome->staleness;
    exchange->staleness_count++;
    exchange->rate = params->outcome->rate;
    pthread_mutex_unlock(&exchange->mutex);
}

void exchange_note_late(struct exchange *exchange, double share)
{
    pthread_mutex_lock(&exchange->mutex);
    exchange->late_share = share;
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

enum status exchange_say_hello(struct exchange *exchange, const struct lanes *lanes, bool is_far)
{
    const struct exchange_options *options = &exchange->options;
    struct wire_hello hello = {.is_far = is_far};
    const struct message message = {.kind = MESSAGE_HELLO, .rank = options->rank, .hello = &hello};
    enum status status = STATUS_OK;
    for (; hello.lane < lanes->count && status == STATUS_OK; hello.lane++) {
        status = channel_send(options->channel, lanes->peers[hello.lane], &message, NULL, NULL);
    }
    return status;
}
