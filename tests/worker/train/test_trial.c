/* Tests of the time of a step, from numbers that are given. */
#include "worker/train/trial.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on

static void it_is_the_median_without_the_first_two_and_the_last(void **state)
{
    (void)state;
    static const uint64_t steps[] = {900, 800, 13, 11, 1000, 12, 700};
    struct trial trial = {0};
    for (uint32_t i = 0; i < 7; i++) {
        trial_add(&trial, steps[i], true);
    }
    assert_int_equal(trial_step_ns(&trial), (12 + 13) / 2); // of 11, 12, 13, 1000
    trial_add(&trial, 1, true);
    assert_int_equal(trial_step_ns(&trial), 13); // 700 belongs to them now
}

static void too_few_rounds_are_not_measured(void **state)
{
    (void)state;
    struct trial trial = {0};
    for (uint32_t i = 0; i < 3; i++) {
        trial_add(&trial, 5, true);
        assert_int_equal(trial_step_ns(&trial), 0);
    }
    trial_add(&trial, 5, true);
    assert_int_equal(trial_step_ns(&trial), 5);
}

static void a_round_of_several_steps_counts_for_one_of_them(void **state)
{
    (void)state;
    struct trial trial = {0};
    for (uint32_t round = 0; round < 6; round++) {
        trial_add(&trial, 10, false);
        trial_add(&trial, 20, false);
        trial_add(&trial, 60, true);
    }
    assert_int_equal(trial_step_ns(&trial), 30);
    trial_add(&trial, 1000, false); // a round that is not over
    assert_int_equal(trial_step_ns(&trial), 30);
}

static void more_rounds_than_there_is_room_for_are_left_out(void **state)
{
    (void)state;
    struct trial trial = {0};
    for (uint32_t i = 0; i < 3 * TRIAL_ROUNDS_MAX; i++) {
        trial_add(&trial, i < TRIAL_ROUNDS_MAX ? 7 : 100, true);
    }
    assert_int_equal(trial.round_count, TRIAL_ROUNDS_MAX);
    assert_int_equal(trial_step_ns(&trial), 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_the_median_without_the_first_two_and_the_last),
        cmocka_unit_test(too_few_rounds_are_not_measured),
        cmocka_unit_test(a_round_of_several_steps_counts_for_one_of_them),
        cmocka_unit_test(more_rounds_than_there_is_room_for_are_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
