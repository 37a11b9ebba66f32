/* Tests of the step clock: every nanosecond of a step counts once, for what went on. */
#include "worker/train/step_clock.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on

static void a_step_begins_with_its_input(void **state)
{
    (void)state;
    struct step_clock clock = {.ns = {1, 2, 3}};
    step_clock_start(&clock, 0);
    assert_int_equal(clock.activity, STEP_INPUT);
    for (int i = 0; i < STEP_ACTIVITIES; i++) {
        assert_int_equal(clock.ns[i], 0);
    }
}

static void what_is_entered_gives_back_what_went_on(void **state)
{
    (void)state;
    struct step_clock clock = {0};
    step_clock_start(&clock, 0);
    assert_int_equal(step_clock_enter(&clock, STEP_COMPUTE), STEP_INPUT);
    enum step_activity before = step_clock_enter(&clock, STEP_EXCHANGE);
    assert_int_equal(before, STEP_COMPUTE);
    enum step_activity within = step_clock_enter(&clock, STEP_COMPUTE); // an update on the way
    assert_int_equal(within, STEP_EXCHANGE);
    assert_int_equal(step_clock_enter(&clock, within), STEP_COMPUTE);
    assert_int_equal(step_clock_enter(&clock, before), STEP_EXCHANGE);
    assert_int_equal(clock.activity, STEP_COMPUTE);
}

static void every_nanosecond_counts_once(void **state)
{
    (void)state;
    static const enum step_activity order[] = {STEP_COMPUTE,  STEP_EXCHANGE, STEP_COMPUTE,
                                               STEP_EXCHANGE, STEP_INPUT,    STEP_EXCHANGE};
    struct step_clock clock = {0};
    step_clock_start(&clock, 0);
    uint64_t started_ns = clock.since_ns;
    for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
        uint64_t since_ns = clock.since_ns, before_ns = clock.ns[clock.activity];
        enum step_activity before = step_clock_enter(&clock, order[i]);
        assert_int_equal(clock.ns[before] - before_ns, clock.since_ns - since_ns);
    }
    assert_int_equal(clock.ns[STEP_INPUT] + clock.ns[STEP_COMPUTE] + clock.ns[STEP_EXCHANGE],
                     clock.since_ns - started_ns);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_begins_with_its_input),
        cmocka_unit_test(what_is_entered_gives_back_what_went_on),
        cmocka_unit_test(every_nanosecond_counts_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
