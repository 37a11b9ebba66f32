/* Tests of who is blamed where members wait for each other. */
#include "common/plan/blame.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on

static void expect(struct blame blame, uint32_t waiter, uint32_t awaited, bool is_pair)
{
    assert_true(blame.is_known);
    assert_int_equal(blame.waiter, waiter);
    assert_int_equal(blame.awaited, awaited);
    assert_int_equal(blame.is_pair, is_pair);
}

static void a_chain_leads_to_the_one_that_waits_for_nobody(void **state)
{
    (void)state;
    const struct blame_member members[] = {
        {.awaits = 1}, {.awaits = 3}, {.awaits = 1}, {.awaits = BLAME_NOBODY}};
    expect(blame_find(members, 4, 0), 1, 3, false);
    expect(blame_find(members, 4, 2), 1, 3, false);
    expect(blame_find(members, 4, 3), BLAME_NOBODY, 3, false);
}

static void two_that_wait_for_each_other_are_a_pair(void **state)
{
    (void)state;
    const struct blame_member members[] = {
        {.awaits = 2}, {.awaits = 2}, {.awaits = 1}, {.awaits = 0}};
    expect(blame_find(members, 4, 3), 2, 1, true);
    expect(blame_find(members, 4, 1), 1, 2, true);
}

/* Everybody waits for the one before it, and has sent as much as has come there, but for one. */
static void a_ring_is_broken_where_less_has_come_than_was_sent(void **state)
{
    (void)state;
    for (uint32_t broken = 0; broken < 4; broken++) {
        uint64_t given[4][4] = {{0}};
        struct blame_member members[4];
        for (uint32_t i = 0; i < 4; i++) {
            given[i][(i + 1) % 4] = 7;
            members[i] = (struct blame_member){(i + 3) % 4, 7, given[i], 0, 4};
        }
        members[broken].taken = 5;
        for (uint32_t first = 0; first < 4; first++) {
            expect(blame_find(members, 4, first), broken, (broken + 3) % 4, true);
        }
        members[broken].taken = 7;
        assert_false(blame_find(members, 4, 1).is_known); // it goes round for no reason
    }
}

static void what_was_lost_on_the_way_counts_before_who_waits_for_nobody(void **state)
{
    (void)state;
    const uint64_t given[] = {3, 0, 0};
    const struct blame_member members[] = {
        {.awaits = 1, .taken = 2},
        {.awaits = 2, .given = given, .given_count = 3},
        {.awaits = BLAME_NOBODY},
    };
    expect(blame_find(members, 3, 0), 0, 1, true);
    expect(blame_find(members, 3, 1), 1, 2, false);
}

/* 0 and 1 are workers, 2 and 3 servers. Each waits for the next in 0, 3, 1, 2, 0. Workers say what
 * they have sent to servers, and servers what they have sent to workers. */
static void a_circle_of_two_roles_is_broken_where_less_has_come_than_was_sent(void **state)
{
    (void)state;
    static const uint32_t circle[] = {0, 3, 1, 2};
    for (uint32_t broken = 0; broken < 4; broken++) {
        uint64_t given[4][2] = {{7, 7}, {7, 7}, {7, 7}, {7, 7}};
        struct blame_member members[4];
        for (uint32_t i = 0; i < 4; i++) {
            uint32_t member = circle[i];
            members[member] =
                (struct blame_member){circle[(i + 1) % 4], 7, given[member], member < 2 ? 2 : 0, 2};
        }
        for (uint32_t first = 0; first < 4; first++) {
            assert_false(blame_find(members, 4, first).is_known);
        }
        members[circle[broken]].taken = 6;
        for (uint32_t first = 0; first < 4; first++) {
            expect(blame_find(members, 4, first), circle[broken], circle[(broken + 1) % 4], true);
        }
    }
}

static void members_that_do_not_exist_are_waited_for_by_nobody(void **state)
{
    (void)state;
    const struct blame_member members[] = {{.awaits = 7}, {.awaits = 1}, {.awaits = 0}};
    expect(blame_find(members, 3, 0), BLAME_NOBODY, 0, false);
    expect(blame_find(members, 3, 1), BLAME_NOBODY, 1, false); // nor by itself
    expect(blame_find(members, 3, 2), 2, 0, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_chain_leads_to_the_one_that_waits_for_nobody),
        cmocka_unit_test(two_that_wait_for_each_other_are_a_pair),
        cmocka_unit_test(a_ring_is_broken_where_less_has_come_than_was_sent),
        cmocka_unit_test(a_circle_of_two_roles_is_broken_where_less_has_come_than_was_sent),
        cmocka_unit_test(what_was_lost_on_the_way_counts_before_who_waits_for_nobody),
        cmocka_unit_test(members_that_do_not_exist_are_waited_for_by_nobody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
