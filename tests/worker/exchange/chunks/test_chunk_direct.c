/* Tests of direct exchange: one worker whose neighbour the test plays. That all ranks end with the
 * bits of the ring is in test_exchange.c. */
#include "tests/support/exchange/exchange_workers.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on

enum { HOP_VALUES = 1, HOP_MEAN = 2 };

/* Rank 0 of two, whose chunk is longer than that of rank 1: floats 0 and 1, and float 2. */
static void a_mean_that_comes_twice_is_refused_and_counts_once(void **state)
{
    (void)state;
    const struct layout layout = {.value_count = 3, .bucket_count = 1, .buckets = {{0, 3}}};
    const float mean = 7, others[] = {1, 2};
    struct exchange_worker worker;
    exchange_worker_open(&worker, 0, 2, &layout);
    struct exchange_options options = exchange_worker_options(&worker);
    options.limits = (struct all_reduce_limits){0, UINT64_MAX};
    exchange_worker_create(&worker, &options);
    assert_int_equal(exchange_begin_step(worker.exchange, 0), STATUS_OK);
    worker.grads[0] = 3;
    worker.grads[1] = 4;
    const struct message its_mean = {
        .kind = MESSAGE_CHUNK, .rank = 1, .hop = HOP_MEAN, .span = {2, 1}, .values = &mean};
    const struct message its_values = {
        .kind = MESSAGE_CHUNK, .rank = 1, .hop = HOP_VALUES, .span = {0, 2}, .values = others};
    assert_int_equal(exchange_run_ready(worker.exchange, 0), STATUS_OK);
    assert_int_equal(exchange_worker_deliver(&worker, &its_mean), STATUS_OK);
    assert_int_equal(exchange_worker_deliver(&worker, &its_mean), STATUS_MALFORMED);
    assert_int_equal(worker.exchange->bucket_done_count, 0);
    assert_int_equal(exchange_worker_deliver(&worker, &its_values), STATUS_OK);
    assert_int_equal(worker.exchange->bucket_done_count, 1);
    assert_true(worker.grads[0] == 2 && worker.grads[1] == 3 && worker.grads[2] == 7);
    // The bucket is done: nothing of this step is wanted any more.
    assert_int_equal(exchange_worker_deliver(&worker, &its_values), STATUS_MALFORMED);
    assert_int_equal(exchange_worker_deliver(&worker, &its_mean), STATUS_MALFORMED);
    exchange_worker_close(&worker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_mean_that_comes_twice_is_refused_and_counts_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
