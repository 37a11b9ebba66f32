/* Tests of the modes that a job has over its length. */
#include "common/job/job_modes.h"
#include "tests/support/common/sample_job.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on

static void a_job_has_its_mode_and_those_it_switches_to(void **state)
{
    (void)state;
    const struct job plain = SAMPLE_JOB("mode=ring");
    assert_true(job_has_mode(&plain, MODE_RING) && !job_has_mode(&plain, MODE_PS_SYNC));
    assert_false(job_has_servers(&plain));
    const struct job mixed =
        SAMPLE_JOB("mode=ring", "epochs=4", "switch=epoch:1=ps-sync;epoch:2=ps-ssp:3");
    assert_true(job_has_mode(&mixed, MODE_RING) && job_has_mode(&mixed, MODE_PS_SYNC) &&
                job_has_mode(&mixed, MODE_PS_SSP));
    assert_false(job_has_mode(&mixed, MODE_PS_ASYNC));
    assert_true(job_has_servers(&mixed));
    assert_int_equal(job_switches(&mixed).count, 2);
}

static void servers_update_unless_they_hand_back_means(void **state)
{
    (void)state;
    const struct job ring = SAMPLE_JOB("mode=ring"), sync = SAMPLE_JOB("mode=ps-sync");
    const struct job none = SAMPLE_JOB("mode=ps-sync", "server-optimizer=none");
    assert_true(job_servers_update(&sync));
    assert_false(job_servers_update(&ring) || job_servers_update(&none));
    assert_true(job_has_servers(&none));
}

static void one_unsynchronised_phase_makes_the_job_so(void **state)
{
    (void)state;
    const struct job ring = SAMPLE_JOB("mode=ring"), sync = SAMPLE_JOB("mode=ps-sync");
    const struct job backup = SAMPLE_JOB("mode=ps-sync", "workers=4", "backup=1");
    const struct job later = SAMPLE_JOB("mode=ring", "epochs=2", "switch=epoch:1=ps-async");
    assert_false(job_is_unsynchronised(&ring) || job_is_unsynchronised(&sync));
    assert_true(job_is_unsynchronised(&backup) && job_is_unsynchronised(&later));
    assert_false(job_is_unsynchronised_in(&later, MODE_RING));
    assert_false(job_is_unsynchronised_in(&backup, MODE_RING));
    assert_true(job_is_unsynchronised_in(&backup, MODE_PS_SYNC));
}

static void members_outlast_their_coordinator_and_a_ring_trains_on(void **state)
{
    (void)state;
    const struct job ring = SAMPLE_JOB("mode=ring"), sync = SAMPLE_JOB("mode=ps-sync");
    const struct job later = SAMPLE_JOB("mode=ring", "epochs=2", "switch=epoch:1=ps-async");
    const struct job local = SAMPLE_JOB("mode=local"), none = SAMPLE_JOB("mode=ring", "outlast=0");
    const struct job gpu = SAMPLE_JOB("mode=ps-sync", "server-device=cuda");
    const struct job apart = SAMPLE_JOB("mode=ps-sync", "coordinator-role=alone");
    assert_true(job_outlasts_coordinator(&ring) && job_trains_alone(&ring));
    assert_true(job_outlasts_coordinator(&sync) && !job_trains_alone(&sync));
    assert_true(job_outlasts_coordinator(&apart) && job_trains_alone(&apart));
    assert_true(job_outlasts_coordinator(&later) && !job_trains_alone(&later));
    assert_false(job_outlasts_coordinator(&local) || job_outlasts_coordinator(&none));
    assert_true(job_outlasts_coordinator(&gpu) && !job_trains_alone(&gpu));
    assert_int_equal(job_outlast_ms(&sync), 60000);
    assert_int_equal(job_outlast_ms(&none), 0);
}

static void a_program_of_its_own_outlasts_where_it_needs_no_coordinator_or_commits(void **state)
{
    (void)state;
    const struct job ring = SAMPLE_JOB("mode=ring", "model=external:mine");
    const struct job sync = SAMPLE_JOB("mode=ps-sync", "model=external:mine");
    const struct job apart =
        SAMPLE_JOB("mode=ps-async", "model=external:mine", "coordinator-role=alone");
    const struct job commits = SAMPLE_JOB("mode=ps-sync", "model=external:mine", "on-loss=commit");
    const struct job ours = SAMPLE_JOB("mode=ps-sync");
    assert_true(job_outlasts_coordinator(&ring) && job_trains_alone(&ring));
    assert_false(job_may_begin_anew(&ring));
    assert_false(job_outlasts_coordinator(&sync));
    assert_true(job_outlasts_coordinator(&apart) && job_trains_alone(&apart));
    assert_true(job_outlasts_coordinator(&commits) && !job_trains_alone(&commits));
    assert_true(job_may_begin_anew(&commits) && job_may_begin_anew(&ours));
}

static void keys_for_some_connections_alone_are_no_hindrance(void **state)
{
    (void)state;
    const struct job ring = SAMPLE_JOB("mode=ring", "security=auth-only");
    assert_true(job_outlasts_coordinator(&ring) && job_trains_alone(&ring));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_has_its_mode_and_those_it_switches_to),
        cmocka_unit_test(servers_update_unless_they_hand_back_means),
        cmocka_unit_test(one_unsynchronised_phase_makes_the_job_so),
        cmocka_unit_test(members_outlast_their_coordinator_and_a_ring_trains_on),
        cmocka_unit_test(a_program_of_its_own_outlasts_where_it_needs_no_coordinator_or_commits),
        cmocka_unit_test(keys_for_some_connections_alone_are_no_hindrance),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
