/* Offsets between clocks, from messages with known delays. */
#include "deploy/trace/drift.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on

#define MS UINT64_C(1000000)

static struct drift fit;

/* A message that takes so long there, and back, where the other clock is ahead by `ahead`. */
static struct clock_ping ping(uint64_t sent_ns, uint64_t there_ns, uint64_t back_ns, int64_t ahead)
{
    return (struct clock_ping){sent_ns, (uint64_t)((int64_t)(sent_ns + there_ns) + ahead),
                               sent_ns + there_ns + back_ns};
}

static void the_quickest_message_tells_the_offset(void **state)
{
    (void)state;
    const int64_t ahead = -70 * (int64_t)MS;
    const struct clock_ping pings[] = {ping(1000 * MS, 9 * MS, MS, ahead),
                                       ping(1100 * MS, MS / 10, MS / 10, ahead),
                                       ping(1200 * MS, MS, 20 * MS, ahead)};
    drift_make(pings, 3, &fit);
    assert_int_equal(fit.count, 1);
    assert_int_equal(fit.points[0].offset_ns, ahead);
    assert_int_equal(fit.uncertainty_ns, MS / 10);
    assert_int_equal(drift_offset(&fit, 5), ahead);
    assert_false(drift_allows_zero(&fit));
}

static void an_offset_is_never_further_off_than_it_says(void **state)
{
    (void)state;
    for (uint64_t there = 0; there <= 10; there++) {
        const int64_t ahead = 3 * (int64_t)MS;
        const struct clock_ping only = ping(MS, there * 1000, (10 - there) * 1000, ahead);
        drift_make(&only, 1, &fit);
        int64_t error = drift_offset(&fit, MS) - ahead;
        assert_true((uint64_t)(error < 0 ? -error : error) <= fit.uncertainty_ns);
    }
}

static void clocks_that_drift_are_followed(void **state)
{
    (void)state;
    struct clock_ping pings[600];
    for (uint64_t i = 0; i < 600; i++) { // a minute, 100 us a second
        uint64_t at = i * 100 * MS;
        pings[i] = ping(at, 1000, 1000, (int64_t)(at / 10000));
    }
    drift_make(pings, 600, &fit);
    assert_int_equal(fit.count, 6);
    for (uint64_t second = 0; second < 50; second++) {
        int64_t error = drift_offset(&fit, second * 1000 * MS) - (int64_t)(second * MS / 10);
        assert_in_range(error + 5000, 0, 10000);
    }
}

static void clocks_that_are_the_same_are_taken_for_the_same(void **state)
{
    (void)state;
    const struct clock_ping pings[] = {ping(MS, 40000, 2000, 0), ping(2 * MS, 3000, 80000, 0)};
    drift_make(pings, 2, &fit);
    assert_true(drift_allows_zero(&fit));
}

static void nonsense_is_passed_over(void **state)
{
    (void)state;
    const struct clock_ping pings[] = {{5, 5, 1}, {1, UINT64_MAX, 2}, {1, 2, UINT64_MAX}};
    drift_make(pings, 3, &fit);
    assert_int_equal(fit.count, 0);
    assert_int_equal(drift_offset(&fit, 7), 0);
}

/* Any file may hold them: no sum or difference of times overflows. */
static void times_beyond_any_clock_are_passed_over(void **state)
{
    (void)state;
    const struct clock_ping pings[] = {{0, INT64_MAX - 1, 0},
                                       {INT64_MAX - 9, 0, INT64_MAX - 1},
                                       {20000 * MS, 20000 * MS, 20000 * MS}};
    drift_make(pings, 3, &fit);
    assert_int_equal(fit.count, 1);
    assert_int_equal(drift_offset(&fit, 15000 * MS), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_quickest_message_tells_the_offset),
        cmocka_unit_test(an_offset_is_never_further_off_than_it_says),
        cmocka_unit_test(clocks_that_drift_are_followed),
        cmocka_unit_test(clocks_that_are_the_same_are_taken_for_the_same),
        cmocka_unit_test(nonsense_is_passed_over),
        cmocka_unit_test(times_beyond_any_clock_are_passed_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
