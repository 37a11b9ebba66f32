/* Tests of the slots of a job: who gets one, and what entering a state notes. */
#include "ps-server/coordinator/membership.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on

static void states_on_the_way_to_training_count_as_an_arrival_and_others_do_not(void **state)
{
    (void)state;
    const struct {
        enum slot_state entered;
        bool is_arrival;
    } cases[] = {{SLOT_JOINED, true},    {SLOT_READY, true}, {SLOT_TRIED, true},
                 {SLOT_CONNECTED, true}, {SLOT_DONE, false}, {SLOT_GONE, false}};
    struct membership membership;
    assert_int_equal(membership_init(&membership, 1, 0), STATUS_OK);
    for (uint64_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        membership.arrived_ms = 0;
        slot_enter(&membership, &membership.workers[0], cases[i].entered, 100 + i);
        assert_int_equal(membership.workers[0].state, cases[i].entered);
        assert_int_equal(membership.arrived_ms, cases[i].is_arrival ? 100 + i : 0);
    }
    membership_finish(&membership);
}

static void a_connection_leads_to_its_member_and_a_strangers_to_nobody(void **state)
{
    (void)state;
    struct membership membership;
    struct sender sender;
    assert_int_equal(membership_init(&membership, 2, 1), STATUS_OK);
    membership.servers[0].peer = 7;
    slot_enter(&membership, &membership.servers[0], SLOT_JOINED, 1);
    assert_true(membership_find(&membership, 7, &sender));
    assert_ptr_equal(sender.slot, &membership.servers[0]);
    assert_int_equal(sender.role, ROLE_SERVER);
    assert_int_equal(sender.index, 0);
    assert_false(membership_find(&membership, 8, &sender));
    membership_finish(&membership);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(states_on_the_way_to_training_count_as_an_arrival_and_others_do_not),
        cmocka_unit_test(a_connection_leads_to_its_member_and_a_strangers_to_nobody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
