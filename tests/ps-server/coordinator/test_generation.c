/* Tests of jobs that go on without a lost worker: what ends a generation of their processes, and
 * who is in the next one. */
#include "ps-server/coordinator/deadlines.h"
#include "ps-server/coordinator/generation.h"
#include "ps-server/launcher/launcher_news.h"
#include "tests/support/ps-server/coordinator_story.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdlib.h>
#include <string.h>

#define WORKERS 4 // peers 1 to 4

static void may_redeal(struct story *story)
{
    story->job.on_loss = ON_LOSS_REDEAL;
    story->job.min_workers = 1;
    story->job.global_batch = 4; // so that there are steps, and checkpoints in memory
    story->job.batch = 1;
    story->job.steps = 1000;
}

static void open_training(struct story *story)
{
    story_open_training(story, WORKERS);
    may_redeal(story);
}

static void expect_reason(const struct story *story, const char *part)
{
    if (strstr(story->coordinator.reason, part) == NULL) {
        fail_msg("\"%s\" is not in \"%s\"", part, story->coordinator.reason);
    }
}

/* Why the member that has this connection left. */
static void leave(struct story *story, uint64_t peer, enum status reason, uint64_t now_ms)
{
    const struct message message = {
        .kind = MESSAGE_LEAVE, .reason = reason, .text = "it has a reason"};
    story_give(story, peer, message, now_ms);
}

static void expect_end(struct story *story, enum status verdict, const char *reason)
{
    assert_int_equal(story->coordinator.verdict, verdict);
    expect_reason(story, reason);
    coordinator_finish(&story->coordinator);
}

/* What server.c does between two generations. */
static void go_on(struct story *story, struct generation *generation, uint64_t now_ms)
{
    struct generation next;
    const struct coordinator_port port = story->coordinator.port;
    story_call_back(story, now_ms);
    assert_int_equal(generation_next(&story->coordinator, &next), STATUS_OK);
    coordinator_finish(&story->coordinator);
    generation_finish(generation);
    *generation = next;
    story->job.processes = next.process_count;
    assert_int_equal(coordinator_init(&story->coordinator, &story->job, "the job", &port, now_ms),
                     STATUS_OK);
    generation_begin(generation, &story->coordinator);
}

/* The workers with these numbers come back, by connections of 10 more than their numbers. */
static void come_back(struct story *story, const uint32_t *numbers, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        story_join(story, 10 + numbers[i], ROLE_WORKER, numbers[i]);
    }
    for (uint32_t i = 0; i < count; i++) {
        story_ready(story, 10 + numbers[i], ROLE_WORKER, "first", &story_layout);
    }
    for (uint32_t i = 0; i < count; i++) {
        story_connected(story, 10 + numbers[i]);
    }
    assert_int_equal(story->coordinator.state, COORDINATOR_TRAINING);
}

static void a_worker_lost_in_training_sends_all_who_are_left_on(void **state)
{
    (void)state;
    struct story story;
    open_training(&story);
    uint32_t sent_before = story.transcript.sent_count;
    deadlines_note_closed(&story.coordinator, 2, 1000);
    coordinator_tick(&story.coordinator, 2000, 0);
    assert_int_equal(story.transcript.sent_count, sent_before); // others may be lost with it
    story_call_back(&story, 2000);
    assert_int_equal(story.coordinator.state, COORDINATOR_OVER); // nobody answers
    assert_int_equal(story.coordinator.workers_lost, 1);
    static const uint64_t left[] = {1, 3, 4};
    assert_int_equal(story.transcript.sent_count, sent_before + 3);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(story.transcript.sent[sent_before + i].kind, MESSAGE_STOP);
        assert_int_equal(story.transcript.sent[sent_before + i].reason, STATUS_AGAIN);
        assert_int_equal(story.transcript.sent[sent_before + i].peer, left[i]);
    }
    assert_non_null(strstr(story.transcript.last_error, "the job goes on: worker 1"));
    expect_end(&story, STATUS_AGAIN, "worker 1 (host node, pid 101) was lost");
}

static void a_job_that_nobody_has_asked_to_go_on_fails(void **state)
{
    (void)state;
    struct story story;
    story_open_training(&story, WORKERS);
    leave(&story, 2, STATUS_IO, 100);
    assert_null(strstr(story.coordinator.reason, ";"));
    expect_end(&story, STATUS_IO, "worker 1 (host node, pid 101) left: it has a reason");
}

static void a_job_that_cannot_go_on_says_what_that_would_need(void **state)
{
    (void)state;
    struct story story;
    story_open_training(&story, WORKERS);
    story.job.sync_every = 4;
    leave(&story, 2, STATUS_IO, 100);
    expect_end(&story, STATUS_IO,
               "left: it has a reason; going on needs workers whose parameters are the same at "
               "every step: --sync-every 1");
}

static void a_job_with_too_few_workers_left_fails_and_says_so(void **state)
{
    (void)state;
    struct story story;
    open_training(&story);
    story.job.min_workers = WORKERS;
    leave(&story, 2, STATUS_IO, 100);
    expect_end(&story, STATUS_IO,
               "left: it has a reason; 3 worker processes are left, and --min-workers is 4");
}

static void a_loss_before_the_job_has_begun_fails_it(void **state)
{
    (void)state;
    struct story story;
    story_open(&story, "ring", 2, 0);
    may_redeal(&story);
    story_join(&story, 1, ROLE_WORKER, 0);
    leave(&story, 1, STATUS_IO, 100);
    expect_end(&story, STATUS_IO, "worker 0 (host node, pid 100) left: it has a reason");
    story_open(&story, "ring", 2, 0);
    may_redeal(&story);
    story_join(&story, 1, ROLE_WORKER, 0);
    story_give(&story, 1, (struct message){.kind = MESSAGE_HEARTBEAT}, 30000);
    coordinator_tick(&story.coordinator, 31000, 0);
    expect_end(&story, STATUS_TIMED_OUT, "missing: rank 1 (--start-timeout)");
}

static void a_loss_while_workers_connect_is_one_of_a_job_that_has_begun(void **state)
{
    (void)state;
    struct story story;
    story_open(&story, "ring", 2, 0);
    may_redeal(&story);
    for (uint32_t i = 0; i < 2; i++) {
        story_join(&story, 1 + i, ROLE_WORKER, i);
    }
    for (uint32_t i = 0; i < 2; i++) {
        story_ready(&story, 1 + i, ROLE_WORKER, "first", &story_layout);
    }
    assert_int_equal(story.coordinator.state, COORDINATOR_CONNECTING);
    leave(&story, 1, STATUS_IO, 100);
    expect_end(&story, STATUS_AGAIN, "worker 0");
}

static void nobody_goes_on_without_a_server(void **state)
{
    (void)state;
    struct story story;
    story_open(&story, "ps-sync", 2, 1);
    may_redeal(&story);
    story_join(&story, 10, ROLE_SERVER, 0);
    story_ready(&story, 10, ROLE_SERVER, "", NULL);
    for (uint32_t i = 0; i < 2; i++) {
        story_join(&story, 1 + i, ROLE_WORKER, i);
        story_ready(&story, 1 + i, ROLE_WORKER, "first", &story_layout);
    }
    for (uint64_t peer = 1; peer <= 2; peer++) {
        story_connected(&story, peer);
    }
    story_connected(&story, 10);
    assert_int_equal(story.coordinator.state, COORDINATOR_TRAINING);
    leave(&story, 10, STATUS_IO, 100);
    assert_int_equal(story.coordinator.workers_lost, 0);
    expect_end(&story, STATUS_IO, "the coordinator's own server cannot be done without");
}

/* Others could not train what has diverged, or agree on what it did not agree on. */
static void a_worker_whose_loss_is_everybodys_fails_the_job(void **state)
{
    (void)state;
    static const enum status reasons[] = {STATUS_NOT_FINITE, STATUS_MISMATCH};
    for (uint32_t i = 0; i < 2; i++) {
        struct story story;
        open_training(&story);
        leave(&story, 2, reasons[i], 100);
        expect_end(&story, reasons[i], "worker 1 (host node, pid 101) left");
    }
}

static void expect_numbers(const struct generation *generation, const uint32_t *numbers,
                           uint32_t count)
{
    assert_int_equal(generation->process_count, count);
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(generation->workers[i].number, numbers[i]);
    }
}

static void workers_keep_their_numbers_and_their_order(void **state)
{
    (void)state;
    static const uint32_t after_first[] = {0, 2, 3}, after_second[] = {1, 2, 3};
    struct story story;
    struct generation generation = {0};
    open_training(&story);
    leave(&story, 2, STATUS_IO, 100); // worker 1
    go_on(&story, &generation, 200);
    assert_int_equal(generation.number, 1);
    assert_int_equal(generation.process_count, 3);
    expect_numbers(&generation, after_first, 3);
    story_join(&story, 9, ROLE_WORKER, 1);
    assert_int_equal(story_last_kind(&story), MESSAGE_REFUSE);
    assert_int_equal(story.transcript.sent[story.transcript.sent_count - 1].reason, STATUS_AGAIN);
    story_join(&story, 12, ROLE_WORKER, 2); // the first to come, in the second slot
    assert_int_equal(story_last_kind(&story), MESSAGE_WELCOME);
    assert_int_equal(story.transcript.sent[story.transcript.sent_count - 1].rank, 1);
    come_back(&story, after_first, 3);
    // Four ranks of three processes: the first carries two.
    assert_int_equal(carriers_block(story.coordinator.carriers, 0).count, 2);
    assert_int_equal(carriers_block(story.coordinator.carriers, 2).first, 3);
    leave(&story, 10, STATUS_IO, 300);
    expect_reason(&story, "worker 0");
    go_on(&story, &generation, 400);
    assert_int_equal(generation.number, 2);
    expect_numbers(&generation, after_second,
                   3); // with the one that was lost and asks to come back
    assert_int_equal(story.coordinator.workers_lost, 2);
    come_back(&story, after_second, 3);
    leave(&story, 13, STATUS_IO, 500);
    expect_reason(&story, "worker 3");
    coordinator_finish(&story.coordinator);
    generation_finish(&generation);
}

static void parameters_that_differ_are_those_of_workers_by_number(void **state)
{
    (void)state;
    static const uint32_t left[] = {1, 2, 3};
    struct story story;
    struct generation generation = {0};
    open_training(&story);
    leave(&story, 1, STATUS_IO, 100); // worker 0
    go_on(&story, &generation, 200);
    come_back(&story, left, 3);
    story_done(&story, 11, "aaaa", 300);
    story_done(&story, 12, "aaaa", 300);
    story_done(&story, 13, "bbbb", 300);
    expect_end(&story, STATUS_MISMATCH,
               "the parameters of worker 3 (bbbb...) differ from those of worker 1 (aaaa...)");
    generation_finish(&generation);
}

static void give_news(struct story *story, enum launcher_news_kind kind, uint32_t worker)
{
    const struct launcher_news news = {kind, ROLE_WORKER, worker, 0, "worker N was killed"};
    launcher_news_apply(&news, &story->coordinator, 250);
}

static void news_of_a_worker_that_is_gone_already_change_nothing(void **state)
{
    (void)state;
    static const uint32_t left[] = {0, 2, 3};
    struct story story;
    struct generation generation = {0};
    open_training(&story);
    leave(&story, 2, STATUS_IO, 100);
    go_on(&story, &generation, 200);
    give_news(&story, LAUNCHER_KILLED, 1);
    assert_int_equal(story.coordinator.state, COORDINATOR_GATHERING);
    come_back(&story, left, 3);
    give_news(&story, LAUNCHER_ENDED, 1);
    assert_int_equal(story.coordinator.state, COORDINATOR_TRAINING);
    assert_int_equal(story.coordinator.workers_lost, 1);
    give_news(&story, LAUNCHER_KILLED, 2); // by number, which is the second one here
    assert_int_equal(story.coordinator.verdict, STATUS_AGAIN);
    assert_int_equal(story.coordinator.membership.workers[1].state, SLOT_GONE);
    coordinator_finish(&story.coordinator);
    generation_finish(&generation);
}

static void a_job_that_was_about_to_go_on_does_not_with_too_few(void **state)
{
    (void)state;
    struct story story;
    struct generation generation = {0};
    open_training(&story);
    leave(&story, 1, STATUS_IO, 100);
    give_news(&story, LAUNCHER_KILLED, 1); // two are left
    go_on(&story, &generation, 200);
    assert_int_equal(generation.process_count, 2);
    coordinator_finish(&story.coordinator);
    generation_finish(&generation);
    open_training(&story);
    story.job.min_workers = 3;
    leave(&story, 1, STATUS_IO, 100);
    assert_int_equal(story.coordinator.verdict, STATUS_AGAIN);
    give_news(&story, LAUNCHER_KILLED, 1);
    expect_end(&story, STATUS_UNREACHABLE, "2 worker processes are left, and --min-workers is 3");
}

static void a_job_that_was_about_to_go_on_can_be_interrupted(void **state)
{
    (void)state;
    struct story story;
    open_training(&story);
    leave(&story, 1, STATUS_INTERRUPTED, 100);
    assert_int_equal(story.coordinator.verdict, STATUS_AGAIN);
    const struct launcher_news news = {.kind = LAUNCHER_INTERRUPTED, .sentence = "by SIGINT"};
    launcher_news_apply(&news, &story.coordinator, 100);
    expect_end(&story, STATUS_INTERRUPTED, "by SIGINT");
}

/* Ticks while the peer says every half second that it is there; 0: nobody does. */
static void let_pass(struct story *story, uint64_t peer, uint64_t from_ms, uint64_t to_ms)
{
    for (uint64_t now_ms = from_ms; now_ms <= to_ms; now_ms += 500) {
        generation_note_alive(&story->coordinator, peer, now_ms);
        coordinator_tick(&story->coordinator, now_ms, 0);
    }
}

static void who_does_not_come_back_in_time_is_lost(void **state)
{
    (void)state;
    struct story story;
    struct generation generation = {0};
    open_training(&story);
    leave(&story, 2, STATUS_IO, 500);
    go_on(&story, &generation, 1000);
    let_pass(&story, 0, 1000, 3000);
    struct wire_member member = {.role = ROLE_WORKER, .has_rank = true, .rank = 2, .host = "node"};
    const struct message join = {.kind = MESSAGE_JOIN, .member = &member, .text = RINGSIDE_VERSION};
    story_give(&story, 12, join, 3000);
    let_pass(&story, 0, 3000, 5500);
    assert_int_equal(story.coordinator.state, COORDINATOR_GATHERING);
    coordinator_tick(&story.coordinator, 6000, 0);
    assert_int_equal(story.coordinator.workers_lost, 3);
    assert_int_equal(story.coordinator.verdict, STATUS_AGAIN);
    expect_reason(&story, "worker 0 did not come back within 5 s");
    go_on(&story, &generation, 6000);
    assert_int_equal(generation.process_count, 1);
    assert_int_equal(generation.workers[0].number, 2);
    assert_int_equal(generation.workers[0].peer, 12);
    coordinator_finish(&story.coordinator);
    generation_finish(&generation);
}

static void who_is_in_a_long_step_is_waited_for_while_it_says_that_it_is_there(void **state)
{
    (void)state;
    struct story story;
    struct generation generation = {0};
    story_open_training(&story, 2);
    may_redeal(&story);
    leave(&story, 2, STATUS_IO, 500);
    go_on(&story, &generation, 1000);
    let_pass(&story, 1, 1000, 120500); // by its last connection; behind --start-timeout
    assert_int_equal(story.coordinator.state, COORDINATOR_GATHERING);
    let_pass(&story, 1, 121000, 121000); // --stall-fail
    expect_end(&story, STATUS_UNREACHABLE, "worker 0 did not come back within 120 s");
    generation_finish(&generation);
}

static void a_coordinator_that_was_away_waits_as_long_again(void **state)
{
    (void)state;
    struct story story;
    struct generation generation = {0};
    open_training(&story);
    leave(&story, 2, STATUS_IO, 500);
    go_on(&story, &generation, 1000);
    coordinator_tick(&story.coordinator, 61000, 59750);
    assert_int_equal(story.coordinator.state, COORDINATOR_GATHERING);
    let_pass(&story, 0, 61500, 66500);
    expect_end(&story, STATUS_UNREACHABLE, "did not come back within 5 s");
    generation_finish(&generation);
}

static void of_very_many_recoveries_the_newest_are_known(void **state)
{
    (void)state;
    static const uint32_t after_first[] = {0, 2, 3}, after_second[] = {0, 3};
    enum { MAX = GENERATION_RECOVERIES_MAX };
    struct story story;
    struct generation generation = {0};
    open_training(&story);
    leave(&story, 2, STATUS_IO, 2030);
    go_on(&story, &generation, 2100);
    come_back(&story, after_first, 3);
    generation_note_start(&generation, &story.coordinator, 3030);
    free(generation.recoveries); // as if there had been as many before
    generation.recoveries = calloc(MAX, sizeof(*generation.recoveries));
    assert_non_null(generation.recoveries);
    generation.recovery_count = MAX;
    for (uint32_t i = 0; i < MAX; i++) {
        generation.recoveries[i].lost_step = i;
        generation.recoveries[i].seconds = 100;
    }
    leave(&story, 12, STATUS_IO, 7030);
    go_on(&story, &generation, 7100);
    come_back(&story, after_second, 2);
    generation_note_start(&generation, &story.coordinator, 8030);
    assert_int_equal(generation.recovery_count, MAX);
    for (uint32_t i = 0; i + 1 < MAX; i++) {
        assert_int_equal(generation.recoveries[i].lost_step, i + 1);
        assert_float_equal(generation.recoveries[i].seconds, 100, 1e-9);
    }
    assert_non_null(strstr(generation.recoveries[MAX - 1].reason, "worker 2"));
    assert_float_equal(generation.recoveries[MAX - 1].seconds, 1, 1e-9);
    coordinator_finish(&story.coordinator);
    generation_finish(&generation);
}

static void seconds_restarts_and_costs_add_up(void **state)
{
    (void)state;
    static const uint32_t after_first[] = {0, 2, 3}, after_second[] = {0, 3};
    struct story story;
    struct generation generation = {0};
    const struct coordinator_resume resume = {.step = 7, .seconds = 100, .restarts = 3};
    open_training(&story); // at 30 ms
    story.coordinator.resume = &resume;
    assert_int_equal(generation_restarts(&story.coordinator), 3);
    story_give(&story, 1, (struct message){.kind = MESSAGE_HEARTBEAT, .step = 12}, 1000);
    leave(&story, 2, STATUS_IO, 2030);
    go_on(&story, &generation, 2100);
    come_back(&story, after_first, 3);
    generation_note_start(&generation, &story.coordinator, 5030);
    assert_int_equal(generation_restarts(&story.coordinator), 4);
    assert_int_equal(generation_started_ms(&story.coordinator), 30);
    assert_float_equal(generation_seconds(&story.coordinator, 6030), 106, 1e-9);
    assert_int_equal(generation.recoveries[0].lost_step, 12);
    assert_int_equal(generation.recoveries[0].begin_step, 0);
    assert_int_equal(generation.recoveries[0].processes, 3);
    assert_float_equal(generation.recoveries[0].seconds, 3, 1e-9);
    leave(&story, 12, STATUS_IO, 7030);
    go_on(&story, &generation, 7100);
    assert_int_equal(generation.recovery_count, 2);
    come_back(&story, after_second, 2);
    generation_note_start(&generation, &story.coordinator, 8030);
    assert_int_equal(generation_restarts(&story.coordinator), 5);
    assert_float_equal(generation_seconds(&story.coordinator, 9030), 109, 1e-9);
    assert_float_equal(generation.recoveries[0].seconds, 3, 1e-9);
    assert_float_equal(generation.recoveries[1].seconds, 1, 1e-9);
    assert_non_null(strstr(generation.recoveries[1].reason, "worker 2"));
    coordinator_finish(&story.coordinator);
    generation_finish(&generation);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_worker_lost_in_training_sends_all_who_are_left_on),
        cmocka_unit_test(a_job_that_nobody_has_asked_to_go_on_fails),
        cmocka_unit_test(a_job_that_cannot_go_on_says_what_that_would_need),
        cmocka_unit_test(a_job_with_too_few_workers_left_fails_and_says_so),
        cmocka_unit_test(a_loss_before_the_job_has_begun_fails_it),
        cmocka_unit_test(a_loss_while_workers_connect_is_one_of_a_job_that_has_begun),
        cmocka_unit_test(nobody_goes_on_without_a_server),
        cmocka_unit_test(a_worker_whose_loss_is_everybodys_fails_the_job),
        cmocka_unit_test(workers_keep_their_numbers_and_their_order),
        cmocka_unit_test(parameters_that_differ_are_those_of_workers_by_number),
        cmocka_unit_test(news_of_a_worker_that_is_gone_already_change_nothing),
        cmocka_unit_test(a_job_that_was_about_to_go_on_does_not_with_too_few),
        cmocka_unit_test(a_job_that_was_about_to_go_on_can_be_interrupted),
        cmocka_unit_test(who_does_not_come_back_in_time_is_lost),
        cmocka_unit_test(who_is_in_a_long_step_is_waited_for_while_it_says_that_it_is_there),
        cmocka_unit_test(a_coordinator_that_was_away_waits_as_long_again),
        cmocka_unit_test(of_very_many_recoveries_the_newest_are_known),
        cmocka_unit_test(seconds_restarts_and_costs_add_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
