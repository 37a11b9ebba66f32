/* Tests of means and intervals, against values of tables and of scipy. */
#include "deploy/report/statistics.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <math.h>
#include <stdbool.h>

static bool is_near(double a, double b)
{
    return fabs(a - b) < 1e-3 * (1 + fabs(b));
}

static void nothing_and_one_value_have_no_interval(void **state)
{
    (void)state;
    const double one = 3.5;
    struct statistics statistics = statistics_of(&one, 0);
    assert_int_equal(statistics.count, 0);
    assert_true(statistics.half_width == 0);
    statistics = statistics_of(&one, 1);
    assert_true(statistics.mean == 3.5 && statistics.half_width == 0);
}

static void intervals_are_those_of_students_t(void **state)
{
    (void)state;
    const double pair[] = {1, 3};
    struct statistics statistics = statistics_of(pair, 2);
    assert_true(is_near(statistics.mean, 2) && is_near(statistics.half_width, 12.706));
    const double five[] = {2, 4, 4, 5, 10};
    statistics = statistics_of(five, 5);
    assert_true(is_near(statistics.mean, 5) && is_near(statistics.half_width, 3.7237));
    const double same[] = {7, 7, 7};
    assert_true(statistics_of(same, 3).half_width == 0);
}

static void many_values_have_the_normal_interval(void **state)
{
    (void)state;
    double values[100];
    for (int i = 0; i < 100; i++) {
        values[i] = i % 2 == 0 ? 1 : -1;
    }
    struct statistics statistics = statistics_of(values, 100);
    assert_true(is_near(statistics.mean, 0));
    assert_true(is_near(statistics.half_width, 1.96 * sqrt(100.0 / 99) / 10));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_and_one_value_have_no_interval),
        cmocka_unit_test(intervals_are_those_of_students_t),
        cmocka_unit_test(many_values_have_the_normal_interval),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
