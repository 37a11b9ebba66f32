/* Tests of what counts as having been away. */
#include "common/base/attention.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on

static void a_turn_in_time_is_no_absence(void **state)
{
    (void)state;
    struct attention attention = {0};
    assert_int_equal(attention_away_ms(&attention, 100000, 250), 0);
    assert_int_equal(attention_away_ms(&attention, 100050, 250), 0);
    assert_int_equal(attention_away_ms(&attention, 100300, 250), 0);
}

static void what_is_beyond_a_turn_is_counted_once(void **state)
{
    (void)state;
    struct attention attention = {0};
    assert_int_equal(attention_away_ms(&attention, 1000, 250), 0);
    assert_int_equal(attention_away_ms(&attention, 7000, 250), 5750);
    assert_int_equal(attention_away_ms(&attention, 7000, 250), 0);
    assert_int_equal(attention_away_ms(&attention, 7251, 250), 1);
}

static void an_excuse_does_not_reach_beyond_now(void **state)
{
    (void)state;
    assert_int_equal(attention_excuse(1000, 5750, 7000), 6750);
    assert_int_equal(attention_excuse(6900, 5750, 7000), 7000); // heard since it is back
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_turn_in_time_is_no_absence),
        cmocka_unit_test(what_is_beyond_a_turn_is_counted_once),
        cmocka_unit_test(an_excuse_does_not_reach_beyond_now),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
