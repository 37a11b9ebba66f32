/* Tests of how long a coordinator stays once the verdict is known. */
#include "common/channel/member.h"
#include "ps-server/coordinator/coordinator_states.h"
#include "ps-server/coordinator/deadlines.h"
#include "ps-server/coordinator/launcher_news.h"
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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
