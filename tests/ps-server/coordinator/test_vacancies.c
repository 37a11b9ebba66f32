/* Tests of members that are lost before the job begins, and of those that take their places. */
#include "ps-server/coordinator/deadlines.h"
#include "tests/support/common/choices.h"
#include "tests/support/ps-server/launched_story.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdio.h>
#include <string.h>

static const char *const modes[] = {"ring", "ps-sync", "ps-ssp:2", "ps-async"};

/* Two workers of a job with a server, of which worker 0 is ready and worker 1 has joined: peers 1
 * and 2. */
static void open_gathering(struct story *story, const char *mode)
{
    uint32_t servers = strcmp(mode, "ring") == 0 ? 0 : 1;
    story_open(story, mode, 2, servers);
    story_join(story, 1, ROLE_WORKER, 0);
    story_join(story, 2, ROLE_WORKER, 1);
    if (servers > 0) {
        story_join(story, 10, ROLE_SERVER, 0);
        story_ready(story, 10, ROLE_SERVER, "", NULL);
    }
    story_ready(story, 1, ROLE_WORKER, "first", &story_layout);
    assert_int_equal(story->coordinator.state, COORDINATOR_GATHERING);
}

static void close_connection(struct story *story, uint64_t peer, uint64_t now_ms)
{
    deadlines_note_closed(&story->coordinator, peer, now_ms);
    coordinator_tick(&story->coordinator, now_ms + 1500, 0);
}

/* Another process takes the place of worker 1, as peer 3, and the job begins. */
static void begin_with_another(struct story *story)
{
    story_join(story, 3, ROLE_WORKER, 1);
    assert_int_equal(story_last_kind(story), MESSAGE_WELCOME);
    assert_int_equal(story->coordinator.state, COORDINATOR_GATHERING);
    story_ready(story, 3, ROLE_WORKER, "first", &story_layout);
    assert_int_equal(story->coordinator.state, COORDINATOR_CONNECTING);
}

static void a_worker_whose_connection_is_closed_is_replaced_in_every_mode(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        struct story story;
        open_gathering(&story, modes[i]);
        close_connection(&story, 2, 100);
        assert_int_equal(story.coordinator.state, COORDINATOR_GATHERING);
        assert_int_equal(story.coordinator.workers_lost, 1);
        assert_non_null(strstr(
            story.transcript.last_error,
            "worker 1 (host node, pid 101) was lost (last heard of at step 0): its connection "
            "was closed; the job has not begun, and waits"));
        begin_with_another(&story);
        coordinator_finish(&story.coordinator);
    }
}

/* The worker was killed with the coordinator before this one, and the job may have begun. */
static void a_coordinator_that_is_here_again_does_not_say_that_the_job_has_not_begun(void **state)
{
    (void)state;
    for (uint32_t restarts = 0; restarts < 2; restarts++) {
        struct story story;
        story_open(&story, "ring", 2, 0);
        story.coordinator.restarts_before = restarts;
        story_tell_end(&story, LAUNCHER_AGAIN, 1);
        const char *said = story.transcript.last_error;
        assert_int_equal(strstr(said, "; the job has not begun, and waits") != NULL, restarts == 0);
        assert_int_equal(strstr(said, "; the coordinator has just been started again, and waits") !=
                             NULL,
                         restarts == 1);
        coordinator_finish(&story.coordinator);
    }
}

/* What a process that is no member any more says counts for nothing. */
static void a_worker_that_falls_silent_is_sent_away_and_replaced(void **state)
{
    (void)state;
    struct story story;
    open_gathering(&story, "ring");
    story_give(&story, 1, (struct message){.kind = MESSAGE_HEARTBEAT}, 9000);
    coordinator_tick(&story.coordinator, 11000, 0);
    assert_int_equal(story_last_kind(&story), MESSAGE_STOP);
    assert_int_equal(story.transcript.sent[story.transcript.sent_count - 1].peer, 2);
    story_give(&story, 2, (struct message){.kind = MESSAGE_LEAVE}, 11001);
    begin_with_another(&story);
    coordinator_finish(&story.coordinator);
}

/* One whose place it is comes sooner than the loss counts as certain. */
static void who_comes_for_a_place_whose_connection_is_closed_gets_it(void **state)
{
    (void)state;
    struct story story;
    open_gathering(&story, "ps-sync");
    deadlines_note_closed(&story.coordinator, 2, 100);
    begin_with_another(&story);
    coordinator_finish(&story.coordinator);
}

static void join_anywhere(struct story *story, uint64_t peer, uint64_t process)
{
    const struct wire_member member = {
        .role = ROLE_WORKER, .host = "node", .process_id = process, .cores = story->cores};
    story_give(story, peer,
               (struct message){.kind = MESSAGE_JOIN, .member = &member, .text = RINGSIDE_VERSION},
               110);
}

/* By hand, nobody says which. A place that is free is given first. */
static void who_comes_for_any_place_gets_one_whose_connection_is_closed(void **state)
{
    (void)state;
    struct story story;
    story_open(&story, "ring", 2, 0);
    join_anywhere(&story, 1, 201);
    deadlines_note_closed(&story.coordinator, 1, 100);
    join_anywhere(&story, 2, 202);
    assert_int_equal(story.coordinator.membership.workers[1].process_id, 202);
    assert_int_equal(story.coordinator.workers_lost, 0);
    join_anywhere(&story, 3, 203);
    assert_int_equal(story_last_kind(&story), MESSAGE_WELCOME);
    assert_int_equal(story.coordinator.membership.workers[0].process_id, 203);
    assert_int_equal(story.coordinator.workers_lost, 1);
    join_anywhere(&story, 4, 204);
    assert_int_equal(story_last_kind(&story), MESSAGE_REFUSE);
    coordinator_finish(&story.coordinator);
}

/* It was killed while its JOIN was on its way, and that had been told already. */
static void one_that_joins_when_it_is_dead_keeps_nobody_from_its_place(void **state)
{
    (void)state;
    for (int is_soon = 0; is_soon < 2; is_soon++) {
        struct story story;
        story_open(&story, "ring", 2, 0);
        story.coordinator.is_launched = true;
        story_join(&story, 1, ROLE_WORKER, 0);
        story_ready(&story, 1, ROLE_WORKER, "first", &story_layout);
        story_tell_end(&story, LAUNCHER_AGAIN, 1);
        story_join(&story, 2, ROLE_WORKER, 1);
        if (!is_soon) {
            close_connection(&story, 2, 200);
        }
        begin_with_another(&story);
        assert_int_equal(story.coordinator.workers_lost, 1);
        coordinator_finish(&story.coordinator);
    }
}

/* Somebody may have taken it by hand. Whoever asks for any place gets none that is taken. */
static void who_loses_its_place_to_the_launchers_process_is_told(void **state)
{
    (void)state;
    struct story story;
    story_open(&story, "ring", 2, 0);
    story.coordinator.is_launched = true;
    story_join(&story, 1, ROLE_WORKER, 0);
    story_tell_end(&story, LAUNCHER_AGAIN, 1);
    story_join(&story, 2, ROLE_WORKER, 1);
    join_anywhere(&story, 4, 204);
    assert_int_equal(story_last_kind(&story), MESSAGE_REFUSE);
    uint32_t sent = story.transcript.sent_count;
    story_join(&story, 3, ROLE_WORKER, 1);
    assert_int_equal(story.transcript.sent_count, sent + 2);
    assert_int_equal(story.transcript.sent[sent].kind, MESSAGE_STOP);
    assert_int_equal(story.transcript.sent[sent].peer, 2);
    assert_int_equal(story.transcript.sent[sent].reason, STATUS_UNREACHABLE);
    assert_int_equal(story_last_kind(&story), MESSAGE_WELCOME);
    assert_non_null(strstr(story.transcript.last_error, "worker 1 (host node, pid 101) loses its "
                                                        "place to another process"));
    coordinator_finish(&story.coordinator);
}

static void who_takes_a_place_and_is_lost_later_counts_as_lost_too(void **state)
{
    (void)state;
    struct story story;
    story_open(&story, "ring", 2, 0);
    story.coordinator.is_launched = true;
    story_join(&story, 1, ROLE_WORKER, 0);
    story_ready(&story, 1, ROLE_WORKER, "first", &story_layout);
    story_tell_end(&story, LAUNCHER_AGAIN, 1);
    begin_with_another(&story);
    story_connected(&story, 1);
    story_connected(&story, 3);
    assert_int_equal(story.coordinator.state, COORDINATOR_TRAINING);
    story.job.on_loss = ON_LOSS_REDEAL;
    story.job.min_workers = 1;
    close_connection(&story, 3, 200);
    assert_int_not_equal(story.coordinator.state, COORDINATOR_TRAINING);
    assert_int_equal(story.coordinator.workers_lost, 2);
    coordinator_finish(&story.coordinator);
}

static void the_launcher_is_asked_to_start_what_can_be_replaced(void **state)
{
    (void)state;
    struct story story;
    open_gathering(&story, "ps-async");
    story.coordinator.is_launched = true;
    story_tell_end(&story, LAUNCHER_AGAIN, 1);
    assert_int_equal(story.transcript.awaited_count, 1);
    assert_int_equal(story.transcript.awaited_number, 1);
    begin_with_another(&story);
    story_tell_end(&story, LAUNCHER_AGAIN, 1); // the job has begun by now
    assert_int_equal(story.transcript.awaited_count, 1);
    assert_int_equal(story.coordinator.verdict, STATUS_UNREACHABLE);
    coordinator_finish(&story.coordinator);
}

/* One that was killed before it has joined as well. */
static void a_worker_that_has_not_joined_is_replaced(void **state)
{
    (void)state;
    struct story story;
    story_open(&story, "ring", 2, 0);
    story.coordinator.is_launched = true;
    story_join(&story, 1, ROLE_WORKER, 0);
    story_tell_end(&story, LAUNCHER_AGAIN, 1);
    assert_int_equal(story.transcript.awaited_count, 1);
    story_ready(&story, 1, ROLE_WORKER, "first", &story_layout);
    begin_with_another(&story);
    coordinator_finish(&story.coordinator);
}

/* A launcher that does not start anybody again says so, sooner or later than the network. */
static void a_launcher_that_replaces_nobody_ends_the_job(void **state)
{
    (void)state;
    for (int is_first = 0; is_first < 2; is_first++) {
        struct story story;
        open_gathering(&story, "ring");
        story.coordinator.is_launched = true;
        if (is_first == 0) {
            close_connection(&story, 2, 100);
            assert_int_equal(story.coordinator.state, COORDINATOR_GATHERING);
        }
        story_tell_end(&story, LAUNCHER_KILLED, 1);
        assert_int_equal(story.coordinator.verdict, STATUS_UNREACHABLE);
        assert_string_equal(story.coordinator.reason, "it was killed");
        assert_int_equal(story.coordinator.workers_lost, 1);
        coordinator_finish(&story.coordinator);
    }
}

/* A sum that all have given to is a result that the others hold. One that waits is none. */
static void results_of_collectives_that_others_hold_end_the_job_by_name(void **state)
{
    (void)state;
    static const double one[] = {1};
    const struct wire_sum first = {0, 1, one};
    for (int is_over = 0; is_over < 2; is_over++) {
        struct story story;
        open_gathering(&story, "ring");
        story_give(&story, 2, (struct message){.kind = MESSAGE_SUM, .rank = 1, .sum = &first}, 50);
        if (is_over == 1) {
            story_give(&story, 1, (struct message){.kind = MESSAGE_SUM, .sum = &first}, 60);
        }
        close_connection(&story, 2, 100);
        if (is_over == 0) {
            begin_with_another(&story);
        } else {
            assert_int_equal(story.coordinator.verdict, STATUS_UNREACHABLE);
            assert_non_null(strstr(story.coordinator.reason,
                                   "the others have results of collectives that its program called "
                                   "before the start, so no other process can take its place"));
        }
        coordinator_finish(&story.coordinator);
    }
}

/* The coordinator's own server is a thread of its process. Others are processes. */
static void a_server_is_replaced_unless_it_is_the_coordinators_own(void **state)
{
    (void)state;
    for (uint32_t lost = 0; lost < 2; lost++) {
        struct story story;
        story_open(&story, "ps-sync", 1, 2);
        story_join(&story, 10, ROLE_SERVER, 0);
        story_join(&story, 11, ROLE_SERVER, 1);
        close_connection(&story, 10 + lost, 100);
        if (lost == 0) {
            assert_int_equal(story.coordinator.verdict, STATUS_UNREACHABLE);
        } else {
            assert_int_equal(story.coordinator.state, COORDINATOR_GATHERING);
            assert_int_equal(story.coordinator.workers_lost, 0);
            story_join(&story, 12, ROLE_SERVER, 1);
            assert_int_equal(story_last_kind(&story), MESSAGE_WELCOME);
        }
        coordinator_finish(&story.coordinator);
    }
}

static void give_sum(struct story *story, uint64_t peer, double value)
{
    const struct wire_sum sum = {.count = 1, .values = &value};
    story_give(story, peer, (struct message){.kind = MESSAGE_SUM, .sum = &sum}, 120);
}

/* JOIN and what followed were on their way when the launcher told of its end. */
static void what_one_had_given_to_a_sum_goes_when_it_loses_its_place(void **state)
{
    (void)state;
    struct story story;
    story_open(&story, "ring", 2, 0);
    story.coordinator.is_launched = true;
    story_join(&story, 1, ROLE_WORKER, 0);
    story_tell_end(&story, LAUNCHER_AGAIN, 1);
    story_join_launched(&story, 2, 1, 0);
    give_sum(&story, 2, 100);
    story_join_launched(&story, 3, 1, 0);
    give_sum(&story, 1, 3);
    assert_int_equal(story.coordinator.sums.round, 0);
    give_sum(&story, 3, 5);
    assert_int_equal(story_last_kind(&story), MESSAGE_SUM);
    assert_true(story.coordinator.sums.values[0] == 8);
    coordinator_finish(&story.coordinator);
}

/* As when its host is to be emptied. Another error of its own would come again. */
static void a_worker_that_is_interrupted_is_replaced_and_one_that_fails_is_not(void **state)
{
    (void)state;
    for (int fails = 0; fails < 2; fails++) {
        struct story story;
        open_gathering(&story, "ring");
        story_give(&story, 2,
                   (struct message){.kind = MESSAGE_LEAVE,
                                    .reason = fails ? STATUS_IO : STATUS_INTERRUPTED,
                                    .text = "why"},
                   50);
        if (fails) {
            assert_int_equal(story.coordinator.verdict, STATUS_IO);
        } else {
            begin_with_another(&story);
        }
        coordinator_finish(&story.coordinator);
    }
}

/* While members prepare its place is kept for another; while they connect the others go on. */
static void one_that_was_ready_and_is_interrupted_ends_no_job_either(void **state)
{
    (void)state;
    const struct message leave = {
        .kind = MESSAGE_LEAVE, .reason = STATUS_INTERRUPTED, .text = "why"};
    struct story story;
    open_gathering(&story, "ring");
    story_give(&story, 1, leave, 50);
    assert_int_equal(story.coordinator.state, COORDINATOR_GATHERING);
    story_tell_end(&story, LAUNCHER_AGAIN, 0); // as the launcher says that it can start another one
    assert_int_equal(story.transcript.awaited_count, 1);
    assert_int_equal(story.coordinator.workers_lost, 1);
    coordinator_finish(&story.coordinator);

    open_gathering(&story, "ring");
    story.job.on_loss = ON_LOSS_REDEAL;
    story.job.min_workers = 1;
    story_ready(&story, 2, ROLE_WORKER, "first", &story_layout);
    assert_int_equal(story.coordinator.state, COORDINATOR_CONNECTING);
    story_give(&story, 1, leave, 50);
    story_tell_end(&story, LAUNCHER_AGAIN, 0);
    assert_int_equal(story.coordinator.verdict, STATUS_AGAIN);
    coordinator_finish(&story.coordinator);
}

/* A program of one's own that leaves has said why. */
static void a_program_that_leaves_is_not_replaced(void **state)
{
    (void)state;
    struct story story;
    open_gathering(&story, "ring");
    snprintf(story.job.model, sizeof(story.job.model), "external:mine");
    story_give(&story, 2, (struct message){.kind = MESSAGE_LEAVE, .reason = STATUS_INTERRUPTED},
               50);
    assert_int_equal(story.coordinator.state, COORDINATOR_CLOSING);
    coordinator_finish(&story.coordinator);
}

static void if_nobody_comes_the_verdict_says_who_was_lost_and_how(void **state)
{
    (void)state;
    struct story story;
    open_gathering(&story, "ring");
    close_connection(&story, 2, 100);
    story_give(&story, 1, (struct message){.kind = MESSAGE_HEARTBEAT}, 31000);
    coordinator_tick(&story.coordinator, 32000, 0);
    assert_int_equal(story.coordinator.verdict, STATUS_TIMED_OUT);
    assert_non_null(strstr(story.coordinator.reason, "missing: rank 1 (--start-timeout); before "
                                                     "that, worker 1 (host node, pid 101) was "
                                                     "lost"));
    coordinator_finish(&story.coordinator);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_worker_whose_connection_is_closed_is_replaced_in_every_mode),
        cmocka_unit_test(a_coordinator_that_is_here_again_does_not_say_that_the_job_has_not_begun),
        cmocka_unit_test(a_worker_that_falls_silent_is_sent_away_and_replaced),
        cmocka_unit_test(who_comes_for_a_place_whose_connection_is_closed_gets_it),
        cmocka_unit_test(who_comes_for_any_place_gets_one_whose_connection_is_closed),
        cmocka_unit_test(one_that_joins_when_it_is_dead_keeps_nobody_from_its_place),
        cmocka_unit_test(who_loses_its_place_to_the_launchers_process_is_told),
        cmocka_unit_test(who_takes_a_place_and_is_lost_later_counts_as_lost_too),
        cmocka_unit_test(the_launcher_is_asked_to_start_what_can_be_replaced),
        cmocka_unit_test(a_worker_that_has_not_joined_is_replaced),
        cmocka_unit_test(what_one_had_given_to_a_sum_goes_when_it_loses_its_place),
        cmocka_unit_test(a_launcher_that_replaces_nobody_ends_the_job),
        cmocka_unit_test(results_of_collectives_that_others_hold_end_the_job_by_name),
        cmocka_unit_test(a_server_is_replaced_unless_it_is_the_coordinators_own),
        cmocka_unit_test(a_worker_that_is_interrupted_is_replaced_and_one_that_fails_is_not),
        cmocka_unit_test(one_that_was_ready_and_is_interrupted_ends_no_job_either),
        cmocka_unit_test(a_program_that_leaves_is_not_replaced),
        cmocka_unit_test(if_nobody_comes_the_verdict_says_who_was_lost_and_how),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
