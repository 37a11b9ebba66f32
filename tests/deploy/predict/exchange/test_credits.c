/* Which pushes workers are told of, where nobody may get ahead. */
#include "deploy/predict/exchange/credits.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h> // needs the four above
// clang-format on

#define BUCKETS 3

static const double bytes[BUCKETS] = {100, 50, 10};

static struct credits_seen credits;

static int set_up(void **state)
{
    (void)state;
    return credits_seen_init(&credits, 2, BUCKETS) ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    credits_seen_finish(&credits);
    return 0;
}

static void push(uint32_t worker, uint32_t bucket)
{
    credits_seen_add(&credits, worker, bucket, bytes[bucket]);
}

static void expect_told(uint32_t worker, uint32_t bucket)
{
    uint32_t told_worker = UINT32_MAX, told_bucket = UINT32_MAX;
    assert_true(credits_seen_take(&credits, bytes, &told_worker, &told_bucket));
    assert_int_equal(told_worker, worker);
    assert_int_equal(told_bucket, bucket);
}

static void expect_none(void)
{
    uint32_t worker, bucket;
    assert_false(credits_seen_take(&credits, bytes, &worker, &bucket));
}

static void the_first_one_waits_for_the_others(void **state)
{
    (void)state;
    push(0, 0);
    expect_none();
    push(1, 0);
    expect_told(0, 0);
    expect_told(1, 0);
    expect_none();
}

static void who_has_pushed_least_is_told_at_once(void **state)
{
    (void)state;
    push(0, 0);
    push(0, 1);
    push(0, 2);
    expect_none();
    push(1, 2); // ten bytes, of which worker 0 has pushed none alone
    expect_told(1, 2);
    expect_none();
    push(1, 0);
    expect_told(0, 0);
    expect_told(1, 0);
    expect_none();
    push(1, 1);
    expect_told(0, 1);
    expect_told(0, 2);
    expect_told(1, 1);
    expect_none();
}

/* The buckets of a step come again in the next one. */
static void steps_follow_each_other(void **state)
{
    (void)state;
    for (uint32_t step = 0; step < 5; step++) {
        for (uint32_t bucket = 0; bucket < BUCKETS; bucket++) {
            push(1, bucket);
            expect_none();
            push(0, bucket);
            expect_told(0, bucket);
            expect_told(1, bucket);
            expect_none();
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_first_one_waits_for_the_others, set_up, tear_down),
        cmocka_unit_test_setup_teardown(who_has_pushed_least_is_told_at_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(steps_follow_each_other, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
