/* Spreads and lines of measurements whose answer is known. */
#include "deploy/calibrate/fit.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h> // needs the four above
// clang-format on
#include <math.h>

#define TIMES 1000

static void check_near(double value, double expected, double tolerance)
{
    if (!(fabs(value - expected) <= tolerance * fabs(expected))) {
        fail_msg("%.9g instead of %.9g", value, expected);
    }
}

/* The share of the i-th of many times, evenly over all draws. */
static double share(size_t i)
{
    return ((double)i + 0.5) / TIMES;
}

static double mean_of(const double *times_s)
{
    double sum = 0;
    for (size_t i = 0; i < TIMES; i++) {
        sum += times_s[i];
    }
    return sum / TIMES;
}

/* A least time of 10 ms, and on top of it what a distribution's quantiles say. */
static void what_was_drawn_is_found_again(void **state)
{
    (void)state;
    static double exponential[TIMES], uniform[TIMES], equal[TIMES];
    for (size_t i = 0; i < TIMES; i++) {
        exponential[i] = 10e-3 - 2e-3 * log(1 - share(i));
        uniform[i] = 10e-3 + 3e-3 * share(i);
        equal[i] = 10e-3;
    }
    struct fit_spread fit = fit_spread(exponential, TIMES);
    assert_int_equal(fit.spread.kind, SPREAD_EXPONENTIAL);
    check_near(fit.spread.mean_s, 2e-3, 0.01);
    check_near(fit.least_s, 10e-3, 0.01);
    check_near(fit.least_s + spread_mean_s(&fit.spread), mean_of(exponential), 1e-9);

    fit = fit_spread(uniform, TIMES);
    assert_int_equal(fit.spread.kind, SPREAD_UNIFORM);
    check_near(fit.spread.most_s, 3e-3, 0.01);
    check_near(fit.least_s, 10e-3, 0.01);
    check_near(fit.least_s + spread_mean_s(&fit.spread), mean_of(uniform), 1e-9);

    fit = fit_spread(equal, TIMES);
    assert_int_equal(fit.spread.kind, SPREAD_NONE);
    check_near(fit.least_s, 10e-3, 1e-9);
}

/* Few times say little; their mean stays, and nothing takes no time. */
static void of_times_that_lie_far_apart_the_mean_stays(void **state)
{
    (void)state;
    const double two_s[] = {1e-3, 9e-3}, busy_s[] = {1e-3, 1.1e-3, 100e-3, 1e-3, 90e-3};
    struct fit_spread fit = fit_spread(two_s, 2);
    check_near(fit.least_s + spread_mean_s(&fit.spread), 5e-3, 1e-9);
    check_near(fit.least_s, 0.5e-3, 1e-9);
    fit = fit_spread(busy_s, 5);
    check_near(fit.least_s + spread_mean_s(&fit.spread), 38.62e-3, 1e-9);
    check_near(fit.least_s, 0.5e-3, 1e-9);
}

static void a_line_has_the_latency_and_bandwidth_of_its_points(void **state)
{
    (void)state;
    const struct fit_point points[] = {{0, 40e-6}, {1e6, 1040e-6}, {3e6, 3040e-6}};
    struct fit_line line = fit_line(points, 3);
    assert_true(line.knows_latency);
    check_near(line.latency_s, 40e-6, 1e-6);
    check_near(line.bandwidth, 1e9, 1e-6);

    // One size does not tell latency from bandwidth.
    line = fit_line(points + 1, 1);
    assert_false(line.knows_latency);
    assert_true(line.latency_s == 0);
    check_near(line.bandwidth, 1e6 / 1040e-6, 1e-9);

    // Messages without values have a latency alone.
    line = fit_line(points, 1);
    assert_true(line.knows_latency && line.bandwidth == 0);
    check_near(line.latency_s, 40e-6, 1e-9);
}

static void neither_latency_nor_bandwidth_is_below_zero(void **state)
{
    (void)state;
    const struct fit_point falls[] = {{0, 50e-6}, {1e6, 30e-6}};
    const struct fit_point early[] = {{1e6, 10e-6}, {2e6, 1e-3}};
    struct fit_line line = fit_line(falls, 2);
    assert_true(line.bandwidth == 0);
    check_near(line.latency_s, 40e-6, 1e-9);
    line = fit_line(early, 2);
    assert_true(line.latency_s == 0);
    check_near(line.bandwidth, 5e12 / (10 + 2e3), 1e-9);
}

static void loads_are_shared_out_among_parts_and_bytes(void **state)
{
    (void)state;
    struct fit_load loads[] = {{4, 4e5, 0}, {16, 4e5, 0}, {8, 1e6, 0}};
    for (size_t i = 0; i < 3; i++) {
        loads[i].seconds = 15e-6 * loads[i].parts + 5e-10 * loads[i].bytes;
    }
    struct fit_share share = fit_share(loads, 3);
    check_near(share.part_s, 15e-6, 1e-9);
    check_near(share.byte_s, 5e-10, 1e-9);
    assert_true(share.error < 1e-9);
    loads[2].seconds *= 1.5;
    assert_true(fit_share(loads, 3).error > 0.05);
    assert_true(fit_share(loads, 2).error == 0);
    // Two that have as many bytes to a part do not tell which it is: bytes have all of it.
    const struct fit_load alike[] = {{2, 2e5, 1e-4}, {4, 4e5, 2e-4}};
    share = fit_share(alike, 2);
    assert_true(share.part_s == 0);
    check_near(share.byte_s, 5e-10, 1e-9);
    // Those without bytes are parts.
    const struct fit_load empty[] = {{2, 0, 3e-5}, {4, 0, 6e-5}};
    share = fit_share(empty, 2);
    check_near(share.part_s, 15e-6, 1e-9);
    assert_true(share.byte_s == 0);
    // Larger ones that are quicker are parts alone.
    const struct fit_load falls[] = {{1, 2e5, 2e-5}, {1, 4e5, 1e-5}};
    share = fit_share(falls, 2);
    assert_true(share.byte_s == 0);
    check_near(share.part_s, 1.5e-5, 1e-9);
    share = fit_share(falls, 0);
    assert_true(share.part_s == 0 && share.byte_s == 0 && share.error == 0);
}

static void a_mean_is_less_sure_where_times_drift(void **state)
{
    (void)state;
    double even[TIMES], drifts[TIMES];
    for (size_t i = 0; i < TIMES; i++) {
        even[i] = i % 2 == 0 ? 9e-3 : 11e-3;
        drifts[i] = 9e-3 + 2e-3 * share(i);
    }
    assert_true(fit_mean_error(even, TIMES) < 1e-3);
    // Means of eighths lie an eighth apart: 2 ms times the deviation of 1/16, 3/16, ...
    check_near(fit_mean_error(drifts, TIMES), 2e-3 / 10e-3 * sqrt(6.0 / 64.0 / 8), 1e-2);
    assert_true(fit_mean_error(even, 15) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_drawn_is_found_again),
        cmocka_unit_test(of_times_that_lie_far_apart_the_mean_stays),
        cmocka_unit_test(a_line_has_the_latency_and_bandwidth_of_its_points),
        cmocka_unit_test(neither_latency_nor_bandwidth_is_below_zero),
        cmocka_unit_test(loads_are_shared_out_among_parts_and_bytes),
        cmocka_unit_test(a_mean_is_less_sure_where_times_drift),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
