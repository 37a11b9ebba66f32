/* Tests of the learning rate over the steps, against closed forms. */
#include "common/optimizer/schedule.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <math.h>

static void check_rate(const struct schedule *schedule, uint64_t step, double wanted)
{
    double rate = schedule_rate(schedule, step);
    if (!(fabs(rate - wanted) <= 1e-15)) {
        fail_msg("step %llu: rate %.17g, wanted %.17g", (unsigned long long)step, rate, wanted);
    }
}

static void a_constant_rate_never_changes(void **state)
{
    (void)state;
    struct schedule schedule = {.kind = SCHEDULE_CONSTANT, .base_rate = 0.1, .start_rate = 7};
    check_rate(&schedule, 0, 0.1);
    check_rate(&schedule, 1, 0.1);
    check_rate(&schedule, UINT64_MAX, 0.1);
}

static void the_warm_up_is_linear_from_start_to_base(void **state)
{
    (void)state;
    struct schedule schedule = {
        .kind = SCHEDULE_CONSTANT, .base_rate = 0.8, .start_rate = 0.1, .warmup_steps = 7};
    for (uint64_t step = 0; step < 7; step++) {
        check_rate(&schedule, step, 0.1 + 0.1 * (double)step);
    }
    check_rate(&schedule, 7, 0.8);
    check_rate(&schedule, 8, 0.8);
}

static void a_warm_up_of_one_step_begins_at_the_start_rate(void **state)
{
    (void)state;
    struct schedule schedule = {
        .kind = SCHEDULE_CONSTANT, .base_rate = 0.8, .start_rate = 0.1, .warmup_steps = 1};
    check_rate(&schedule, 0, 0.1);
    check_rate(&schedule, 1, 0.8);
}

static void steps_multiply_by_gamma_each_period(void **state)
{
    (void)state;
    struct schedule schedule = {
        .kind = SCHEDULE_STEP, .base_rate = 0.5, .period_steps = 10, .gamma = 0.1};
    check_rate(&schedule, 0, 0.5);
    check_rate(&schedule, 9, 0.5);
    check_rate(&schedule, 10, 0.05);
    check_rate(&schedule, 19, 0.05);
    check_rate(&schedule, 20, 0.005);
    check_rate(&schedule, 130, 0.5e-13);
    check_rate(&schedule, UINT64_MAX, 0);
}

static void periods_count_the_warm_up_but_gamma_waits_for_its_end(void **state)
{
    (void)state;
    struct schedule schedule = {.kind = SCHEDULE_STEP,
                                .base_rate = 0.8,
                                .start_rate = 0.4,
                                .warmup_steps = 15,
                                .period_steps = 10,
                                .gamma = 0.5};
    check_rate(&schedule, 12, 0.4 + 0.4 * 12 / 15);
    check_rate(&schedule, 15, 0.4);
    check_rate(&schedule, 20, 0.2);
}

static void a_period_of_no_steps_never_ends(void **state)
{
    (void)state;
    struct schedule schedule = {.kind = SCHEDULE_STEP, .base_rate = 0.5, .gamma = 0.1};
    check_rate(&schedule, 0, 0.5);
    check_rate(&schedule, 1000, 0.5);
}

static void the_cosine_falls_from_base_to_0(void **state)
{
    (void)state;
    struct schedule schedule = {.kind = SCHEDULE_COSINE, .base_rate = 0.3, .total_steps = 1200};
    check_rate(&schedule, 0, 0.3);
    check_rate(&schedule, 400, 0.3 * 0.75);
    check_rate(&schedule, 600, 0.3 * 0.5);
    check_rate(&schedule, 800, 0.3 * 0.25);
    check_rate(&schedule, 1200, 0);
    check_rate(&schedule, 1201, 0);
    check_rate(&schedule, UINT64_MAX, 0);
    for (uint64_t step = 0; step < 1200; step++) {
        check_rate(&schedule, step, 0.15 * (1 + cos(acos(-1) * (double)step / 1200)));
        assert_true(schedule_rate(&schedule, step) > schedule_rate(&schedule, step + 1));
    }
}

static void the_cosine_begins_after_the_warm_up(void **state)
{
    (void)state;
    struct schedule schedule = {.kind = SCHEDULE_COSINE,
                                .base_rate = 0.4,
                                .start_rate = 0.1,
                                .warmup_steps = 100,
                                .total_steps = 300};
    check_rate(&schedule, 0, 0.1);
    check_rate(&schedule, 50, 0.25);
    check_rate(&schedule, 100, 0.4);
    check_rate(&schedule, 200, 0.2);
    assert_true(schedule_rate(&schedule, 299) > 0);
    check_rate(&schedule, 300, 0);
}

static void a_job_shorter_than_its_warm_up_only_warms_up(void **state)
{
    (void)state;
    struct schedule schedule = {.kind = SCHEDULE_COSINE,
                                .base_rate = 0.4,
                                .start_rate = 0.1,
                                .warmup_steps = 100,
                                .total_steps = 30};
    for (uint64_t step = 0; step < 100; step++) {
        check_rate(&schedule, step, 0.1 + 0.3 * (double)step / 100);
    }
    check_rate(&schedule, 100, 0);
}

static void a_job_as_long_as_its_warm_up_divides_by_nothing(void **state)
{
    (void)state;
    struct schedule schedule = {
        .kind = SCHEDULE_COSINE, .base_rate = 0.4, .warmup_steps = 100, .total_steps = 100};
    check_rate(&schedule, 99, 0.4 * 99 / 100);
    check_rate(&schedule, 100, 0);
}

static void a_cosine_over_no_steps_is_0(void **state)
{
    (void)state;
    struct schedule schedule = {.kind = SCHEDULE_COSINE, .base_rate = 0.4};
    check_rate(&schedule, 0, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_constant_rate_never_changes),
        cmocka_unit_test(the_warm_up_is_linear_from_start_to_base),
        cmocka_unit_test(a_warm_up_of_one_step_begins_at_the_start_rate),
        cmocka_unit_test(steps_multiply_by_gamma_each_period),
        cmocka_unit_test(periods_count_the_warm_up_but_gamma_waits_for_its_end),
        cmocka_unit_test(a_period_of_no_steps_never_ends),
        cmocka_unit_test(the_cosine_falls_from_base_to_0),
        cmocka_unit_test(the_cosine_begins_after_the_warm_up),
        cmocka_unit_test(a_job_shorter_than_its_warm_up_only_warms_up),
        cmocka_unit_test(a_job_as_long_as_its_warm_up_divides_by_nothing),
        cmocka_unit_test(a_cosine_over_no_steps_is_0),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
