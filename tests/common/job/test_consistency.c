/* Tests of what each mode says of updates, and of when a worker may read. */
#include "common/job/consistency.h"
#include "tests/support/common/choices.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on

static void ps_sync_updates_when_all_have_pushed_and_allows_no_slack(void **state)
{
    (void)state;
    struct consistency consistency;
    assert_int_equal(consistency_find(mode_of("ps-sync"), &consistency), STATUS_OK);
    assert_int_equal(consistency.update, UPDATE_WHEN_ALL_PUSHED);
    assert_int_equal(consistency.slack_steps, 0);
}

static void unsynchronised_modes_update_on_every_push_within_their_bound(void **state)
{
    (void)state;
    struct consistency consistency;
    assert_int_equal(consistency_find(mode_of("ps-async"), &consistency), STATUS_OK);
    assert_int_equal(consistency.update, UPDATE_ON_PUSH);
    assert_true(consistency.slack_steps == UINT64_MAX);
    assert_int_equal(consistency_find(mode_of("ps-ssp:0"), &consistency), STATUS_OK);
    assert_int_equal(consistency.update, UPDATE_ON_PUSH);
    assert_int_equal(consistency.slack_steps, 0);
    assert_int_equal(consistency_find(mode_of("ps-ssp:1000000"), &consistency), STATUS_OK);
    assert_int_equal(consistency.slack_steps, 1000000);
}

static void a_mode_without_a_server_is_refused_and_writes_nothing(void **state)
{
    (void)state;
    const char *const modes[] = {"ring", "local"};
    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        struct consistency consistency = {.slack_steps = 7};
        assert_int_equal(consistency_find(mode_of(modes[i]), &consistency), STATUS_INVALID);
        assert_int_equal(consistency.slack_steps, 7);
    }
}

static void a_worker_reads_when_the_clock_is_at_most_slack_behind(void **state)
{
    (void)state;
    const struct {
        uint64_t slack, clock, step;
        bool may_read;
    } cases[] = {
        {0, 0, 0, true},
        {0, 0, 1, false},
        {0, 1, 1, true},
        {0, 9, 10, false},
        {0, 11, 10, true},
        {3, 0, 3, true},
        {3, 0, 4, false},
        {3, 7, 10, true},
        {3, 6, 10, false},
        {0, UINT64_MAX, UINT64_MAX, true},
        {0, UINT64_MAX - 1, UINT64_MAX, false},
        {1, UINT64_MAX - 1, UINT64_MAX, true},
        // Unbounded: clock + slack would wrap here.
        {UINT64_MAX, 0, 0, true},
        {UINT64_MAX, 0, UINT64_MAX, true},
        {UINT64_MAX, 5, 2, true},
        {UINT64_MAX, UINT64_MAX, UINT64_MAX, true},
        {UINT64_MAX - 1, 0, UINT64_MAX, false},
        {UINT64_MAX - 1, 1, UINT64_MAX, true},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct consistency consistency = {.slack_steps = cases[i].slack};
        assert_int_equal(consistency_may_read(&consistency, cases[i].clock, cases[i].step),
                         cases[i].may_read);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ps_sync_updates_when_all_have_pushed_and_allows_no_slack),
        cmocka_unit_test(unsynchronised_modes_update_on_every_push_within_their_bound),
        cmocka_unit_test(a_mode_without_a_server_is_refused_and_writes_nothing),
        cmocka_unit_test(a_worker_reads_when_the_clock_is_at_most_slack_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
