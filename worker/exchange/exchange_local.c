/* Exchanges nothing: the gradient of a single worker is the mean. */
#include "worker/exchange/strategies.h"

#include <stdlib.h>

static enum status local_create(const struct exchange_options *options,
                                struct exchange **ret_exchange)
{
    if (options->world != 1) {
        return STATUS_INVALID;
    }
    struct exchange *exchange = calloc(1, sizeof(*exchange));
    if (exchange == NULL) {
        return STATUS_NO_MEMORY;
    }
    *ret_exchange = exchange;
    return STATUS_OK;
}

static enum status local_ready(struct exchange *exchange, uint32_t bucket)
{
    exchange_mark_done(exchange, bucket);
    return STATUS_OK;
}

static void local_destroy(struct exchange *exchange)
{
    free(exchange);
}

const struct exchange_strategy exchange_local = {
    .ops =
        {
            .delivers = EXCHANGE_GRADIENTS,
            .ready = local_ready,
            .destroy = local_destroy,
        },
    .create = local_create,
};
