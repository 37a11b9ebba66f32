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
    check_near(fit.least_s + fit_spread_mean_s(&fit.spread), mean_of(exponential), 1e-9);

    fit = fit_spread(uniform, TIMES);
    assert_int_equal(fit.spread.kind, SPREAD_UNIFORM);
    check_near(fit.spread.most_s, 3e-3, 0.01);
    check_near(fit.least_s, 10e-3, 0.01);
    check_near(fit.least_s + fit_spread_mean_s(&fit.spread), mean_of(uniform), 1e-9);

    fit = fit_spread(equal, TIMES);
    assert_int_equal(fit.spread.kind, SPREAD_NONE);
    check_near(fit.least_s, 10e-3, 1e-9);
}

/* Two times say little; their mean stays, and nothing is below 0. */
static void of_two_times_that_lie_far_apart_the_mean_stays(void **state)
{
    (void)state;
    const double times_s[] = {1e-3, 9e-3};
    const struct fit_spread fit = fit_spread(times_s, 2);
    check_near(fit.least_s + fit_spread_mean_s(&fit.spread), 5e-3, 1e-9);
    assert_true(fit.least_s >= 0);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_drawn_is_found_again),
        cmocka_unit_test(of_two_times_that_lie_far_apart_the_mean_stays),
        cmocka_unit_test(a_line_has_the_latency_and_bandwidth_of_its_points),
        cmocka_unit_test(neither_latency_nor_bandwidth_is_below_zero),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
