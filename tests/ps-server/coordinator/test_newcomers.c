/* Tests of workers that ask to join a job that is under way. */
#include "common/service/launch_number.h"
#include "ps-server/coordinator/coordinator_states.h"
#include "ps-server/coordinator/deadlines.h"
#include "ps-server/coordinator/generation.h"
#include "ps-server/coordinator/newcomers.h"
#include "ps-server/launcher/launcher_news.h"
#include "tests/support/common/choices.h"
#include "tests/support/ps-server/newcomer_story.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdio.h>
#include <string.h>

/* JOIN of a worker: why it is refused, and under which number it may come again. */
static enum status ask(struct story *story, uint64_t peer, int64_t rank, uint64_t now_ms,
                       uint32_t *ret_number)
{
    const struct wire_member member = {.role = ROLE_WORKER,
                                       .has_rank = rank >= 0,
                                       .rank = rank >= 0 ? (uint32_t)rank : 0,
                                       .host = "node"};
    const struct message join = {.kind = MESSAGE_JOIN, .member = &member, .text = RINGSIDE_VERSION};
    story_give(story, peer, join, now_ms);
    uint32_t last = story->transcript.sent_count - 1;
    assert_int_equal(story->transcript.sent[last].peer, peer);
    assert_int_equal(story->transcript.sent[last].kind, MESSAGE_REFUSE);
    *ret_number = story->transcript.sent[last].rank;
    return story->transcript.sent[last].reason;
}

static void one_that_asks_is_told_to_come_again_under_a_number(void **state)
{
    (void)state;
    struct story story;
    newcomer_story_open(&story);
    uint32_t number;
    assert_int_equal(ask(&story, 9, 3, 100, &number), STATUS_AGAIN);
    assert_int_equal(number, 3);
    assert_int_equal(ask(&story, 10, -1, 100, &number), STATUS_AGAIN); // the lowest that is free
    assert_int_equal(number, 2);
    assert_int_equal(ask(&story, 9, 3, 300, &number), STATUS_AGAIN);
    assert_int_equal(story.coordinator.newcomers.count, 2);
    coordinator_finish(&story.coordinator);
}

static void expect_told(const struct story *story, const char *why)
{
    if (strstr(story_last_text(story), why) == NULL) {
        fail_msg("\"%s\" is not in \"%s\"", why, story_last_text(story));
    }
}

/* JOIN of a worker on another host than the others (host_id 0), or on theirs. */
static void join_from(struct story *story, uint64_t peer, uint64_t host_id, const char *loopback)
{
    const struct wire_member member = {
        .role = ROLE_WORKER, .host = "node", .host_id = host_id, .loopback = loopback};
    story_give(story, peer,
               (struct message){.kind = MESSAGE_JOIN, .member = &member, .text = RINGSIDE_VERSION},
               100);
}

/* A ring would stand still until it is known that they do not reach it. */
static void one_at_a_loopback_address_is_refused_where_others_are_on_other_hosts(void **state)
{
    (void)state;
    struct story story;
    newcomer_story_open(&story);
    join_from(&story, 9, 7, "127.0.0.1");
    expect_told(&story, "--bind is 127.0.0.1, a loopback address");
    expect_told(&story, "say --bind 0.0.0.0");
    assert_int_equal(story.coordinator.newcomers.count, 0);
    join_from(&story, 9, 7, "");
    join_from(&story, 10, 0, "127.0.0.1");
    assert_int_equal(story.coordinator.newcomers.count, 2);
    coordinator_finish(&story.coordinator);
}

/* The job would lose those for its sake. */
static void one_that_cannot_connect_to_those_who_are_there_is_refused(void **state)
{
    (void)state;
    struct story story;
    struct generation next;
    newcomer_story_open(&story);
    const struct coordinator_port port = story.coordinator.port;
    for (uint32_t i = 0; i < 2; i++) {
        struct slot *slot = &story.coordinator.membership.workers[i];
        slot->host_id = slot->sighting.host_id = 5;
        snprintf(slot->loopback, sizeof(slot->loopback), "127.0.0.1");
    }
    join_from(&story, 9, 7, "");
    expect_told(&story, "it cannot connect to worker 0, which listens at 127.0.0.1");
    assert_int_equal(story.coordinator.newcomers.count, 0);

    // Nor when they come back.
    coordinator_close(&story.coordinator, STATUS_AGAIN, "somebody has come", NULL, 200);
    assert_int_equal(generation_next(&story.coordinator, &next), STATUS_OK);
    coordinator_finish(&story.coordinator);
    assert_int_equal(coordinator_init(&story.coordinator, &story.job, "the job", &port, 300),
                     STATUS_OK);
    generation_begin(&next, &story.coordinator);
    join_from(&story, 10, 7, "");
    expect_told(&story, "it cannot connect to worker 0, which listens at 127.0.0.1");
    assert_int_equal(story.coordinator.newcomers.count, 0);
    join_from(&story, 11, 5, "127.0.0.1");
    assert_int_equal(story.coordinator.newcomers.count, 1);
    coordinator_finish(&story.coordinator);
    generation_finish(&next);
}

static void parameter_servers_do_not_mind_a_loopback_address(void **state)
{
    (void)state;
    struct story story;
    newcomer_story_open(&story);
    story.job.mode = mode_of("ps-sync");
    join_from(&story, 9, 7, "127.0.0.1");
    assert_int_equal(story.coordinator.newcomers.count, 1);
    coordinator_finish(&story.coordinator);
}

/* It was killed, and another one was started in its place at once. */
static void one_whose_connection_is_closed_keeps_no_place(void **state)
{
    (void)state;
    struct story story;
    uint32_t number;
    newcomer_story_open(&story);
    assert_int_equal(ask(&story, 9, 2, 100, &number), STATUS_AGAIN);
    assert_int_equal(ask(&story, 10, 3, 100, &number), STATUS_AGAIN);
    deadlines_note_closed(&story.coordinator, 9, 200);
    assert_int_equal(story.coordinator.newcomers.count, 1);
    assert_int_equal(ask(&story, 11, 2, 300, &number), STATUS_AGAIN);
    assert_int_equal(number, 2);
    newcomers_admit(&story.coordinator, 400);
    assert_int_equal(story.coordinator.admitted, 2);
    coordinator_finish(&story.coordinator);
}

/* Its host does not say that its connections are closed. */
static void one_that_has_ended_as_the_launcher_says_keeps_no_place(void **state)
{
    (void)state;
    struct story story;
    newcomer_story_open(&story);
    const struct wire_member member = {.role = ROLE_WORKER, .host = "node", .launch = 8};
    story_give(&story, 9,
               (struct message){.kind = MESSAGE_JOIN, .member = &member, .text = RINGSIDE_VERSION},
               100);
    assert_int_equal(story.coordinator.newcomers.count, 1);
    newcomers_note_ended(&story.coordinator.newcomers, 7);
    assert_int_equal(story.coordinator.newcomers.count, 1);
    newcomers_note_ended(&story.coordinator.newcomers, 8);
    assert_int_equal(story.coordinator.newcomers.count, 0);
    coordinator_finish(&story.coordinator);
}

/* What the launcher says of the other one is still on its way. */
static void one_that_is_started_in_the_place_of_another_shows_that_it_has_ended(void **state)
{
    (void)state;
    struct story story;
    newcomer_story_open(&story);
    story.job.workers = 2;
    struct coordinator *coordinator = &story.coordinator;
    coordinator->membership.workers[0].launch = launch_number_make(5, 1);
    coordinator->membership.workers[1].launch = launch_number_make(6, 2);
    newcomer_story_join(&story, 9, 1, launch_number_make(7, 3)); // for another place
    assert_int_equal(coordinator->state, COORDINATOR_TRAINING);
    newcomer_story_join(&story, 10, 1, launch_number_make(8, 2));
    assert_int_equal(coordinator->state, COORDINATOR_RENEWING);
    assert_non_null(strstr(coordinator->reason, "another one was started in its place"));
    assert_int_equal(coordinator->membership.workers[1].state, SLOT_GONE);
    assert_int_equal(coordinator->newcomers.count, 1);
    assert_int_equal(coordinator->newcomers.list[0].number, 1);
    const struct launcher_news late = {LAUNCHER_KILLED, ROLE_WORKER, 1, launch_number_make(6, 2),
                                       "it was killed"};
    launcher_news_apply(&late, coordinator, 110);
    assert_int_equal(coordinator->workers_lost, 1);
    assert_string_equal(coordinator->reason, "it was killed"); // which is a better one
    coordinator_finish(coordinator);
}

/* It may have been lost for its silence, and another one started in its place. */
static void one_whose_number_another_has_gets_another_one(void **state)
{
    (void)state;
    struct story story;
    uint32_t number;
    newcomer_story_open(&story);
    assert_int_equal(ask(&story, 9, 1, 100, &number), STATUS_AGAIN); // is there
    assert_int_equal(number, 2);
    assert_int_equal(ask(&story, 11, 2, 100, &number), STATUS_AGAIN); // so is this one
    assert_int_equal(number, 3);
    coordinator_finish(&story.coordinator);
}

static void where_there_is_no_place_one_is_refused(void **state)
{
    (void)state;
    struct story story;
    uint32_t number;
    newcomer_story_open(&story);
    assert_int_equal(ask(&story, 10, 2, 100, &number), STATUS_AGAIN);
    assert_int_equal(ask(&story, 12, 3, 100, &number), STATUS_AGAIN);
    assert_int_equal(ask(&story, 13, -1, 100, &number), STATUS_UNREACHABLE); // a fifth for four
    expect_told(&story, "each of its ranks has a worker: a place is free once one is lost");
    story.job.on_loss = ON_LOSS_FAIL;
    assert_int_equal(ask(&story, 14, 5, 5000, &number), STATUS_UNREACHABLE);
    expect_told(&story, "that needs --on-loss redeal");
    coordinator_finish(&story.coordinator);
}

static void the_next_generation_has_a_place_for_those_who_still_ask(void **state)
{
    (void)state;
    struct story story;
    struct generation next;
    uint32_t number;
    newcomer_story_open(&story);
    assert_int_equal(ask(&story, 9, 3, 100, &number), STATUS_AGAIN);
    assert_int_equal(ask(&story, 10, 2, 100, &number), STATUS_AGAIN);
    assert_int_equal(ask(&story, 9, 3, 3000, &number), STATUS_AGAIN);
    newcomers_admit(&story.coordinator, 3200); // 10 has fallen silent
    assert_int_equal(story.coordinator.verdict, STATUS_AGAIN);
    assert_string_equal(story.coordinator.reason, "worker 3 has come");
    assert_int_equal(story.coordinator.workers_lost, 0);
    assert_int_equal(generation_next(&story.coordinator, &next), STATUS_OK);
    assert_int_equal(next.process_count, 3);
    assert_int_equal(next.workers[2].number, 3);
    assert_int_equal(next.workers[2].peer, 9);
    generation_finish(&next);
    coordinator_finish(&story.coordinator);
}

/* --fault after=step:S,join: one for each join, whatever else happens before it. */
static void who_joins_after_a_step_waits_for_a_copy_of_it(void **state)
{
    (void)state;
    struct story story;
    struct generation next;
    uint32_t number;
    newcomer_story_open(&story);
    snprintf(story.job.faults, sizeof(story.job.faults), "after=step:90,join;after=step:50,join");
    assert_int_equal(newcomers_awaited_step(&story.coordinator), 0); // nobody is there
    assert_int_equal(ask(&story, 9, 3, 100, &number), STATUS_AGAIN);
    assert_int_equal(ask(&story, 10, 2, 100, &number), STATUS_AGAIN);
    assert_int_equal(newcomers_awaited_step(&story.coordinator), 50);
    story.coordinator.checkpointing.copied = 49;
    newcomers_admit(&story.coordinator, 200);
    assert_int_equal(story.coordinator.state, COORDINATOR_TRAINING);
    assert_int_equal(newcomers_due(&story.coordinator), 0); // nor if the job goes on by a loss
    story.coordinator.checkpointing.copied = 50;
    newcomers_admit(&story.coordinator, 200);
    assert_string_equal(story.coordinator.reason, "worker 3 has come");
    assert_int_equal(generation_next(&story.coordinator, &next), STATUS_OK);
    assert_int_equal(next.process_count, 3);
    assert_int_equal(next.workers[2].number, 3);
    generation_change_job(&story.coordinator, &next, &story.job);
    assert_string_equal(story.job.faults, "after=step:90,join");
    generation_finish(&next);
    coordinator_finish(&story.coordinator);
}

/* One that was started again may come before those who come back. */
static void the_places_of_a_generation_are_for_those_who_come_back(void **state)
{
    (void)state;
    struct story story;
    struct generation next;
    uint32_t number;
    newcomer_story_open(&story);
    const struct coordinator_port port = story.coordinator.port;
    assert_int_equal(ask(&story, 9, 3, 100, &number), STATUS_AGAIN);
    newcomers_admit(&story.coordinator, 200);
    assert_int_equal(generation_next(&story.coordinator, &next), STATUS_OK);
    coordinator_finish(&story.coordinator);
    story.job.processes = next.process_count;
    assert_int_equal(coordinator_init(&story.coordinator, &story.job, "the job", &port, 300),
                     STATUS_OK);
    generation_begin(&next, &story.coordinator);
    assert_int_equal(story.coordinator.state, COORDINATOR_GATHERING);
    assert_int_equal(ask(&story, 12, -1, 400, &number), STATUS_AGAIN);
    assert_int_equal(number, 2);                                            // 0, 1 and 3 come back
    assert_int_equal(ask(&story, 13, 7, 400, &number), STATUS_UNREACHABLE); // a fifth for four
    coordinator_finish(&story.coordinator);
    generation_finish(&next);
}

/* By hand: no launcher says it. Worker 0 is back, and has some time. */
static void who_has_ended_on_this_host_is_not_waited_for(void **state)
{
    (void)state;
    struct story story;
    struct generation next;
    uint32_t number;
    newcomer_story_open(&story);
    const struct coordinator_port port = story.coordinator.port;
    assert_int_equal(ask(&story, 9, 3, 100, &number), STATUS_AGAIN);
    story.coordinator.membership.workers[1].sighting.process_id = 71;
    newcomers_admit(&story.coordinator, 200);
    assert_int_equal(generation_next(&story.coordinator, &next), STATUS_OK);
    assert_int_equal(next.workers[1].sighting.process_id, 71);
    coordinator_finish(&story.coordinator);
    story.job.processes = next.process_count;
    assert_int_equal(coordinator_init(&story.coordinator, &story.job, "the job", &port, 300),
                     STATUS_OK);
    generation_begin(&next, &story.coordinator);
    story_join(&story, 11, ROLE_WORKER, 0);
    coordinator_tick(&story.coordinator, 1400, 0);
    assert_int_equal(story.coordinator.state, COORDINATOR_GATHERING);
    story.transcript.presence = PRESENCE_ENDED;
    coordinator_tick(&story.coordinator, 1450, 0);
    assert_int_equal(story.coordinator.state, COORDINATOR_RENEWING);
    assert_string_equal(story.coordinator.reason, "worker 1 did not come back within 1 s of being "
                                                  "told to: its process has ended; nor did worker "
                                                  "3");
    assert_int_equal(story.coordinator.workers_lost, 1); // the other has taken no part
    coordinator_finish(&story.coordinator);
    generation_finish(&next);
}

static void those_who_ask_hear_that_the_job_ends(void **state)
{
    (void)state;
    struct story story;
    uint32_t number;
    newcomer_story_open(&story);
    assert_int_equal(ask(&story, 9, 3, 100, &number), STATUS_AGAIN);
    coordinator_stop(&story.coordinator, STATUS_INTERRUPTED, "by SIGINT", 200);
    uint32_t last = story.transcript.sent_count - 1;
    assert_int_equal(story.transcript.sent[last].peer, 9);
    assert_int_equal(story.transcript.sent[last].kind, MESSAGE_REFUSE);
    assert_int_equal(story.transcript.sent[last].reason, STATUS_UNREACHABLE);
    expect_told(&story, "the job ends");
    coordinator_finish(&story.coordinator);
}

static void without_newcomers_a_copy_changes_nothing(void **state)
{
    (void)state;
    struct story story;
    newcomer_story_open(&story);
    newcomers_admit(&story.coordinator, 200);
    assert_int_equal(story.coordinator.state, COORDINATOR_TRAINING);
    coordinator_finish(&story.coordinator);
}

/* A job of four ranks and two processes, which its launcher starts. */
static void open_launched(struct story *story)
{
    story_open(story, "ring", 2, 0);
    story->coordinator.is_launched = true;
    story->job.workers = 4;
    story->job.processes = 2;
    story->job.on_loss = ON_LOSS_REDEAL;
}

/* It asks several times a second, by the number that it was told, while the others still gather. */
static void who_comes_by_hand_before_the_job_has_begun_may_ask_again(void **state)
{
    (void)state;
    struct story story;
    open_launched(&story);
    struct wire_member by_hand = {.role = ROLE_WORKER, .host = "node", .process_id = 4711};
    const struct message join = {
        .kind = MESSAGE_JOIN, .member = &by_hand, .text = RINGSIDE_VERSION};
    story_give(&story, 9, join, 100);
    by_hand.has_rank = true;
    by_hand.rank = story.transcript.sent[story.transcript.sent_count - 1].rank;
    assert_int_equal(by_hand.rank, 2);
    story_give(&story, 9, join, 300);
    assert_int_equal(story_last_kind(&story), MESSAGE_REFUSE);
    assert_int_equal(story.transcript.sent[story.transcript.sent_count - 1].reason, STATUS_AGAIN);
    assert_int_equal(story.coordinator.newcomers.count, 1);
    coordinator_finish(&story.coordinator);
}

static void who_comes_by_hand_takes_no_place_that_a_launcher_fills(void **state)
{
    (void)state;
    struct story story;
    open_launched(&story);
    const struct wire_member by_hand = {
        .role = ROLE_WORKER, .host = "node", .process_id = 4711}; // without a rank
    const struct message join = {
        .kind = MESSAGE_JOIN, .member = &by_hand, .text = RINGSIDE_VERSION};
    story_give(&story, 9, join, 100);
    assert_int_equal(story_last_kind(&story), MESSAGE_REFUSE);
    assert_int_equal(story.transcript.sent[story.transcript.sent_count - 1].reason, STATUS_AGAIN);
    story_join(&story, 1, ROLE_WORKER, 0);
    assert_int_equal(story_last_kind(&story), MESSAGE_WELCOME);
    newcomer_story_join(&story, 2, 1, launch_number_make(5, 2));
    assert_int_equal(story_last_kind(&story), MESSAGE_WELCOME);
    assert_int_equal(story.coordinator.newcomers.count, 1);

    story.coordinator.is_launched = false; // who comes fills it
    membership_vacate(&story.coordinator.membership,
                      &(struct sender){&story.coordinator.membership.workers[0], ROLE_WORKER, 0}, 0,
                      100);
    story_give(&story, 10, join, 100);
    assert_int_equal(story_last_kind(&story), MESSAGE_WELCOME);
    coordinator_finish(&story.coordinator);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_that_asks_is_told_to_come_again_under_a_number),
        cmocka_unit_test(who_comes_by_hand_before_the_job_has_begun_may_ask_again),
        cmocka_unit_test(one_at_a_loopback_address_is_refused_where_others_are_on_other_hosts),
        cmocka_unit_test(one_that_cannot_connect_to_those_who_are_there_is_refused),
        cmocka_unit_test(parameter_servers_do_not_mind_a_loopback_address),
        cmocka_unit_test(one_whose_connection_is_closed_keeps_no_place),
        cmocka_unit_test(one_that_has_ended_as_the_launcher_says_keeps_no_place),
        cmocka_unit_test(one_that_is_started_in_the_place_of_another_shows_that_it_has_ended),
        cmocka_unit_test(one_whose_number_another_has_gets_another_one),
        cmocka_unit_test(where_there_is_no_place_one_is_refused),
        cmocka_unit_test(the_next_generation_has_a_place_for_those_who_still_ask),
        cmocka_unit_test(who_joins_after_a_step_waits_for_a_copy_of_it),
        cmocka_unit_test(the_places_of_a_generation_are_for_those_who_come_back),
        cmocka_unit_test(who_has_ended_on_this_host_is_not_waited_for),
        cmocka_unit_test(those_who_ask_hear_that_the_job_ends),
        cmocka_unit_test(without_newcomers_a_copy_changes_nothing),
        cmocka_unit_test(who_comes_by_hand_takes_no_place_that_a_launcher_fills),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
