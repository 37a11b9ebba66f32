/* All-reduce by the workers' devices, wherever they are: a library of theirs connects them, and
 * adds up in an order of its own (NCCL). The exchange hands it one bucket after the other, on the
 * trainer's thread, and ends its waits when the job is over. No message travels. */
#include "worker/exchange/exchange_device.h"
#include "worker/exchange/strategies.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>

struct devices_exchange {
    struct exchange base;
    const struct exchange_device *_Atomic device; // borrowed; NULL before they meet
};

static struct devices_exchange *of(struct exchange *exchange)
{
    return (struct devices_exchange *)exchange;
}

static enum status devices_create(const struct exchange_options *options,
                                  struct exchange **ret_exchange)
{
    (void)options;
    struct devices_exchange *exchange = calloc(1, sizeof(*exchange));
    if (exchange == NULL) {
        return STATUS_NO_MEMORY;
    }
    *ret_exchange = &exchange->base;
    return STATUS_OK;
}

static bool is_stopped(void *context)
{
    return exchange_stopped(context) != STATUS_OK;
}

/* There is no other way, so a device that cannot is an error. */
static enum status devices_meet(struct exchange *exchange, const struct exchange_device *device,
                                bool *ret_has_met)
{
    const struct exchange_options *options = &exchange->options;
    if (device == NULL || device->join == NULL) {
        return STATUS_UNSUPPORTED;
    }
    const struct exchange_joining joining = {
        .rank = options->rank,
        .world = options->world,
        .bucket_count = options->layout->bucket_count,
        .id = options->devices_id,
        .is_stopped = is_stopped,
        .context = exchange,
    };
    atomic_store(&of(exchange)->device, device);
    enum status status = device->join(device->context, &joining);
    *ret_has_met = status == STATUS_OK;
    return status == STATUS_INTERRUPTED && is_stopped(exchange) ? exchange_stopped(exchange)
                                                                : status;
}

static void devices_stop(struct exchange *exchange)
{
    const struct exchange_device *device = atomic_load(&of(exchange)->device);
    if (device != NULL) {
        device->stop(device->context);
    }
}

static enum status devices_ready(struct exchange *exchange, uint32_t bucket)
{
    const struct exchange_device *device = atomic_load(&of(exchange)->device);
    assert(device != NULL && exchange->has_met);
    enum status status = device->sum(device->context, bucket);
    return status == STATUS_INTERRUPTED && is_stopped(exchange) ? exchange_stopped(exchange)
                                                                : status;
}

/* What comes after is queued behind the sum. */
static enum status devices_wait(struct exchange *exchange, uint32_t bucket)
{
    exchange_count_modelled(exchange, bucket);
    return STATUS_OK;
}

static void devices_destroy(struct exchange *exchange)
{
    free(exchange);
}

static const struct exchange_inline_ops devices_inline_ops = {
    .meet = devices_meet,
    .wait = devices_wait,
    .stop = devices_stop,
};

const struct exchange_strategy exchange_devices = {
    .ops =
        {
            .delivers = EXCHANGE_GRADIENTS,
            .inline_ops = &devices_inline_ops,
            .ready = devices_ready,
            .destroy = devices_destroy,
        },
    .create = devices_create,
};
