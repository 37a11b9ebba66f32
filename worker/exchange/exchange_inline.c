/* The exchange on the trainer's own thread, where the workers of one host sum in shared memory, or
 * devices sum. It shares nothing with the communication thread, except that it may be stopped; so
 * it needs no mutex. What fails here is no stop: the trainer has to tell the job of it. */
#include "common/base/clock.h"
#include "worker/exchange/strategies.h"

/* A stop from elsewhere is what counts: what fails after it may do so because of it. */
static enum status ending_of(const struct exchange *exchange)
{
    enum status stopped = exchange->stopped;
    return stopped != STATUS_OK ? stopped : exchange->failure;
}

static enum status settle(struct exchange *exchange)
{
    return ending_of(exchange);
}

static enum status begin_step(struct exchange *exchange, uint64_t step)
{
    atomic_store_explicit(&exchange->step, step, memory_order_relaxed);
    return ending_of(exchange);
}

static void buckets_ready(struct exchange *exchange, uint32_t first, uint32_t count)
{
    if (first == 0) {
        exchange->posted_ns = clock_now_ns();
    }
    // After a stop, whose waits were ended, nothing may follow that waits.
    for (uint32_t i = 0; i < count && ending_of(exchange) == STATUS_OK; i++) {
        exchange->failure = exchange->ops->ready(exchange, first + i); // end_step returns it
    }
}

static enum status end_step(struct exchange *exchange,
                            enum status (*apply)(void *context, uint32_t bucket), void *context)
{
    uint32_t bucket_count = exchange->options.layout->bucket_count;
    for (uint32_t bucket = 0; bucket < bucket_count; bucket++) {
        enum status status = ending_of(exchange);
        if (status == STATUS_OK) {
            status = exchange->failure = exchange->ops->inline_ops->wait(exchange, bucket);
        }
        if (status != STATUS_OK) {
            return ending_of(exchange);
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
    .buckets_ready = buckets_ready,
    .await_bucket = NULL, // no bucket arrives while this thread does something else
    .take_ready = NULL,   // likewise
    .end_step = end_step,
    .settle = settle,
};
