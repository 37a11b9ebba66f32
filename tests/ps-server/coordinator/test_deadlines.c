/* Tests of who is given up, and when: a coordinator that was away, members that starve, and members
 * that have died. In virtual time. */
#include "ps-server/coordinator/deadlines.h"
#include "tests/support/ps-server/coordinator_story.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdio.h>
#include <string.h>

static void hear(struct story *story, uint64_t peer, uint64_t step, uint64_t now_ms)
{
    story_give(story, peer, (struct message){.kind = MESSAGE_HEARTBEAT, .step = step}, now_ms);
}

/* Worker 0 goes on, worker 1 has said nothing since from_ms. */
static void be_silent(struct story *story, uint64_t from_ms, uint64_t to_ms)
{
    for (uint64_t now_ms = from_ms; now_ms < to_ms; now_ms += 500) {
        hear(story, 1, now_ms, now_ms);
        coordinator_tick(&story->coordinator, now_ms, 0);
        if (story->coordinator.state != COORDINATOR_TRAINING) {
            fail_msg("given up at %llu: %s", (unsigned long long)now_ms, story->coordinator.reason);
        }
    }
    hear(story, 1, to_ms, to_ms);
    coordinator_tick(&story->coordinator, to_ms, 0);
}

static void expect_reason(const struct story *story, const char *text)
{
    if (strstr(story->coordinator.reason, text) == NULL) {
        fail_msg("\"%s\" is not in \"%s\"", text, story->coordinator.reason);
    }
}

static void a_coordinator_that_was_away_blames_nobody(void **state)
{
    (void)state;
    struct story story;
    story_open_training(&story, 2);
    hear(&story, 1, 1, 1000);
    hear(&story, 2, 1, 1000);
    coordinator_tick(&story.coordinator, 1000, 0);
    coordinator_tick(&story.coordinator, 7000, 5750); // it was stopped
    assert_int_equal(story.coordinator.state, COORDINATOR_TRAINING);
    // What was silent before counts, and what is from now on.
    be_silent(&story, 7000, 11750);
    assert_int_equal(story.coordinator.verdict, STATUS_UNREACHABLE);
    expect_reason(&story, "worker 1 (host node, pid 101) was lost (last heard of at step 1): "
                          "nothing heard for 5.0 s");
    assert_ptr_equal(story.coordinator.culprit.slot, &story.coordinator.membership.workers[1]);
    coordinator_finish(&story.coordinator);
}

static void a_pause_is_no_stall_and_nobody_is_late_for_it(void **state)
{
    (void)state;
    struct story story;
    story_open_training(&story, 2);
    hear(&story, 1, 1, 1000);
    hear(&story, 2, 1, 1000);
    coordinator_tick(&story.coordinator, 200000, 198750);
    assert_int_equal(story.coordinator.state, COORDINATOR_TRAINING);
    coordinator_finish(&story.coordinator);
    story_open(&story, "ring", 2, 0);
    coordinator_tick(&story.coordinator, 200000, 199000);
    assert_int_equal(story.coordinator.state, COORDINATOR_GATHERING);
    coordinator_finish(&story.coordinator);
}

static void a_process_that_is_there_is_given_the_time_of_a_stall(void **state)
{
    (void)state;
    struct story story;
    story_open_training(&story, 2);
    story.transcript.presence = PRESENCE_RUNS;
    story.job.stall_fail = 60;
    hear(&story, 2, 17, 1000);
    be_silent(&story, 1000, 50000);
    assert_int_equal(story.coordinator.state, COORDINATOR_TRAINING);
    be_silent(&story, 50000, 61000);
    assert_int_equal(story.coordinator.verdict, STATUS_UNREACHABLE);
    expect_reason(&story, "nothing heard for 60.0 s, though its process is running (--stall-fail)");
    coordinator_finish(&story.coordinator);
}

static void who_is_silent_and_is_given_time_is_named_at_once(void **state)
{
    (void)state;
    struct story story;
    story_open_training(&story, 2);
    story.transcript.presence = PRESENCE_RUNS;
    hear(&story, 2, 17, 1000);
    be_silent(&story, 1000, 6000);
    assert_int_equal(story.coordinator.state, COORDINATOR_TRAINING);
    if (strstr(story.transcript.last_error, "worker 1 (host node, pid 101) for 5.0 s") == NULL) {
        fail_msg("%s", story.transcript.last_error);
    }
    coordinator_finish(&story.coordinator);
}

static void a_process_that_is_stopped_or_has_ended_is_given_no_more(void **state)
{
    (void)state;
    const struct {
        enum presence presence;
        const char *said;
    } cases[] = {{PRESENCE_STOPPED, "5.0 s, and its process is stopped"},
                 {PRESENCE_ENDED, "5.0 s, and its process has ended"}};
    for (size_t i = 0; i < 2; i++) {
        struct story story;
        story_open_crowded(&story, 2, 1);
        story.transcript.presence = cases[i].presence;
        hear(&story, 2, 17, 1000);
        be_silent(&story, 1000, 6000);
        assert_int_equal(story.coordinator.verdict, STATUS_UNREACHABLE);
        expect_reason(&story, cases[i].said);
        coordinator_finish(&story.coordinator);
    }
}

static void a_host_with_more_members_than_cores_is_given_more_and_members_are_told(void **state)
{
    (void)state;
    struct story story;
    story_open_crowded(&story, 6, 2);
    for (uint64_t peer = 2; peer <= 6; peer++) {
        hear(&story, peer, 1, 1000);
    }
    be_silent(&story, 1000, 15500);
    assert_int_equal(story.coordinator.state, COORDINATOR_TRAINING);
    assert_int_equal(story.transcript.patience_ms, 30000);
    be_silent(&story, 15500, 16000);
    assert_int_equal(story.coordinator.verdict, STATUS_UNREACHABLE);
    expect_reason(&story, "nothing heard for 15.0 s");
    coordinator_finish(&story.coordinator);
    story_open_crowded(&story, 2, 4);
    be_silent(&story, 500, 1000);
    assert_int_equal(story.transcript.patience_ms, 10000);
    coordinator_finish(&story.coordinator);
}

static void a_closed_connection_tells_of_a_death_at_once(void **state)
{
    (void)state;
    struct story story;
    story_open_crowded(&story, 2, 1);
    story.transcript.presence = PRESENCE_RUNS; // the kernel may still be ending it
    hear(&story, 2, 1, 1000);
    const struct wire_report report = {.steps = 17, .images = 17};
    story_give(&story, 2,
               (struct message){.kind = MESSAGE_REPORT, .rank = 1, .step = 17, .report = &report},
               1100); // newer than its last heartbeat
    deadlines_note_closed(&story.coordinator, 2, 1200);
    deadlines_note_closed(&story.coordinator, 77, 1200); // whoever that is
    coordinator_tick(&story.coordinator, 2100, 0);
    assert_int_equal(story.coordinator.state, COORDINATOR_TRAINING);
    coordinator_tick(&story.coordinator, 2200, 0);
    assert_int_equal(story.coordinator.verdict, STATUS_UNREACHABLE);
    expect_reason(&story, "worker 1 (host node, pid 101) was lost (last heard of at step 17): its "
                          "connection was closed");
    coordinator_finish(&story.coordinator);
}

static void what_was_said_before_a_connection_was_closed_counts(void **state)
{
    (void)state;
    struct story story;
    story_open_training(&story, 2);
    deadlines_note_closed(&story.coordinator, 2, 1200);
    coordinator_tick(&story.coordinator, 9000, 7550); // and the coordinator was stopped
    story_give(&story, 2,
               (struct message){.kind = MESSAGE_LEAVE,
                                .reason = STATUS_NOT_FINITE,
                                .text = "the loss is not finite"},
               9010);
    assert_int_equal(story.coordinator.verdict, STATUS_NOT_FINITE);
    coordinator_finish(&story.coordinator);
}

static void a_coordinator_that_was_given_up_names_its_own_absence(void **state)
{
    (void)state;
    struct story story;
    story_open_training(&story, 2);
    deadlines_note_closed(&story.coordinator, 2, 31000);
    coordinator_tick(&story.coordinator, 31000, 29750);
    coordinator_tick(&story.coordinator, 32000, 0);
    assert_int_equal(story.coordinator.verdict, STATUS_UNREACHABLE);
    expect_reason(&story, "its connection was closed while this coordinator was away for 29.8 s");
    coordinator_finish(&story.coordinator);
}

/* All workers of a ring fall silent at once. */
static void a_coordinator_that_hears_nobody_is_cut_off_and_judges_nobody(void **state)
{
    (void)state;
    struct story story;
    char sentence[512];
    story_open_training(&story, 3);
    story.job.outlast = 60;
    for (uint64_t peer = 1; peer <= 3; peer++) {
        hear(&story, peer, 17, 1000 + 100 * peer);
    }
    assert_false(deadlines_hears_nobody(&story.coordinator, 2000));
    coordinator_tick(&story.coordinator, 30000, 0);
    assert_true(deadlines_hears_nobody(&story.coordinator, 30000));
    assert_int_equal(story.coordinator.state, COORDINATOR_TRAINING);
    story.coordinator.silence_warned_ms = 0;
    assert_true(stalls_should_warn(&story.coordinator, 30000, sentence, sizeof(sentence)));
    assert_non_null(strstr(sentence, "is the network cut?"));
    hear(&story, 2, 18, 30100);
    assert_false(deadlines_hears_nobody(&story.coordinator, 30100));
    coordinator_tick(&story.coordinator, 30100, 0);
    assert_int_equal(story.coordinator.state, COORDINATOR_TRAINING); // the others may take a while
    hear(&story, 2, 18, 34000);
    coordinator_tick(&story.coordinator, 34000, 0);
    assert_int_equal(story.coordinator.state, COORDINATOR_TRAINING);
    hear(&story, 2, 18, 35200);
    coordinator_tick(&story.coordinator, 35200, 0);
    assert_int_equal(story.coordinator.verdict, STATUS_UNREACHABLE); // and are lost then
    coordinator_finish(&story.coordinator);
}

/* Its thread that receives hangs, say. */
static void a_coordinator_that_hears_nobody_of_those_that_run_here_is_deaf(void **state)
{
    (void)state;
    struct story story;
    story_open_training(&story, 2);
    hear(&story, 1, 17, 1000);
    hear(&story, 2, 17, 2000);
    story.transcript.presence = PRESENCE_RUNS;
    assert_false(deadlines_is_deaf(&story.coordinator, 6900)); // --lost-after is 5 s
    assert_true(deadlines_is_deaf(&story.coordinator, 7100));
    story.transcript.presence = PRESENCE_UNKNOWN; // it is the network
    assert_false(deadlines_is_deaf(&story.coordinator, 7100));
    story.transcript.presence = PRESENCE_STOPPED; // it is they who are still
    assert_false(deadlines_is_deaf(&story.coordinator, 7100));
    story.transcript.presence = PRESENCE_RUNS;
    deadlines_note_closed(&story.coordinator, 2, 7000); // which it has heard
    assert_false(deadlines_is_deaf(&story.coordinator, 7100));
    coordinator_finish(&story.coordinator);
    story_open_training(&story, 1); // a single one may hang itself
    hear(&story, 1, 17, 1000);
    story.transcript.presence = PRESENCE_RUNS;
    assert_false(deadlines_is_deaf(&story.coordinator, 60000));
    coordinator_finish(&story.coordinator);
}

static void nobody_waits_for_those_who_have_given_up(void **state)
{
    (void)state;
    struct story story;
    story_open_training(&story, 3);
    story.job.outlast = 60;
    for (uint64_t peer = 1; peer <= 3; peer++) {
        hear(&story, peer, 17, 1000);
    }
    coordinator_tick(&story.coordinator, 61000, 0);
    assert_int_equal(story.coordinator.state, COORDINATOR_TRAINING);
    coordinator_tick(&story.coordinator, 1000 + 60000 + 60000, 0);
    assert_int_equal(story.coordinator.verdict, STATUS_UNREACHABLE);
    coordinator_finish(&story.coordinator);
}

static void a_single_worker_that_is_silent_is_lost_as_ever(void **state)
{
    (void)state;
    struct story story;
    story_open_training(&story, 2);
    story.job.outlast = 60;
    hear(&story, 2, 17, 1000);
    be_silent(&story, 1000, 6000);
    assert_int_equal(story.coordinator.verdict, STATUS_UNREACHABLE);
    coordinator_finish(&story.coordinator);
}

/* They have made new connections meanwhile, which take a moment to be noticed. */
static void those_who_missed_a_coordinator_that_was_away_may_come_back(void **state)
{
    (void)state;
    struct story story;
    story_open_training(&story, 2);
    story.job.outlast = 60;
    hear(&story, 1, 17, 1000);
    hear(&story, 2, 17, 1000);
    coordinator_tick(&story.coordinator, 1000, 0);
    coordinator_tick(&story.coordinator, 30000, 28750);
    deadlines_note_closed(&story.coordinator, 1, 30010);
    deadlines_note_closed(&story.coordinator, 2, 30010);
    coordinator_tick(&story.coordinator, 34000, 0);
    assert_int_equal(story.coordinator.state, COORDINATOR_TRAINING);
    coordinator_tick(&story.coordinator, 37000, 0);
    assert_int_equal(story.coordinator.verdict, STATUS_UNREACHABLE);
    expect_reason(&story, "while this coordinator was away");
    coordinator_finish(&story.coordinator);
}

static void each_that_comes_gives_the_others_as_long_again(void **state)
{
    (void)state;
    struct story story;
    story_open(&story, "ring", 3, 0);
    story.cores = 1;
    struct wire_member member = {.role = ROLE_WORKER, .host = "node", .cores = 1};
    const struct message join = {.kind = MESSAGE_JOIN, .member = &member, .text = RINGSIDE_VERSION};
    for (uint64_t peer = 1; peer <= 2; peer++) {
        story_give(&story, peer, join, 25000 * peer);
        hear(&story, 1, 0, 25000 * peer);
        coordinator_tick(&story.coordinator, 25000 * peer, 0);
        assert_int_equal(story.coordinator.state, COORDINATOR_GATHERING);
    }
    // Two of them on one core: twice as long.
    for (uint64_t now_ms = 50500; now_ms < 110000; now_ms += 500) {
        hear(&story, 1, 0, now_ms);
        hear(&story, 2, 0, now_ms);
        coordinator_tick(&story.coordinator, now_ms, 0);
        assert_int_equal(story.coordinator.state, COORDINATOR_GATHERING);
    }
    coordinator_tick(&story.coordinator, 110000, 0);
    assert_int_equal(story.coordinator.verdict, STATUS_TIMED_OUT);
    expect_reason(&story,
                  "only 2 of 3 workers have joined, none in the last 60 s; missing: rank 2");
    coordinator_finish(&story.coordinator);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_coordinator_that_was_away_blames_nobody),
        cmocka_unit_test(a_pause_is_no_stall_and_nobody_is_late_for_it),
        cmocka_unit_test(a_process_that_is_there_is_given_the_time_of_a_stall),
        cmocka_unit_test(who_is_silent_and_is_given_time_is_named_at_once),
        cmocka_unit_test(a_process_that_is_stopped_or_has_ended_is_given_no_more),
        cmocka_unit_test(a_host_with_more_members_than_cores_is_given_more_and_members_are_told),
        cmocka_unit_test(a_closed_connection_tells_of_a_death_at_once),
        cmocka_unit_test(what_was_said_before_a_connection_was_closed_counts),
        cmocka_unit_test(a_coordinator_that_was_given_up_names_its_own_absence),
        cmocka_unit_test(a_coordinator_that_hears_nobody_is_cut_off_and_judges_nobody),
        cmocka_unit_test(a_coordinator_that_hears_nobody_of_those_that_run_here_is_deaf),
        cmocka_unit_test(nobody_waits_for_those_who_have_given_up),
        cmocka_unit_test(a_single_worker_that_is_silent_is_lost_as_ever),
        cmocka_unit_test(those_who_missed_a_coordinator_that_was_away_may_come_back),
        cmocka_unit_test(each_that_comes_gives_the_others_as_long_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
