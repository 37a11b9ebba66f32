/* Tests of how far a job has come after a loss. */
#include "common/plan/headway.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on

static void what_was_lost_is_regained_between_two_signs_of_life(void **state)
{
    (void)state;
    struct headway headway;
    headway_begin(&headway, 40, 100, 1000);
    headway_note(&headway, 80, 1500);
    assert_false(headway.has_regained);
    assert_int_equal(headway_repeated(&headway), 40);
    headway_note(&headway, 80, 1700); // no step since
    headway_note(&headway, 120, 2000);
    assert_true(headway.has_regained);
    assert_int_equal(headway.regained_ms, 1750);
    assert_int_equal(headway_repeated(&headway), 60);
    headway_note(&headway, 500, 9000);
    assert_int_equal(headway.regained_ms, 1750);
    assert_int_equal(headway_repeated(&headway), 60);
}

static void where_no_step_is_made_again_all_is_regained_at_once(void **state)
{
    (void)state;
    static const uint64_t targets[] = {0, 39, 40};
    for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++) {
        struct headway headway;
        headway_begin(&headway, 40, targets[i], 1000);
        headway_note(&headway, 80, 1500);
        assert_true(headway.has_regained);
        assert_int_equal(headway.regained_ms, 1000);
        assert_int_equal(headway_repeated(&headway), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_lost_is_regained_between_two_signs_of_life),
        cmocka_unit_test(where_no_step_is_made_again_all_is_regained_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
