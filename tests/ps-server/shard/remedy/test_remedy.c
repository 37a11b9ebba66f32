/* Tests of the remedies against their formulas. */
#include "ps-server/shard/remedy/remedy.h"
#include "tests/support/common/choices.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <math.h>

#define COUNT 5

static const float gradient[COUNT] = {1, -2, 0.5f, 0, 3};
static const float params[COUNT] = {0.5f, 1, -1, 2, 0};
static const float read_before[COUNT] = {0, 2, -1, 0, 0.25f};

static const struct remedy *find(const char *name)
{
    return remedy_of((enum remedy_kind)choice_of(remedy_choices, name));
}

static void a_gradient_that_is_tau_updates_old_counts_one_over_tau(void **state)
{
    (void)state;
    const uint64_t ages[] = {0, 1, 2, 8};
    const float factors[] = {1, 1, 0.5f, 0.125f};
    for (size_t i = 0; i < 4; i++) {
        float result[COUNT];
        const struct remedy_block block = {
            .gradient = gradient, .result = result, .count = COUNT, .staleness = ages[i]};
        find("staleness-lr")->adjust(&block);
        for (size_t k = 0; k < COUNT; k++) {
            assert_true(result[k] == factors[i] * gradient[k]);
        }
    }
}

static void delay_compensation_adds_lambda_g_g_times_the_way_since(void **state)
{
    (void)state;
    float result[COUNT];
    const struct remedy_block block = {.gradient = gradient,
                                       .params = params,
                                       .read = read_before,
                                       .result = result,
                                       .count = COUNT,
                                       .lambda = 0.5f};
    const struct remedy *remedy = find("dc");
    assert_true(remedy->needs_read && !remedy->needs_squares);
    remedy->adjust(&block);
    const float expected[COUNT] = {1.25f, -4, 0.5f, 0, 1.875f};
    for (size_t k = 0; k < COUNT; k++) {
        assert_true(result[k] == expected[k]);
    }
}

/* For g = 1 in every step the mean of squares is 1 - 0.95^t. */
static void adaptive_compensation_divides_by_the_root_of_mean_squares(void **state)
{
    (void)state;
    const float one = 1, now = 3, before = 1;
    float squares = 0, result;
    const struct remedy_block block = {.gradient = &one,
                                       .params = &now,
                                       .read = &before,
                                       .squares = &squares,
                                       .result = &result,
                                       .count = 1,
                                       .lambda = 2};
    const struct remedy *remedy = find("dc-adaptive");
    assert_true(remedy->needs_read && remedy->needs_squares);
    for (int t = 1; t <= 50; t++) {
        remedy->adjust(&block);
        double mean = 1 - pow(0.95, t);
        assert_true(fabs((double)squares - mean) < 1e-5);
        assert_true(fabs((double)result - (1 + 2 / sqrt(mean + 1e-7) * 2)) < 1e-4);
    }
}

/* The delay of a momentum m is the mean of k weighted by m^k: m / (1 - m). */
static void momentum_gives_way_to_what_staleness_delays(void **state)
{
    (void)state;
    double left, factor;
    assert_true(find("momentum")->corrects_momentum);
    remedy_momentum(0.9, 0, &left, &factor);
    assert_true(fabs(left - 0.9) < 1e-12 && fabs(factor - 1) < 1e-12);
    for (int tau = 1; tau < 20; tau++) {
        remedy_momentum(0.9, tau, &left, &factor);
        assert_true(left >= 0 && left < 0.9);
        double delay = left / (1 - left) + tau;
        assert_true(tau > 9 ? left <= 0 : fabs(delay - 9) < 1e-9);
        assert_true(fabs(factor / (1 - left) - 1 / (1 - 0.9)) < 1e-9);
    }
    remedy_momentum(0, 3, &left, &factor);
    assert_true(left <= 0 && fabs(factor - 1) < 1e-12);
}

static void every_remedy_but_none_does_something(void **state)
{
    (void)state;
    assert_null(find("none"));
    for (size_t i = 1; remedy_choices[i].name != NULL; i++) {
        const struct remedy *remedy = find(remedy_choices[i].name);
        assert_true(remedy->adjust != NULL || remedy->corrects_momentum);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_gradient_that_is_tau_updates_old_counts_one_over_tau),
        cmocka_unit_test(delay_compensation_adds_lambda_g_g_times_the_way_since),
        cmocka_unit_test(adaptive_compensation_divides_by_the_root_of_mean_squares),
        cmocka_unit_test(momentum_gives_way_to_what_staleness_delays),
        cmocka_unit_test(every_remedy_but_none_does_something),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
