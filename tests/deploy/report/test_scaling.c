/* Tests of speed-up and efficiency. */
#include "deploy/report/scaling.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <math.h>
#include <stdbool.h>

static struct scaling_design designs[SCALING_DESIGNS_MAX];

/* Equal to within a thousandth. */
static void check_near(double value, double expected)
{
    if (fabs(value - expected) > 0.001) {
        fail_msg("%g is not %g", value, expected);
    }
}

static struct scaling_input setting(const char *design, unsigned workers, double rate)
{
    return (struct scaling_input){design, false, workers, {1, rate, 0}};
}

static void a_design_is_compared_with_its_smallest(void **state)
{
    (void)state;
    const struct scaling_input inputs[] = {setting("ring", 8, 600), setting("ring", 2, 200),
                                           setting("ring", 4, 380)};
    assert_int_equal(scaling_of(inputs, 3, designs), 1);
    assert_int_equal(designs[0].base_workers, 2);
    assert_int_equal(designs[0].count, 3);
    check_near(designs[0].points[0].speed_up.mean, 2);
    check_near(designs[0].points[1].speed_up.mean, 3.8);
    check_near(designs[0].points[2].speed_up.mean, 6);
    check_near(designs[0].points[2].efficiency.mean, 0.75);
    assert_int_equal(designs[0].points[2].input, 0);
}

static void a_local_job_stands_for_one_worker(void **state)
{
    (void)state;
    struct scaling_input inputs[] = {setting("local", 1, 100), setting("ring", 4, 300),
                                     setting("ps-sync", 1, 50), setting("ps-sync", 4, 150)};
    inputs[0].is_local = true;
    assert_int_equal(scaling_of(inputs, 4, designs), 2);
    assert_true(designs[0].is_base_local);
    check_near(designs[0].points[1].efficiency.mean, 0.75);
    assert_false(designs[1].is_base_local); // it has one of its own
    check_near(designs[1].points[1].speed_up.mean, 3);
}

static void one_number_of_workers_is_no_scaling(void **state)
{
    (void)state;
    const struct scaling_input inputs[] = {setting("ring", 4, 300), setting("ps-sync", 4, 300),
                                           setting("ring", 8, 0), setting("ps-sync", 0, 10)};
    assert_int_equal(scaling_of(inputs, 4, designs), 0);
    assert_int_equal(scaling_of(inputs, 0, designs), 0);
}

static void of_several_local_jobs_none_is_the_base(void **state)
{
    (void)state;
    struct scaling_input inputs[] = {setting("local, a", 1, 100), setting("local, b", 1, 90),
                                     setting("ring", 4, 300)};
    inputs[0].is_local = inputs[1].is_local = true;
    assert_int_equal(scaling_of(inputs, 3, designs), 0);
}

static void intervals_of_both_runs_count(void **state)
{
    (void)state;
    const struct scaling_input inputs[] = {{"ring", false, 1, {3, 100, 3}},
                                           {"ring", false, 2, {3, 200, 8}}};
    assert_int_equal(scaling_of(inputs, 2, designs), 1);
    check_near(designs[0].points[0].speed_up.half_width, 0);
    check_near(designs[0].points[1].speed_up.half_width, 2 * 0.05); // 3-4-5
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_design_is_compared_with_its_smallest),
        cmocka_unit_test(a_local_job_stands_for_one_worker),
        cmocka_unit_test(one_number_of_workers_is_no_scaling),
        cmocka_unit_test(of_several_local_jobs_none_is_the_base),
        cmocka_unit_test(intervals_of_both_runs_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
