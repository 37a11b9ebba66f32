/* All-reduce of workers on one host, straight in each other's memory: group.h does the work, on the
 * trainer's threads. No message travels, and the communication thread sleeps. */
#include "worker/exchange/shared/group.h"
#include "worker/exchange/strategies.h"

#include <stdatomic.h>
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

static enum status shared_start(struct exchange *exchange)
{
    (void)exchange;
    return STATUS_OK;
}

static enum status shared_ready(struct exchange *exchange, uint32_t bucket)
{
    return group_arrive(exchange->options.group, bucket);
}

static bool is_stopped(void *context)
{
    return exchange_stopped(context) != STATUS_OK;
}

static enum status shared_wait(struct exchange *exchange, uint32_t bucket)
{
    const struct exchange_options *options = &exchange->options;
    enum status status = group_wait(options->group, bucket, is_stopped, exchange);
    // No byte travels. For comparison the bytes that a ring would have carried are counted; the
    // job's details say that they are modelled.
    uint64_t bytes = options->layout->buckets[bucket].count * sizeof(float);
    uint64_t modelled = 2 * bytes * (options->world - 1) / options->world;
    atomic_fetch_add_explicit(&options->channel->bytes_sent, modelled, memory_order_relaxed);
    atomic_fetch_add_explicit(&options->channel->bytes_received, modelled, memory_order_relaxed);
    return status == STATUS_INTERRUPTED ? exchange_stopped(exchange) : status;
}

static enum status shared_deliver(struct exchange *exchange, const struct message *message,
                                  struct envelope *envelope)
{
    (void)exchange;
    (void)message;
    (void)envelope;
    return STATUS_MALFORMED;
}

static void shared_destroy(struct exchange *exchange)
{
    free(exchange);
}

const struct exchange_strategy exchange_shared = {
    .ops =
        {
            .delivers = EXCHANGE_GRADIENTS,
            .start = shared_start,
            .ready = shared_ready,
            .wait = shared_wait,
            .deliver = shared_deliver,
            .destroy = shared_destroy,
        },
    .create = shared_create,
};
