/* Makes the exchange of a mode: finds its strategy, and whose thread does the work. */
#include "worker/exchange/exchange.h"

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
    exchange->driver = strategy->ops.wait != NULL ? &exchange_inline : &exchange_threaded;
    exchange->options = *options;
    exchange->mean_factor = 1.0f / (float)options->world;
    exchange->stopped = STATUS_OK;
    exchange->step = UINT64_MAX;
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
