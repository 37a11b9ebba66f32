/* Makes the exchange of a mode: chooses its strategy, and the thread that does the work. */
#include "worker/exchange/exchange.h"

#include "worker/exchange/encoder.h"
#include "worker/exchange/strategies.h"

#include <assert.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

/* Of ring, the one by messages. */
static const struct exchange_strategy *strategy_of(enum mode_kind mode)
{
    const struct exchange_strategy *strategy = NULL;
    switch (mode) {
    case MODE_LOCAL:
        strategy = &exchange_local;
        break;
    case MODE_RING:
        strategy = &exchange_chunks;
        break;
    case MODE_PS_SYNC:
    case MODE_PS_SSP:
    case MODE_PS_ASYNC:
        strategy = &exchange_ps;
        break;
    }
    assert(strategy != NULL);
    return strategy;
}

const struct exchange_ops *exchange_of(enum mode_kind mode)
{
    return &strategy_of(mode)->ops;
}

float *exchange_residual(const struct exchange *exchange, uint32_t index)
{
    return index < exchange->encoder_count ? exchange->encoders[index].residual : NULL;
}

/* Which ranks this process carries, and where their gradients are. */
static void find_block(struct exchange_options *options)
{
    if (options->processes == 0) {
        options->processes = options->world - options->left_out.count;
    }
    options->carriers = (struct carriers){options->world, options->processes, options->left_out};
    options->process = carriers_process(options->carriers, options->rank);
    options->block = carriers_block(options->carriers, options->process);
    assert(options->block.first == options->rank);
    assert(
        options->block.count == 1 || options->is_unsynchronised ||
        (options->vectors != NULL && options->vectors[options->block.count - 1] == options->grads));
}

enum status exchange_create(const struct exchange_options *options, struct exchange **ret_exchange)
{
    struct exchange_options complete = *options;
    const struct exchange_strategy *strategy = strategy_of(options->mode);
    if (strategy == &exchange_chunks && options->group != NULL) {
        strategy = &exchange_shared;
    }
    if (strategy == &exchange_chunks && options->devices_id != NULL) {
        strategy = &exchange_devices;
    }
    if (strategy == &exchange_ps && options->takes_means) {
        assert(!options->is_unsynchronised && options->device == NULL);
        strategy = &exchange_ps_means;
    }
    find_block(&complete);
    struct exchange *exchange;
    enum status status = strategy->create(&complete, &exchange);
    if (status != STATUS_OK) {
        return status;
    }
    exchange->ops = &strategy->ops;
    exchange->driver = strategy->ops.inline_ops != NULL ? &exchange_inline : &exchange_threaded;
    exchange->options = complete;
    if (complete.vectors == NULL) {
        exchange->options.vectors = &exchange->options.grads;
    }
    exchange->mean_factor = 1.0f / (float)options->world;
    exchange->stopped = STATUS_OK;
    exchange->written = EXCHANGE_NONE;
    // UINT64_MAX before step 0
    exchange->step = options->first_step * exchange_turns(exchange) - 1;
    exchange->is_awaiting = options->is_unsynchronised; // the first parameters
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

enum status exchange_meet(struct exchange *exchange, const struct exchange_device *device,
                          bool *ret_has_met)
{
    enum status status = STATUS_OK;
    *ret_has_met = false;
    if (exchange->ops->inline_ops != NULL) {
        status = exchange->ops->inline_ops->meet(exchange, device, ret_has_met);
    }
    exchange->has_met = *ret_has_met;
    return status;
}

void exchange_count_modelled(struct exchange *exchange, uint32_t bucket)
{
    const struct exchange_options *options = &exchange->options;
    uint64_t bytes = options->layout->buckets[bucket].count * sizeof(float);
    uint64_t modelled = 2 * bytes * (options->processes - 1) / options->processes;
    atomic_fetch_add_explicit(&options->channel->bytes_sent, modelled, memory_order_relaxed);
    atomic_fetch_add_explicit(&options->channel->bytes_received, modelled, memory_order_relaxed);
}

enum status exchange_start(struct exchange *exchange)
{
    const struct exchange_message_ops *ops = exchange->ops->message_ops;
    return ops != NULL ? ops->start(exchange) : STATUS_OK;
}

enum status exchange_run_ready(struct exchange *exchange, uint32_t bucket)
{
    return bucket == EXCHANGE_PULL ? exchange->ops->message_ops->pull(exchange)
                                   : exchange->ops->ready(exchange, bucket);
}

enum status exchange_go_on(struct exchange *exchange)
{
    const struct exchange_message_ops *ops = exchange->ops->message_ops;
    return ops != NULL ? ops->go_on(exchange) : STATUS_OK;
}

enum status exchange_deliver(struct exchange *exchange, const struct message *message,
                             struct envelope *envelope)
{
    const struct exchange_message_ops *ops = exchange->ops->message_ops;
    return ops != NULL ? ops->deliver(exchange, message, envelope) : STATUS_MALFORMED;
}

bool exchange_awaits(const struct exchange *exchange, struct wire_wait *ret_wait)
{
    const struct exchange_message_ops *ops = exchange->ops->message_ops;
    return ops != NULL && ops->awaits(exchange, ret_wait);
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
    if (exchange->ops->inline_ops != NULL) {
        exchange->ops->inline_ops->stop(exchange);
    }
}

enum status exchange_stopped(struct exchange *exchange)
{
    return exchange->stopped;
}
