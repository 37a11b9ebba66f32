/* The exchange on the trainer's own thread, where the workers of one host sum in shared memory. It
 * shares nothing with the communication thread, except that it may be stopped; so it needs no
 * mutex. */
#include "common/base/clock.h"
#include "worker/exchange/strategies.h"

static enum status settle(struct exchange *exchange)
{
    return exchange->stopped;
}

static enum status begin_step(struct exchange *exchange, uint64_t step)
{
    atomic_store_explicit(&exchange->step, step, memory_order_relaxed);
    return exchange->stopped;
}

static void bucket_ready(struct exchange *exchange, uint32_t bucket)
{
    if (bucket == 0) {
        exchange->posted_ns = clock_now_ns();
    }
    enum status status = exchange->ops->ready(exchange, bucket);
    if (status != STATUS_OK) {
        exchange_stop(exchange, status); // end_step returns it
    }
}

static enum status end_step(struct exchange *exchange,
                            enum status (*apply)(void *context, uint32_t bucket), void *context)
{
    uint32_t bucket_count = exchange->options.layout->bucket_count;
    for (uint32_t bucket = 0; bucket < bucket_count; bucket++) {
        enum status status = exchange->ops->wait(exchange, bucket);
        if (status != STATUS_OK) {
            exchange_stop(exchange, status);
            return status;
        }
        if (bucket + 1 == bucket_count) {
            exchange->wire_ns += clock_now_ns() - exchange->posted_ns;
        }
        status = apply(context, bucket);
        if (status != STATUS_OK) {
            return status;
        }
    }
    return STATUS_OK;
}

const struct exchange_driver exchange_inline = {
    .begin_step = begin_step,
    .bucket_ready = bucket_ready,
    .await_bucket = NULL, // no bucket arrives while this thread does something else
    .end_step = end_step,
    .settle = settle,
};
