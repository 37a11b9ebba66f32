/* All-reduces for workers on one host, directly in each other's memory. group.h does the work on
 * the trainers' threads. No message travels, and the communication thread sleeps. */
#include "worker/exchange/shared/group.h"
#include "worker/exchange/strategies.h"

#include <stdlib.h>

static enum status shared_create(const struct exchange_options *options,
                                 struct exchange **ret_exchange)
{
    if (options->group == NULL) {
        return STATUS_INVALID;
    }
    struct exchange *exchange = calloc(1, sizeof(*exchange));
    if (exchange == NULL) {
        return STATUS_NO_MEMORY;
    }
    *ret_exchange = exchange;
    return STATUS_OK;
}

static bool is_stopped(void *context)
{
    return exchange_stopped(context) != STATUS_OK;
}

static enum status shared_meet(struct exchange *exchange, const struct exchange_device *device,
                               bool *ret_has_met)
{
    enum status status =
        group_meet(exchange->options.group, device, is_stopped, exchange, ret_has_met);
    return status == STATUS_INTERRUPTED ? exchange_stopped(exchange) : status;
}

static void shared_stop(struct exchange *exchange)
{
    group_release(exchange->options.group);
}

static enum status shared_ready(struct exchange *exchange, uint32_t bucket)
{
    return group_arrive(exchange->options.group, bucket);
}

static enum status shared_wait(struct exchange *exchange, uint32_t bucket)
{
    enum status status = group_wait(exchange->options.group, bucket, is_stopped, exchange);
    exchange_count_modelled(exchange, bucket);
    return status == STATUS_INTERRUPTED ? exchange_stopped(exchange) : status;
}

static void shared_destroy(struct exchange *exchange)
{
    free(exchange);
}

static const struct exchange_inline_ops shared_inline_ops = {
    .meet = shared_meet,
    .wait = shared_wait,
    .stop = shared_stop,
};

const struct exchange_strategy exchange_shared = {
    .ops =
        {
            .delivers = EXCHANGE_GRADIENTS,
            .inline_ops = &shared_inline_ops,
            .ready = shared_ready,
            .destroy = shared_destroy,
        },
    .create = shared_create,
};
