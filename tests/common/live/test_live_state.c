/* Tests of what is known of a job: curves and events that stay bounded. */
#include "common/live/live_board.h"
#include "common/live/live_state.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <string.h>

static void a_long_curve_is_thinned_and_reaches_from_beginning_to_end(void **state)
{
    static struct live_curve curve;
    const uint64_t last = 100000;
    (void)state;
    curve = (struct live_curve){.count = 0};
    for (uint64_t step = 1; step <= last; step++) {
        live_add_point(&curve, &(struct live_point){.step = step, .value = {(double)step, 0}});
        assert_true(curve.count <= LIVE_POINTS_MAX);
    }
    assert_true(curve.count >= LIVE_POINTS_MAX / 2);
    uint64_t stride = curve.points[1].step - curve.points[0].step;
    for (uint32_t i = 1; i < curve.count; i++) {
        assert_int_equal(curve.points[i].step - curve.points[i - 1].step, stride);
    }
    assert_true(curve.points[0].step <= stride);
    assert_true(curve.points[curve.count - 1].step > last - stride);
}

static void a_job_that_goes_on_earlier_loses_the_points_behind(void **state)
{
    static struct live_curve curve;
    (void)state;
    curve = (struct live_curve){.count = 0};
    for (uint64_t step = 1; step <= 10; step++) {
        live_add_point(&curve, &(struct live_point){.step = step});
    }
    live_cut_curve(&curve, 4);
    assert_int_equal(curve.count, 4);
    live_add_point(&curve, &(struct live_point){.step = 5});
    assert_int_equal(curve.points[4].step, 5);
    live_cut_curve(&curve, 0);
    assert_int_equal(curve.count, 0);
}

static void a_total_that_nobody_knows_is_not_shown(void **state)
{
    char text[LIVE_STEP_BYTES];
    struct live_state of;
    (void)state;
    live_step_text(12, 40, " of ", text);
    assert_string_equal(text, "12 of 40");
    live_step_text(UINT64_MAX, UINT64_MAX, "/", text);
    assert_string_equal(text, "18446744073709551615/18446744073709551615");
    live_step_text(12, 0, " of ", text);
    assert_string_equal(text, "12");
    assert_int_equal(live_state_init(&of, 1), STATUS_OK);
    of.step = 12;
    of.seconds = 3;
    assert_true(live_eta(&of) < 0);
    live_state_finish(&of);
}

static void the_oldest_events_make_room(void **state)
{
    struct live_state of;
    (void)state;
    assert_int_equal(live_state_init(&of, 1), STATUS_OK);
    for (uint32_t i = 0; i < LIVE_EVENTS_MAX + 5; i++) {
        live_add_event(&of, "lost", "number %u", i);
    }
    assert_int_equal(of.event_count, LIVE_EVENTS_MAX);
    assert_int_equal(of.events_left_out, 5);
    assert_string_equal(of.events[0].text, "number 5");
    assert_string_equal(of.events[LIVE_EVENTS_MAX - 1].text, "number 36");
    live_state_finish(&of);
}

static void the_rest_of_the_time_follows_from_the_steps_so_far(void **state)
{
    struct live_state of = {.step = 25, .total_steps = 100, .seconds = 10};
    (void)state;
    assert_float_equal(live_eta(&of), 30, 1e-9);
    of.step = 0;
    assert_true(live_eta(&of) < 0);
}

static void a_board_has_the_last_state_that_was_left(void **state)
{
    struct live_board *board = NULL;
    struct live_state left, seen;
    (void)state;
    assert_int_equal(live_state_init(&left, 3), STATUS_OK);
    assert_int_equal(live_state_init(&seen, 3), STATUS_OK);
    assert_int_equal(live_board_create(3, &board), STATUS_OK);
    assert_int_equal(live_board_look(board, &seen), 0);
    left.ranks[2].step = 5;
    live_board_publish(board, &left);
    left.ranks[2].step = 6;
    live_board_publish(board, &left);
    left.ranks[2].step = 7; // not left
    assert_int_equal(live_board_version(board), 2);
    assert_int_equal(live_board_look(board, &seen), 2);
    assert_int_equal(seen.ranks[2].step, 6);
    live_board_destroy(board);
    live_state_finish(&left);
    live_state_finish(&seen);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_long_curve_is_thinned_and_reaches_from_beginning_to_end),
        cmocka_unit_test(a_job_that_goes_on_earlier_loses_the_points_behind),
        cmocka_unit_test(a_total_that_nobody_knows_is_not_shown),
        cmocka_unit_test(the_oldest_events_make_room),
        cmocka_unit_test(the_rest_of_the_time_follows_from_the_steps_so_far),
        cmocka_unit_test(a_board_has_the_last_state_that_was_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
