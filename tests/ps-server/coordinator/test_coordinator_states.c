/* Tests of how a job ends, or goes on: how long a coordinator stays once the verdict is known, and
 * what members hear that have been told to join the next generation. */
#include "common/channel/member.h"
#include "ps-server/coordinator/coordinator_states.h"
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
#include <stdio.h>
#include <string.h>

#define ENDED_MS 10000
#define WORKERS  3 // of jobs that go on: peers 1 to 3

/* Two workers have made their last step; the first one has lost its connection before that was
 * known. */
static void open_ended_with(struct story *story, double outlast)
{
    story_open_training(story, 2);
    story->job.outlast = outlast;
    for (uint64_t peer = 1; peer <= 2; peer++) {
        struct slot *slot = &story->coordinator.membership.workers[peer - 1];
        slot->process_id = 100 + peer;
        snprintf(slot->host, sizeof(slot->host), "node");
        story_done(story, peer, "same", ENDED_MS);
    }
    assert_int_equal(story->coordinator.state, COORDINATOR_CLOSING);
    assert_int_equal(story->coordinator.verdict, STATUS_OK);
}

static void open_ended(struct story *story)
{
    open_ended_with(story, 60);
}

static void tick(struct story *story, uint64_t now_ms, enum coordinator_state expected)
{
    coordinator_tick(&story->coordinator, now_ms, 0);
    assert_int_equal(story->coordinator.state, expected);
}

/* What a worker says that knocks. */
static void knock(struct story *story, uint32_t rank, uint64_t process_id, uint64_t peer,
                  uint64_t now_ms)
{
    static const struct wire_back of = {.trained_ms = 1};
    const struct wire_member member = {
        .role = ROLE_WORKER, .rank = rank, .host = "node", .process_id = process_id};
    const struct message back = {.kind = MESSAGE_BACK, .member = &member, .back = &of};
    coordinator_tell_verdict(&story->coordinator, peer, &back, now_ms);
}

static void a_worker_that_left_before_it_heard_stop_is_told_when_it_knocks(void **state)
{
    (void)state;
    struct story story;
    open_ended(&story);
    story_answer_stop(&story, 2, ENDED_MS + 1);
    deadlines_note_closed(&story.coordinator, 1, ENDED_MS + 2);
    tick(&story, ENDED_MS + 1500, COORDINATOR_CLOSING);
    assert_non_null(strstr(story.transcript.last_fact, "worker 0 has lost its connection"));
    uint64_t knock_ms = ENDED_MS + MEMBER_KNOCK_MS;
    tick(&story, knock_ms, COORDINATOR_CLOSING);
    uint32_t sent = story.transcript.sent_count;
    knock(&story, 0, 101, 31, knock_ms);
    assert_int_equal(story.transcript.sent_count, sent + 1);
    assert_int_equal(story_last_kind(&story), MESSAGE_STOP);
    assert_int_equal(story.transcript.sent[sent].peer, 31);
    assert_int_equal(story.transcript.sent[sent].reason, STATUS_OK);
    tick(&story, knock_ms, COORDINATOR_CLOSING);
    story_answer_stop(&story, 31, knock_ms + 1);
    tick(&story, knock_ms + 1, COORDINATOR_OVER);
    assert_int_equal(story.coordinator.verdict, STATUS_OK);
    assert_int_equal(story.coordinator.workers_lost, 0);
    assert_int_equal(story.coordinator.membership.workers[0].state, SLOT_DONE);
    coordinator_finish(&story.coordinator);
}

static void nobody_else_is_taken_for_one_that_is_awaited(void **state)
{
    (void)state;
    struct story story;
    open_ended(&story);
    story_answer_stop(&story, 2, ENDED_MS);
    deadlines_note_closed(&story.coordinator, 1, ENDED_MS);
    knock(&story, 0, 999, 31, ENDED_MS + 10);
    knock(&story, 7, 101, 32, ENDED_MS + 10);
    assert_int_equal(story_last_kind(&story), MESSAGE_STOP);
    story_answer_stop(&story, 31, ENDED_MS + 11);
    tick(&story, ENDED_MS + 12, COORDINATOR_CLOSING);
    coordinator_finish(&story.coordinator);
}

static void one_that_never_knocks_is_awaited_for_a_knock_and_no_longer(void **state)
{
    (void)state;
    struct story story;
    open_ended(&story);
    story_answer_stop(&story, 2, ENDED_MS);
    deadlines_note_closed(&story.coordinator, 1, ENDED_MS);
    tick(&story, ENDED_MS + MEMBER_KNOCK_MS, COORDINATOR_CLOSING);
    tick(&story, ENDED_MS + MEMBER_KNOCK_MS + 1000, COORDINATOR_OVER);
    assert_int_equal(story.coordinator.verdict, STATUS_OK);
    coordinator_finish(&story.coordinator);
}

static void time_in_which_nobody_listened_is_no_time_to_knock(void **state)
{
    (void)state;
    struct story story;
    open_ended(&story);
    story_answer_stop(&story, 2, ENDED_MS);
    deadlines_note_closed(&story.coordinator, 1, ENDED_MS);
    uint64_t away_ms = 20000, now_ms = ENDED_MS + 100 + away_ms;
    coordinator_tick(&story.coordinator, now_ms, away_ms);
    assert_int_equal(story.coordinator.state, COORDINATOR_CLOSING);
    coordinator_finish(&story.coordinator);
}

static void one_that_is_known_to_be_dead_holds_up_nobody(void **state)
{
    (void)state;
    for (uint32_t way = 0; way < 2; way++) {
        struct story story;
        open_ended(&story);
        story_answer_stop(&story, 2, ENDED_MS);
        deadlines_note_closed(&story.coordinator, 1, ENDED_MS);
        tick(&story, ENDED_MS, COORDINATOR_CLOSING);
        const struct launcher_news killed = {
            .kind = LAUNCHER_KILLED, .role = ROLE_WORKER, .index = 0, .sentence = "it was killed"};
        if (way == 0) {
            launcher_news_apply(&killed, &story.coordinator, ENDED_MS);
        } else {
            story.transcript.presence = PRESENCE_ENDED;
        }
        tick(&story, ENDED_MS, COORDINATOR_OVER);
        assert_int_equal(story.coordinator.workers_lost, 0);
        assert_int_equal(story.coordinator.membership.workers[0].state, SLOT_DONE);
        coordinator_finish(&story.coordinator);
    }
}

static void who_interrupts_a_job_that_is_complete_waits_for_no_knock(void **state)
{
    (void)state;
    struct story story;
    open_ended(&story);
    story_answer_stop(&story, 2, ENDED_MS);
    deadlines_note_closed(&story.coordinator, 1, ENDED_MS);
    tick(&story, ENDED_MS + 2000, COORDINATOR_CLOSING);
    coordinator_stop(&story.coordinator, STATUS_INTERRUPTED, "interrupted", ENDED_MS + 2000);
    tick(&story, ENDED_MS + 2000, COORDINATOR_OVER);
    assert_int_equal(story.coordinator.verdict, STATUS_OK);
    coordinator_finish(&story.coordinator);
}

static void nobody_knocks_who_does_not_outlast_the_coordinator(void **state)
{
    (void)state;
    struct story story;
    open_ended_with(&story, 0);
    story_answer_stop(&story, 2, ENDED_MS);
    deadlines_note_closed(&story.coordinator, 1, ENDED_MS);
    tick(&story, ENDED_MS, COORDINATOR_OVER);
    coordinator_finish(&story.coordinator);
}

static void one_that_does_not_answer_has_a_second(void **state)
{
    (void)state;
    struct story story;
    open_ended(&story);
    story_answer_stop(&story, 2, ENDED_MS);
    tick(&story, ENDED_MS + 999, COORDINATOR_CLOSING);
    tick(&story, ENDED_MS + 1000, COORDINATOR_OVER);
    coordinator_finish(&story.coordinator);
}

static void a_job_that_has_failed_waits_for_no_knock(void **state)
{
    (void)state;
    struct story story;
    story_open_training(&story, 2);
    story.job.outlast = 60;
    coordinator_stop(&story.coordinator, STATUS_INTERRUPTED, "interrupted", ENDED_MS);
    story_answer_stop(&story, 2, ENDED_MS);
    deadlines_note_closed(&story.coordinator, 1, ENDED_MS);
    tick(&story, ENDED_MS + 1000, COORDINATOR_OVER);
    coordinator_finish(&story.coordinator);
}

/* It has something to say still, which its answer brings. */
static void a_server_that_left_before_it_heard_stop_answers_when_it_has_knocked(void **state)
{
    (void)state;
    struct story story;
    story_open(&story, "ps-sync", 1, 1);
    story.job.outlast = 60;
    story_join(&story, 11, ROLE_SERVER, 0);
    story_ready(&story, 11, ROLE_SERVER, "", NULL);
    story_join(&story, 1, ROLE_WORKER, 0);
    story_ready(&story, 1, ROLE_WORKER, "first", &story_layout);
    story_connected(&story, 1);
    story_connected(&story, 11);
    struct slot *server = &story.coordinator.membership.servers[0];
    server->process_id = 7;
    snprintf(server->host, sizeof(server->host), "node");
    story_done(&story, 1, "same", ENDED_MS);
    story_answer_stop(&story, 1, ENDED_MS);
    deadlines_note_closed(&story.coordinator, 11, ENDED_MS);
    tick(&story, ENDED_MS + 4000, COORDINATOR_CLOSING);
    static const struct wire_back of = {.trained_ms = 1};
    const struct wire_member member = {.role = ROLE_SERVER, .host = "node", .process_id = 7};
    const struct message back = {.kind = MESSAGE_BACK, .member = &member, .back = &of};
    coordinator_tell_verdict(&story.coordinator, 31, &back, ENDED_MS + 4000);
    static const struct wire_report report = {.bytes_sent = 5};
    story_give(&story, 31, (struct message){.kind = MESSAGE_DONE, .report = &report},
               ENDED_MS + 4001);
    assert_int_equal(server->state, SLOT_DONE);
    tick(&story, ENDED_MS + 4001, COORDINATOR_OVER);
    coordinator_finish(&story.coordinator);
}

static void open_training(struct story *story, uint32_t min_workers)
{
    story_open_training(story, WORKERS);
    story->job.on_loss = ON_LOSS_REDEAL;
    story->job.min_workers = min_workers;
}

static void tell(struct story *story, enum launcher_news_kind kind, uint32_t worker)
{
    const struct launcher_news news = {
        .kind = kind, .role = ROLE_WORKER, .index = worker, .sentence = "it was killed"};
    launcher_news_apply(&news, &story->coordinator, 100);
}

static void tell_killed(struct story *story, uint32_t worker)
{
    tell(story, LAUNCHER_KILLED, worker);
}

/* How many of the messages from the index on are STOP with this reason. */
static uint32_t count_stops(const struct story *story, uint32_t from, enum status reason)
{
    uint32_t count = 0;
    for (uint32_t i = from; i < story->transcript.sent_count; i++) {
        count += story->transcript.sent[i].kind == MESSAGE_STOP &&
                 story->transcript.sent[i].reason == reason;
    }
    return count;
}

static void who_are_lost_together_are_judged_before_anybody_is_told(void **state)
{
    (void)state;
    struct story story;
    open_training(&story, 2);
    uint32_t before = story.transcript.sent_count;
    tell_killed(&story, 1);
    assert_int_equal(story.coordinator.state, COORDINATOR_RENEWING);
    assert_int_equal(story.transcript.sent_count, before);
    tell_killed(&story, 2); // too few are left now
    assert_int_equal(story.coordinator.state, COORDINATOR_CLOSING);
    assert_int_equal(story.coordinator.workers_lost, 2);
    assert_int_equal(count_stops(&story, before, STATUS_UNREACHABLE), 1);
    assert_int_equal(count_stops(&story, before, STATUS_AGAIN), 0);
    coordinator_finish(&story.coordinator);
}

static void who_leaves_meanwhile_is_lost_too_and_the_first_is_the_reason(void **state)
{
    (void)state;
    struct story story;
    struct generation next;
    open_training(&story, 1);
    tell_killed(&story, 1);
    uint32_t before = story.transcript.sent_count;
    story_give(&story, 3,
               (struct message){.kind = MESSAGE_LEAVE, .reason = STATUS_IO, .text = "why"}, 100);
    assert_int_equal(story.coordinator.workers_lost, 2);
    assert_string_equal(story.coordinator.reason, "it was killed");
    story_call_back(&story, 100);
    assert_int_equal(count_stops(&story, before, STATUS_AGAIN), 1); // the one that is left
    assert_int_equal(generation_next(&story.coordinator, &next), STATUS_OK);
    assert_int_equal(next.process_count, 1);
    generation_finish(&next);
    coordinator_finish(&story.coordinator);
}

/* It had missed the coordinator for a while, which has learned of another loss meanwhile. */
static void who_comes_by_another_connection_meanwhile_is_called_back_by_that(void **state)
{
    (void)state;
    static const struct wire_back of = {.trained_ms = 1};
    struct story story;
    open_training(&story, 1);
    snprintf(story.coordinator.membership.workers[2].host, 8, "node");
    story.coordinator.membership.workers[2].process_id = 103;
    tell_killed(&story, 1);
    uint32_t before = story.transcript.sent_count;
    const struct wire_member member = {
        .role = ROLE_WORKER, .rank = 2, .host = "node", .process_id = 103};
    const struct message back = {.kind = MESSAGE_BACK, .member = &member, .back = &of};
    coordinator_find_again(&story.coordinator, 33, &back, 100);
    assert_int_equal(story.transcript.sent_count, before);
    story_call_back(&story, 100);
    assert_int_equal(count_stops(&story, before, STATUS_AGAIN), 2);
    assert_int_equal(story.transcript.sent[story.transcript.sent_count - 1].peer, 33);
    coordinator_finish(&story.coordinator);
}

/* Worker 1 is lost, and the next generation waits for workers 0 and 2. */
static void begin_next(struct story *story, struct generation *ret_generation)
{
    const struct coordinator_port port = story->coordinator.port;
    tell_killed(story, 1);
    story_call_back(story, 100);
    assert_int_equal(generation_next(&story->coordinator, ret_generation), STATUS_OK);
    coordinator_finish(&story->coordinator);
    story->job.processes = ret_generation->process_count;
    assert_int_equal(coordinator_init(&story->coordinator, &story->job, "the job", &port, 100),
                     STATUS_OK);
    generation_begin(ret_generation, &story->coordinator);
}

static void expect_verdict(struct story *story, uint64_t peer, uint32_t worker)
{
    story_join(story, peer, ROLE_WORKER, worker);
    uint32_t last = story->transcript.sent_count - 1;
    assert_int_equal(story->transcript.sent[last].peer, peer);
    assert_int_equal(story->transcript.sent[last].kind, MESSAGE_STOP);
    assert_int_equal(story->transcript.sent[last].reason, story->coordinator.verdict);
    assert_string_equal(story->transcript.sent[last].text, story->coordinator.reason);
}

static void whoever_was_told_to_join_hears_at_once_that_the_job_has_ended(void **state)
{
    (void)state;
    struct story story;
    struct generation generation;
    open_training(&story, 2);
    begin_next(&story, &generation);
    coordinator_stop(&story.coordinator, STATUS_INTERRUPTED, "by SIGINT", 200);
    coordinator_tick(&story.coordinator, 250, 0);
    assert_int_equal(story.coordinator.state, COORDINATOR_CLOSING);
    expect_verdict(&story, 12, 2);
    story_join(&story, 11, ROLE_WORKER, 1); // which nobody has told
    assert_int_equal(story_last_kind(&story), MESSAGE_REFUSE);
    coordinator_tick(&story.coordinator, 1900, 0); // worker 0 has not come
    assert_int_equal(story.coordinator.state, COORDINATOR_CLOSING);
    expect_verdict(&story, 10, 0);
    coordinator_tick(&story.coordinator, 1950, 0);
    assert_int_equal(story.coordinator.state, COORDINATOR_OVER);
    coordinator_finish(&story.coordinator);
    generation_finish(&generation);
}

static void who_does_not_come_holds_the_end_up_for_two_seconds_unless_it_has_ended(void **state)
{
    (void)state;
    enum { UNKNOWN, KILLED, ENDED, CASES };
    for (int fate = UNKNOWN; fate < CASES; fate++) {
        struct story story;
        struct generation generation;
        open_training(&story, 2);
        begin_next(&story, &generation);
        coordinator_stop(&story.coordinator, STATUS_UNREACHABLE, "it is lost", 200);
        for (uint32_t worker = 0; fate != UNKNOWN && worker < WORKERS; worker += 2) {
            tell(&story, fate == KILLED ? LAUNCHER_KILLED : LAUNCHER_ENDED, worker);
        }
        coordinator_tick(&story.coordinator, 2100, 0);
        assert_int_equal(story.coordinator.state,
                         fate != UNKNOWN ? COORDINATOR_OVER : COORDINATOR_CLOSING);
        coordinator_tick(&story.coordinator, 2200, 0);
        assert_int_equal(story.coordinator.state, COORDINATOR_OVER);
        assert_int_equal(story.coordinator.workers_lost, fate == KILLED ? 3 : 1);
        coordinator_finish(&story.coordinator);
        generation_finish(&generation);
    }
}

static void where_the_next_generation_cannot_begin_all_hear_why(void **state)
{
    (void)state;
    for (int are_told = 0; are_told < 2; are_told++) {
        struct story story;
        open_training(&story, 1);
        tell_killed(&story, 1);
        if (are_told) {
            story_call_back(&story, 100);
        }
        uint32_t before = story.transcript.sent_count;
        coordinator_fail_to_renew(&story.coordinator, STATUS_NO_MEMORY, "there is no memory", 200);
        assert_int_equal(story.coordinator.state, COORDINATOR_CLOSING);
        assert_int_equal(count_stops(&story, before, STATUS_NO_MEMORY), are_told ? 0 : 2);
        for (uint32_t worker = 0; are_told && worker < WORKERS; worker += 2) {
            coordinator_tick(&story.coordinator, 250, 0);
            assert_int_equal(story.coordinator.state, COORDINATOR_CLOSING);
            expect_verdict(&story, 10 + worker, worker);
        }
        coordinator_tick(&story.coordinator, are_told ? 300 : 1200, 0);
        assert_int_equal(story.coordinator.state, COORDINATOR_OVER);
        coordinator_finish(&story.coordinator);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_worker_that_left_before_it_heard_stop_is_told_when_it_knocks),
        cmocka_unit_test(nobody_else_is_taken_for_one_that_is_awaited),
        cmocka_unit_test(one_that_never_knocks_is_awaited_for_a_knock_and_no_longer),
        cmocka_unit_test(time_in_which_nobody_listened_is_no_time_to_knock),
        cmocka_unit_test(one_that_is_known_to_be_dead_holds_up_nobody),
        cmocka_unit_test(who_interrupts_a_job_that_is_complete_waits_for_no_knock),
        cmocka_unit_test(nobody_knocks_who_does_not_outlast_the_coordinator),
        cmocka_unit_test(one_that_does_not_answer_has_a_second),
        cmocka_unit_test(a_job_that_has_failed_waits_for_no_knock),
        cmocka_unit_test(a_server_that_left_before_it_heard_stop_answers_when_it_has_knocked),
        cmocka_unit_test(who_are_lost_together_are_judged_before_anybody_is_told),
        cmocka_unit_test(who_leaves_meanwhile_is_lost_too_and_the_first_is_the_reason),
        cmocka_unit_test(who_comes_by_another_connection_meanwhile_is_called_back_by_that),
        cmocka_unit_test(whoever_was_told_to_join_hears_at_once_that_the_job_has_ended),
        cmocka_unit_test(who_does_not_come_holds_the_end_up_for_two_seconds_unless_it_has_ended),
        cmocka_unit_test(where_the_next_generation_cannot_begin_all_hear_why),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
