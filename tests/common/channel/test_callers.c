/* Tests of which connection is which rank: the first to say so, and no other. */
#include "common/channel/callers.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on

enum { RANKS = 2, LANES = 3 };

static void open_callers(struct callers *callers)
{
    assert_int_equal(
        callers_init(callers, (struct carriers){.ranks = RANKS, .processes = RANKS}, LANES),
        STATUS_OK);
}

static enum status meet(struct callers *callers, uint32_t rank, uint32_t lane, uint64_t peer)
{
    const struct wire_hello at = {lane, .is_far = true};
    const struct message hello = {.kind = MESSAGE_HELLO, .rank = rank, .hello = &at};
    bool is_new = false;
    enum status status = callers_meet(callers, &hello, peer, &is_new);
    assert_true(status != STATUS_OK || is_new);
    return status;
}

static void a_rank_is_known_by_each_of_its_connections(void **state)
{
    (void)state;
    struct callers callers;
    open_callers(&callers);
    assert_false(callers_are(&callers, 1, 70));
    assert_int_equal(meet(&callers, 1, 2, 70), STATUS_OK); // the last one may be the first to come
    assert_true(callers_are(&callers, 1, 70));
    assert_false(callers_are(&callers, 0, 70));
    assert_false(callers_are(&callers, 1, 71));
    assert_int_equal(meet(&callers, 1, 0, 71), STATUS_OK);
    assert_true(callers_are(&callers, 1, 71));
    assert_int_equal(callers.lanes[1].count, LANES);
    assert_true(lanes_of_bucket(&callers.lanes[1], 5) == 70);
    assert_true(lanes_of_bucket(&callers.lanes[1], 3) == 71);
    callers_finish(&callers);
}

static void a_hello_of_the_same_connection_changes_nothing(void **state)
{
    (void)state;
    struct callers callers;
    bool is_new = true;
    const struct wire_hello lane = {1, .is_far = true};
    const struct message again = {.kind = MESSAGE_HELLO, .hello = &lane};
    open_callers(&callers);
    assert_int_equal(meet(&callers, 0, 1, 70), STATUS_OK);
    assert_int_equal(callers_meet(&callers, &again, 70, &is_new), STATUS_OK);
    assert_false(is_new);
    assert_true(callers_are(&callers, 0, 70));
    callers_finish(&callers);
}

static void a_rank_that_is_taken_stays_with_its_connection(void **state)
{
    (void)state;
    struct callers callers;
    bool is_new;
    open_callers(&callers);
    assert_int_equal(meet(&callers, 0, 1, 70), STATUS_OK);
    assert_int_equal(meet(&callers, 0, 1, 72), STATUS_DENIED);
    assert_true(callers_are(&callers, 0, 70));
    assert_false(callers_are(&callers, 0, 72));
    // Nor does it take the lane of a rank that says it is near, where there is one alone.
    const struct wire_hello only = {0};
    const struct message near = {.kind = MESSAGE_HELLO, .rank = 1, .hello = &only};
    assert_int_equal(callers_meet(&callers, &near, 80, &is_new), STATUS_OK);
    assert_int_equal(meet(&callers, 1, 1, 72), STATUS_DENIED);
    assert_int_equal(callers_meet(&callers, &near, 72, &is_new), STATUS_DENIED);
    assert_true(callers_are(&callers, 1, 80));
    assert_int_equal(callers.lanes[1].count, 1);
    callers_finish(&callers);
}

static void a_connection_is_one_lane_of_one_rank(void **state)
{
    (void)state;
    struct callers callers;
    open_callers(&callers);
    assert_int_equal(meet(&callers, 0, 1, 70), STATUS_OK);
    assert_int_equal(meet(&callers, 1, 1, 70), STATUS_DENIED);
    assert_int_equal(meet(&callers, 0, 2, 70), STATUS_DENIED);
    assert_false(callers_are(&callers, 1, 70));
    callers_finish(&callers);
}

static void ranks_and_lanes_that_there_are_not_are_refused(void **state)
{
    (void)state;
    struct callers callers;
    bool is_new;
    open_callers(&callers);
    assert_int_equal(meet(&callers, RANKS, 0, 70), STATUS_MALFORMED);
    assert_int_equal(meet(&callers, UINT32_MAX, 0, 70), STATUS_MALFORMED);
    assert_int_equal(meet(&callers, 0, LANES, 70), STATUS_MALFORMED);
    const struct wire_hello second = {1, .is_far = false}; // there is a single one
    const struct message near = {.kind = MESSAGE_HELLO, .hello = &second};
    assert_int_equal(callers_meet(&callers, &near, 70, &is_new), STATUS_MALFORMED);
    assert_false(callers_are(&callers, UINT32_MAX, 70));
    assert_false(callers_are(&callers, 0, LANES_NONE));
    callers_finish(&callers);
}

static void a_connection_is_all_ranks_of_its_process(void **state)
{
    (void)state;
    struct callers callers;
    const struct wire_hello lane = {0};
    struct message hello = {.kind = MESSAGE_HELLO, .hello = &lane};
    bool is_new;
    assert_int_equal(callers_init(&callers, (struct carriers){.ranks = 5, .processes = 2}, 1),
                     STATUS_OK); // 0-2 and 3-4
    assert_int_equal(callers_meet(&callers, &hello, 70, &is_new), STATUS_OK);
    hello.rank = 3;
    assert_int_equal(callers_meet(&callers, &hello, 70, &is_new), STATUS_DENIED);
    assert_int_equal(callers_meet(&callers, &hello, 71, &is_new), STATUS_OK);
    for (uint32_t rank = 0; rank < 5; rank++) {
        assert_int_equal(callers_are(&callers, rank, 70), rank < 3);
        assert_int_equal(callers_are(&callers, rank, 71), rank >= 3);
    }
    assert_false(callers_are(&callers, 5, 71));
    for (uint32_t rank = 0; rank < 6; rank++) { // nobody begins with the others
        hello.rank = rank;
        assert_int_equal(callers_meet(&callers, &hello, 72, &is_new),
                         rank == 0 || rank == 3 ? STATUS_DENIED : STATUS_MALFORMED);
    }
    callers_finish(&callers);
}

static void a_process_is_told_by_any_of_its_connections_that_was_closed(void **state)
{
    (void)state;
    struct callers callers;
    struct departures departures = {0};
    uint32_t process;
    open_callers(&callers);
    assert_int_equal(meet(&callers, 0, 0, 70), STATUS_OK);
    assert_int_equal(meet(&callers, 1, 0, 71), STATUS_OK);
    assert_int_equal(meet(&callers, 1, 2, 72), STATUS_OK);
    departures_note(&departures, 5, 72);
    departures_note(&departures, 6, 99); // a stranger's
    assert_false(callers_take_departed(&callers, &departures, &process));
    departures_close(&departures, 5);
    departures_close(&departures, 6);
    assert_true(callers_take_departed(&callers, &departures, &process));
    assert_int_equal(process, 1);
    assert_false(callers_take_departed(&callers, &departures, &process));
    departures_finish(&departures);
    callers_finish(&callers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rank_is_known_by_each_of_its_connections),
        cmocka_unit_test(a_hello_of_the_same_connection_changes_nothing),
        cmocka_unit_test(a_rank_that_is_taken_stays_with_its_connection),
        cmocka_unit_test(a_connection_is_one_lane_of_one_rank),
        cmocka_unit_test(ranks_and_lanes_that_there_are_not_are_refused),
        cmocka_unit_test(a_connection_is_all_ranks_of_its_process),
        cmocka_unit_test(a_process_is_told_by_any_of_its_connections_that_was_closed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
