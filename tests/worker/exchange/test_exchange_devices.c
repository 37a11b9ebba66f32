/* Tests of the all-reduce by the devices' own library, with a device that a test plays. */
#include "tests/support/exchange/exchange_workers.h"
#include "worker/exchange/exchange_device.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <string.h>

static const unsigned char id[EXCHANGE_ID_BYTES] = {1, 2, [EXCHANGE_ID_BYTES - 1] = 3};

struct played {
    struct exchange_worker worker;
    struct exchange_device device;
    enum status answer; // to a join and a sum
    bool stops;         // the job ends while it joins
    struct exchange_joining joining;
    unsigned char id[EXCHANGE_ID_BYTES];
    uint32_t sums, stop_count;
};

static enum status join(void *context, const struct exchange_joining *joining)
{
    struct played *played = context;
    played->joining = *joining;
    memcpy(played->id, joining->id, sizeof(played->id));
    assert_false(joining->is_stopped(joining->context));
    if (played->stops) {
        exchange_stop(played->worker.exchange, STATUS_TIMED_OUT);
        assert_true(joining->is_stopped(joining->context));
        return STATUS_INTERRUPTED;
    }
    return played->answer;
}

static enum status sum(void *context, uint32_t bucket)
{
    struct played *played = context;
    played->sums |= UINT32_C(1) << bucket;
    return played->answer;
}

static void stop(void *context)
{
    struct played *played = context;
    played->stop_count++;
}

static struct layout layout = {
    .value_count = 8, .bucket_count = 2, .buckets = {{4, 4}, {0, 4}}, .digest = 5};

static void open_played(struct played *played)
{
    *played = (struct played){0};
    played->device =
        (struct exchange_device){.join = join, .stop = stop, .sum = sum, .context = played};
    exchange_worker_open(&played->worker, 1, 2, &layout);
    struct exchange_options options = exchange_worker_options(&played->worker);
    options.devices_id = id;
    exchange_worker_create(&played->worker, &options);
}

static enum status meet(struct played *played, bool has_device)
{
    bool has_met;
    enum status status =
        exchange_meet(played->worker.exchange, has_device ? &played->device : NULL, &has_met);
    assert_int_equal(has_met, status == STATUS_OK);
    return status;
}

static enum status apply(void *context, uint32_t bucket)
{
    struct played *played = context;
    assert_true((played->sums >> bucket & 1) != 0); // what is queued before
    return STATUS_OK;
}

static void devices_that_have_joined_sum_every_bucket(void **state)
{
    (void)state;
    struct played played;
    open_played(&played);
    struct exchange *exchange = played.worker.exchange;
    assert_int_equal(meet(&played, true), STATUS_OK);
    assert_int_equal(played.joining.rank, 1);
    assert_int_equal(played.joining.world, 2);
    assert_int_equal(played.joining.bucket_count, 2);
    assert_memory_equal(played.id, id, sizeof(id));
    for (uint64_t step = 0; step < 2; step++) {
        played.sums = 0;
        assert_int_equal(exchange_begin_step(exchange, step), STATUS_OK);
        exchange_buckets_ready(exchange, 0, 1);
        exchange_buckets_ready(exchange, 1, 1);
        assert_int_equal(exchange_end_step(exchange, apply, &played), STATUS_OK);
        assert_int_equal(played.sums, 3);
    }
    // A ring of two would have carried each value once out of each worker, and once into it.
    assert_int_equal(played.worker.channel->bytes_sent, 2 * sizeof(float) * layout.value_count);
    exchange_worker_close(&played.worker);
}

static void a_device_that_cannot_is_an_error(void **state)
{
    (void)state;
    struct played played;
    open_played(&played);
    assert_int_equal(meet(&played, false), STATUS_UNSUPPORTED);
    played.answer = STATUS_DEVICE;
    assert_int_equal(meet(&played, true), STATUS_DEVICE);
    exchange_worker_close(&played.worker);
}

static void a_stop_ends_a_join_and_what_waits_after_it(void **state)
{
    (void)state;
    struct played played;
    open_played(&played);
    played.stops = true;
    assert_int_equal(meet(&played, true), STATUS_TIMED_OUT);
    assert_int_equal(played.stop_count, 1);
    assert_int_equal(exchange_begin_step(played.worker.exchange, 0), STATUS_TIMED_OUT);
    exchange_worker_close(&played.worker);
}

/* The coordinator is to hear of it, and would not if the exchange counted as stopped by it. */
static void a_sum_that_fails_ends_the_step_and_is_no_stop(void **state)
{
    (void)state;
    struct played played;
    open_played(&played);
    struct exchange *exchange = played.worker.exchange;
    assert_int_equal(meet(&played, true), STATUS_OK);
    assert_int_equal(exchange_begin_step(exchange, 0), STATUS_OK);
    played.answer = STATUS_DEVICE;
    exchange_buckets_ready(exchange, 0, 1);
    exchange_buckets_ready(exchange, 1, 1);
    assert_int_equal(played.sums, 1); // nothing follows
    assert_int_equal(exchange_end_step(exchange, apply, &played), STATUS_DEVICE);
    assert_int_equal(exchange_stopped(exchange), STATUS_OK);
    assert_int_equal(exchange_begin_step(exchange, 1), STATUS_DEVICE);
    exchange_stop(exchange, STATUS_UNREACHABLE); // which is why others may fail
    assert_int_equal(exchange_begin_step(exchange, 2), STATUS_UNREACHABLE);
    exchange_worker_close(&played.worker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(devices_that_have_joined_sum_every_bucket),
        cmocka_unit_test(a_device_that_cannot_is_an_error),
        cmocka_unit_test(a_stop_ends_a_join_and_what_waits_after_it),
        cmocka_unit_test(a_sum_that_fails_ends_the_step_and_is_no_stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
