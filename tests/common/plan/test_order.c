/* Tests of orders: what is drawn has the distribution that was asked for. */
#include "common/plan/order.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define DRAWS 200000

static struct order parse(const char *text)
{
    struct order order;
    char why[256];
    assert_int_equal(order_parse(text, &order, why, sizeof(why)), STATUS_OK);
    return order;
}

static void constants_and_round_robin_have_no_randomness(void **state)
{
    (void)state;
    struct order constant = parse("seeded:constant:4"), robin = parse("seeded:round-robin");
    for (uint64_t t = 1; t < 100; t++) {
        assert_int_equal(order_staleness(&constant, 1, 3, t), 4);
        assert_int_equal(order_version(&constant, 1, 3, t), t > 5 ? t - 5 : 0);
        assert_int_equal(order_staleness(&robin, 1, 3, t), 2);
    }
    assert_int_equal(order_staleness_max(&constant, 3), 4);
    assert_int_equal(order_staleness_max(&robin, 3), 2);
}

/* Within five standard deviations of the expected count, for each value. */
static void check_counts(const struct order *order, const double *probabilities, size_t count)
{
    uint64_t *seen = calloc(count, sizeof(*seen));
    assert_non_null(seen);
    for (uint64_t t = 1; t <= DRAWS; t++) {
        uint64_t staleness = order_staleness(order, 42, 4, t);
        assert_true(staleness <= order_staleness_max(order, 4));
        if (staleness < count) {
            seen[staleness]++;
        }
    }
    for (size_t i = 0; i < count; i++) {
        double expected = DRAWS * probabilities[i];
        double deviation = sqrt(DRAWS * probabilities[i] * (1 - probabilities[i]));
        assert_true(fabs((double)seen[i] - expected) <= 5 * deviation + 1e-9);
    }
    free(seen);
}

static void a_uniform_range_is_drawn_evenly(void **state)
{
    (void)state;
    struct order order = parse("seeded:uniform:1..4");
    const double expected[] = {0, 0.25, 0.25, 0.25, 0.25, 0};
    check_counts(&order, expected, 6);
}

static void a_geometric_distribution_halves(void **state)
{
    (void)state;
    struct order order = parse("seeded:geometric:0.5");
    const double expected[] = {0.5, 0.25, 0.125, 0.0625, 0.03125};
    check_counts(&order, expected, 5);
    order = parse("seeded:geometric:1");
    const double always[] = {1, 0};
    check_counts(&order, always, 2);
}

static void the_seed_decides_and_nothing_else(void **state)
{
    (void)state;
    struct order order = parse("seeded:uniform:0..9");
    unsigned alike = 0;
    for (uint64_t t = 1; t <= 1000; t++) {
        assert_int_equal(order_staleness(&order, 1, 2, t), order_staleness(&order, 1, 8, t));
        alike += order_staleness(&order, 1, 2, t) == order_staleness(&order, 2, 2, t);
    }
    assert_in_range(alike, 50, 150);
}

static void delays_for_each_worker_are_drawn_apart(void **state)
{
    (void)state;
    struct order order = parse("seeded:uniform:2..5");
    unsigned counts[6] = {0}, alike = 0;
    for (uint64_t t = 1; t <= 4000; t++) {
        uint64_t first = order_delay(&order, 1, t, 0), second = order_delay(&order, 1, t, 1);
        assert_in_range(first, 2, 5);
        counts[first]++;
        alike += first == second;
        assert_int_equal(order_delay(&order, 1, t, 0), first);
    }
    for (size_t i = 2; i <= 5; i++) {
        assert_in_range(counts[i], 900, 1100);
    }
    assert_in_range(alike, 900, 1100);
    order = parse("seeded:constant:3");
    assert_int_equal(order_delay(&order, 1, 1, 7), 3);
}

static void what_is_no_order_is_refused_with_what_would_be_right(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"", "free"},
        {"seeded", "seeded:DIST"},
        {"seeded:", "round-robin"},
        {"seeded:normal:1", "geometric:P"},
        {"seeded:constant:", "constant:4"},
        {"seeded:constant:-1", "constant:4"},
        {"seeded:constant:4097", "4096"},
        {"seeded:constant:99999999999999999999", "4096"},
        {"seeded:uniform:3", "uniform:0..4"},
        {"seeded:uniform:3..", "uniform:0..4"},
        {"seeded:uniform:5..2", "uniform:2..5"},
        {"seeded:geometric:0", "probability"},
        {"seeded:geometric:1.5", "probability"},
        {"seeded:geometric:x", "probability"},
        {"seeded:geometric:0.001", "probability"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct order order = {.kind = ORDER_UNIFORM};
        char why[256] = "";
        assert_int_equal(order_parse(cases[i][0], &order, why, sizeof(why)), STATUS_INVALID);
        if (strstr(why, cases[i][1]) == NULL) {
            fail_msg("'%s' is refused with: %s", cases[i][0], why);
        }
        assert_int_equal(order.kind, ORDER_UNIFORM);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(constants_and_round_robin_have_no_randomness),
        cmocka_unit_test(a_uniform_range_is_drawn_evenly),
        cmocka_unit_test(a_geometric_distribution_halves),
        cmocka_unit_test(the_seed_decides_and_nothing_else),
        cmocka_unit_test(delays_for_each_worker_are_drawn_apart),
        cmocka_unit_test(what_is_no_order_is_refused_with_what_would_be_right),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
