/* Tests of data connections that are closed between two members that live. */
#include "ps-server/coordinator/deadlines.h"
#include "ps-server/coordinator/generation.h"
#include "tests/support/ps-server/coordinator_story.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <string.h>

#define WORKERS 4

static void expect_reason(const struct story *story, const char *part)
{
    if (strstr(story->coordinator.reason, part) == NULL) {
        fail_msg("\"%s\" is not in \"%s\"", part, story->coordinator.reason);
    }
}

/* Worker 3 says at a time that its connection to another has been closed for so long. */
static void say_broken(struct story *story, uint32_t index, uint64_t closed_for_ms, uint64_t now_ms)
{
    const struct wire_wait wait = {.role = ROLE_WORKER,
                                   .index = index,
                                   .what = WIRE_WAIT_CHUNK,
                                   .is_broken = true,
                                   .waited_ms = closed_for_ms};
    const struct message heartbeat = {.kind = MESSAGE_HEARTBEAT, .step = 3, .wait = &wait};
    story_give(story, 4, heartbeat, now_ms);
    coordinator_tick(&story->coordinator, now_ms, 0);
}

static void two_whose_connection_was_closed_connect_anew_and_nobody_is_lost(void **state)
{
    (void)state;
    struct story story;
    story_open_training(&story, WORKERS);
    story.job.on_loss = ON_LOSS_REDEAL;
    say_broken(&story, 1, 400, 1000); // a process that has ended is missed first
    assert_int_equal(story.coordinator.state, COORDINATOR_TRAINING);
    say_broken(&story, 1, 500, 1100);
    assert_int_equal(story.coordinator.state, COORDINATOR_RENEWING);
    assert_int_equal(story.coordinator.verdict, STATUS_AGAIN);
    assert_int_equal(story.coordinator.ended_ms, 600); // it has stood still since then
    assert_int_equal(story.coordinator.workers_lost, 0);
    assert_int_equal(membership_count(story.coordinator.membership.workers, WORKERS, SLOT_GONE), 0);
    expect_reason(&story, "worker 3 (host node) and worker 1 (host node) do not reach "
                          "each other: their connection was closed");
    coordinator_finish(&story.coordinator);
}

/* The second one is lost, by its own connection. */
static void a_process_that_has_ended_is_lost_though_its_connections_were_closed(void **state)
{
    (void)state;
    struct story story;
    story_open_training(&story, WORKERS);
    story.job.on_loss = ON_LOSS_REDEAL;
    deadlines_note_closed(&story.coordinator, 2, 1000);
    say_broken(&story, 1, 900, 1900);
    assert_int_equal(story.coordinator.state, COORDINATOR_TRAINING);
    say_broken(&story, 1, 1100, 2100);
    assert_int_equal(story.coordinator.workers_lost, 1);
    expect_reason(&story, "worker 1 (host node, pid 101) was lost");
    coordinator_finish(&story.coordinator);
}

static void one_that_has_made_its_last_step_may_close_its_connections(void **state)
{
    (void)state;
    struct story story;
    story_open_training(&story, WORKERS);
    story.job.on_loss = ON_LOSS_REDEAL;
    story_done(&story, 2, "same", 900);
    say_broken(&story, 1, 900, 1900);
    assert_int_equal(story.coordinator.state, COORDINATOR_TRAINING);
    coordinator_finish(&story.coordinator);
}

static void a_job_that_may_not_go_on_fails_at_once_with_both_named(void **state)
{
    (void)state;
    struct story story;
    story_open_training(&story, WORKERS);
    story.job.on_loss = ON_LOSS_FAIL;
    say_broken(&story, 1, 600, 1000);
    assert_int_equal(story.coordinator.verdict, STATUS_UNREACHABLE);
    assert_int_equal(story.coordinator.workers_lost, 0);
    expect_reason(&story, "worker 3 (host node) and worker 1 (host node) do not reach "
                          "each other: their connection was closed");
    coordinator_finish(&story.coordinator);
}

/* Otherwise a network that closes each new connection would keep the job busy for ever. */
static void two_whose_connection_is_closed_again_before_a_step_lose_one(void **state)
{
    (void)state;
    struct story story;
    struct generation generation = {.number = 1};
    story_open_training(&story, WORKERS);
    story.job.on_loss = ON_LOSS_REDEAL;
    story.coordinator.generation = &generation;
    story.coordinator.begin_step = 3;
    say_broken(&story, 1, 600, 1000);
    assert_int_equal(story.coordinator.verdict, STATUS_AGAIN);
    assert_int_equal(story.coordinator.workers_lost, 1);
    assert_int_equal(story.coordinator.membership.workers[3].state, SLOT_GONE);
    coordinator_finish(&story.coordinator);
}

/* Nor may one that lets a few steps through each time, so that no copy is taken. */
static void a_job_that_begins_at_one_step_again_and_again_loses_one(void **state)
{
    (void)state;
    for (uint32_t tries = 1; tries <= 3; tries++) {
        struct story story;
        struct recovery recoveries[] = {
            {.begin_step = 1}, {.begin_step = 2}, {.begin_step = 2}, {.begin_step = 2}};
        struct generation generation = {
            .number = 1, .recoveries = recoveries, .recovery_count = 1 + tries};
        story_open_training(&story, WORKERS);
        story.job.on_loss = ON_LOSS_REDEAL;
        story.coordinator.generation = &generation;
        story.coordinator.begin_step = 2;
        say_broken(&story, 1, 600, 1000);
        assert_int_equal(story.coordinator.verdict, STATUS_AGAIN);
        assert_int_equal(story.coordinator.workers_lost, tries < 3 ? 0 : 1);
        coordinator_finish(&story.coordinator);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_whose_connection_was_closed_connect_anew_and_nobody_is_lost),
        cmocka_unit_test(a_process_that_has_ended_is_lost_though_its_connections_were_closed),
        cmocka_unit_test(one_that_has_made_its_last_step_may_close_its_connections),
        cmocka_unit_test(a_job_that_may_not_go_on_fails_at_once_with_both_named),
        cmocka_unit_test(two_whose_connection_is_closed_again_before_a_step_lose_one),
        cmocka_unit_test(a_job_that_begins_at_one_step_again_and_again_loses_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
