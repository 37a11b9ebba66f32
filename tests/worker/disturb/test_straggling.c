/* Tests of being slow on purpose: what counts as computing, and what as waiting. */
#include "worker/disturb/straggling.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdio.h>

#define MS UINT64_C(1000000)

static float values[1];
static const struct layout layout = {.value_count = 1, .bucket_count = 1, .buckets = {{0, 1}}};

static struct straggling open_straggling(const char *text)
{
    struct job job = {.seed = 1};
    struct straggling straggling;
    snprintf(job.straggler, sizeof(job.straggler), "%s", text);
    straggling_init(&straggling, &job, 1);
    return straggling;
}

static struct exchange *open_exchange(void)
{
    const struct exchange_options options = {
        .mode = MODE_LOCAL, .world = 1, .layout = &layout, .params = values, .grads = values};
    struct exchange *exchange;
    assert_int_equal(exchange_create(&options, &exchange), STATUS_OK);
    return exchange;
}

static void a_step_takes_as_long_as_the_faster_of_the_last_two(void **state)
{
    (void)state;
    struct straggling straggling = open_straggling("rank=1,factor=50");
    static const uint64_t took[] = {900, 20, 30, 25, 40}, expected[] = {0, 20, 20, 25, 25};
    for (unsigned i = 0; i < sizeof(took) / sizeof(took[0]); i++) {
        straggling_note(&straggling, took[i] * MS);
        assert_int_equal(straggling.compute_ns, expected[i] * MS);
    }
}

static void what_was_slept_too_long_is_no_computing(void **state)
{
    (void)state;
    struct straggling straggling = open_straggling("rank=1,factor=3");
    struct exchange *exchange = open_exchange();
    straggling_note(&straggling, MS);
    straggling_note(&straggling, MS);
    straggling_wait(&straggling, exchange, 2);
    assert_true(straggling.waited_ns > 2 * MS); // nobody wakes in the very nanosecond
    straggling_note(&straggling, straggling.waited_ns + MS);
    assert_int_equal(straggling.compute_ns, MS);
    assert_int_equal(straggling.last_ns, MS);
    exchange_destroy(exchange);
}

/* Or this test would take a day. */
static void a_stop_ends_the_wait(void **state)
{
    (void)state;
    struct straggling straggling = open_straggling("rank=1,factor=1000");
    struct exchange *exchange = open_exchange();
    straggling_note(&straggling, 100000 * MS);
    straggling_note(&straggling, 100000 * MS);
    exchange_stop(exchange, STATUS_INTERRUPTED);
    straggling_wait(&straggling, exchange, 2);
    assert_int_equal(straggling.waited_ns, 0);
    exchange_destroy(exchange);
}

static void who_is_not_slow_waits_for_nothing(void **state)
{
    (void)state;
    struct straggling straggling = open_straggling("rank=0,factor=3");
    struct exchange *exchange = open_exchange();
    straggling_note(&straggling, MS);
    straggling_note(&straggling, MS);
    straggling_wait(&straggling, exchange, 2);
    assert_int_equal(straggling.waited_ns, 0);
    exchange_destroy(exchange);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_takes_as_long_as_the_faster_of_the_last_two),
        cmocka_unit_test(what_was_slept_too_long_is_no_computing),
        cmocka_unit_test(a_stop_ends_the_wait),
        cmocka_unit_test(who_is_not_slow_waits_for_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
