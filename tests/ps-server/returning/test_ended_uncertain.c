/* Tests of members that have ended where the job had lost one before: nobody knows whose a place is
 * until its member is back. */
#include "tests/support/ps-server/ended_story.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdio.h>
#include <string.h>

/* The launcher has started four workers. Worker 0 is lost when it is back and worker 2 is not yet,
 * so the next generation begins. */
static void begin_next_before_all_are_back(void)
{
    struct coordinator *coordinator = &ended_story.back.story.coordinator;
    const struct sender lost = membership_called(&coordinator->membership, ROLE_WORKER, 0);
    struct job own = ended_story.back.story.job;
    own.workers = 4;
    generation_lose(coordinator, STATUS_UNREACHABLE, "worker 0 was lost", &lost, ENDED_STORY_MS);
    assert_int_equal(coordinator->state, COORDINATOR_RENEWING);
    ended_leave(&ended_story.ended, &ended_story.back.returning, &own, coordinator, ENDED_STORY_MS);
}

static void after_an_earlier_loss_the_free_place_is_that_of_the_lost_one(void **state)
{
    (void)state;
    comeback_begin_without_one(&ended_story.back, 2, ENDED_STORY_MS);
    assert_true(ended_story_hear(LAUNCHER_OVER, ROLE_WORKER, 1));
    assert_true(ended_story_hear(LAUNCHER_LOST, ROLE_WORKER, 0));
    ended_story_judge_of(COMEBACK_WORKERS);
    assert_int_equal(ended_story_state(), COORDINATOR_GATHERING);
    comeback_take_numbered(&ended_story.back, 1, 2, ENDED_STORY_MS);
    ended_story_judge_of(COMEBACK_WORKERS);
    assert_int_equal(ended_story_state(), COORDINATOR_RENEWING);
    assert_int_equal(ended_story.back.story.coordinator.membership.workers[0].state, SLOT_GONE);
}

/* Worker 3 has ended: nobody waits for it. Which place is whose was a guess until then. */
static void a_generation_that_begins_before_has_places_for_those_that_run(void **state)
{
    (void)state;
    comeback_begin_without_one(&ended_story.back, 3, ENDED_STORY_MS);
    const struct coordinator *coordinator = &ended_story.back.story.coordinator;
    assert_true(ended_story_hear(LAUNCHER_OVER, ROLE_WORKER, 1));
    assert_true(ended_story_hear(LAUNCHER_LOST, ROLE_WORKER, 3));
    comeback_take_numbered(&ended_story.back, 0, 0, ENDED_STORY_MS);
    begin_next_before_all_are_back();
    assert_int_equal(coordinator->membership.workers[1].number, 2);
    assert_int_equal(coordinator->membership.workers[1].state, SLOT_FREE);
    assert_int_equal(coordinator->membership.workers[2].state, SLOT_GONE);
    assert_int_equal(coordinator->workers_lost, 2);
}

/* More places are free than members of the launcher are to come or have ended. */
static void a_generation_that_begins_before_keeps_the_place_of_one_from_elsewhere(void **state)
{
    (void)state;
    comeback_begin_without_one(&ended_story.back, 3, ENDED_STORY_MS);
    const struct coordinator *coordinator = &ended_story.back.story.coordinator;
    assert_true(ended_story_hear(LAUNCHER_OVER, ROLE_WORKER, 1));
    assert_true(ended_story_hear(LAUNCHER_OVER, ROLE_WORKER, 3));
    comeback_take_numbered(&ended_story.back, 0, 0, ENDED_STORY_MS);
    begin_next_before_all_are_back();
    assert_int_equal(coordinator->membership.workers[1].state, SLOT_FREE);
    assert_int_equal(coordinator->membership.workers[2].state, SLOT_FREE);
}

/* The launcher has started worker 1 again. It asks for a place, and the job has one for it. */
static void ask_for_place(void)
{
    ended_story.back.story.job.workers = 4;
    (void)comeback_say(&ended_story.back, 1, 0);
    ended_story.back.member.launch = 9;
    const struct message join = {
        .kind = MESSAGE_JOIN, .text = RINGSIDE_VERSION, .member = &ended_story.back.member};
    coordinator_receive(&ended_story.back.story.coordinator, 30, &join, ENDED_STORY_MS);
}

/* Worker 1 was started again after its loss, and is no member, so only worker 0 is missing. Which
 * numbers the places have is a guess until the others are back. */
static void nobody_waits_for_one_that_asks_for_a_place(void **state)
{
    (void)state;
    comeback_begin_without_one(&ended_story.back, 2, ENDED_STORY_MS);
    struct coordinator *coordinator = &ended_story.back.story.coordinator;
    assert_true(ended_story_hear(LAUNCHER_AGAIN, ROLE_WORKER, 0));
    ask_for_place();
    comeback_take_numbered(&ended_story.back, 1, 2, ENDED_STORY_MS);
    ended_story_judge_of(COMEBACK_WORKERS);
    assert_int_equal(ended_story_state(), COORDINATOR_RENEWING);
    assert_int_equal(coordinator->workers_lost, 1);
    assert_int_equal(coordinator->membership.workers[0].state, SLOT_GONE);
    assert_int_equal(coordinator->newcomers.count, 1);
    assert_int_equal(coordinator->newcomers.list[0].number, 1);
}

/* It had no part in the job: the free place is that of a member that may still come. */
static void one_that_has_asked_for_a_place_is_no_loss_when_it_ends(void **state)
{
    const struct launcher_news news = {LAUNCHER_AGAIN, ROLE_WORKER, 1, 9, "it was killed"};
    (void)state;
    comeback_begin_without_one(&ended_story.back, 2, ENDED_STORY_MS);
    ask_for_place();
    comeback_take_numbered(&ended_story.back, 1, 2, ENDED_STORY_MS);
    assert_true(ended_take(&ended_story.ended, &ended_story.back.returning,
                           &ended_story.back.story.coordinator, &news));
    assert_int_equal(ended_story.back.story.coordinator.newcomers.count, 0);
    assert_true(ended_story_hear(LAUNCHER_OVER, ROLE_WORKER, 0)); // and one has come by hand for it
    ended_story_judge_of(COMEBACK_WORKERS);
    assert_int_equal(ended_story_state(), COORDINATOR_GATHERING);
}

/* Worker 1 has come by hand when the one before it was lost. The launcher starts its own again. */
static void two_processes_do_not_have_the_same_number(void **state)
{
    (void)state;
    comeback_begin_without_one(&ended_story.back, 2, ENDED_STORY_MS);
    ask_for_place();
    comeback_take_numbered(&ended_story.back, 1, 1, ENDED_STORY_MS);
    ask_for_place(); // once more
    const struct transcript *transcript = &ended_story.back.story.transcript;
    assert_int_equal(transcript->sent[transcript->sent_count - 1].kind, MESSAGE_REFUSE);
    assert_int_equal(transcript->sent[transcript->sent_count - 1].reason, STATUS_AGAIN);
    assert_int_equal(transcript->sent[transcript->sent_count - 1].rank, 2);
}

/* Worker 1 is no member: it gets a place of its own soon. */
static void a_generation_that_begins_before_has_one_place_for_one_that_asks(void **state)
{
    (void)state;
    comeback_begin_without_one(&ended_story.back, 3, ENDED_STORY_MS);
    const struct coordinator *coordinator = &ended_story.back.story.coordinator;
    assert_true(ended_story_hear(LAUNCHER_LOST, ROLE_WORKER, 3));
    comeback_take_numbered(&ended_story.back, 0, 0, ENDED_STORY_MS);
    ask_for_place();
    begin_next_before_all_are_back();
    assert_int_equal(coordinator->membership.workers[1].number, 2);
    assert_int_equal(coordinator->membership.workers[1].state, SLOT_FREE);
    assert_int_equal(coordinator->membership.workers[2].state, SLOT_GONE);
}

static void who_has_joined_from_elsewhere_may_still_come(void **state)
{
    (void)state;
    comeback_begin_without_one(&ended_story.back, 2, ENDED_STORY_MS);
    assert_true(ended_story_hear(LAUNCHER_OVER, ROLE_WORKER, 1)); // and another one has come for it
    assert_true(ended_story_hear(LAUNCHER_OVER, ROLE_WORKER, 2));
    comeback_take_numbered(&ended_story.back, 0, 0, ENDED_STORY_MS);
    ended_story_judge_of(COMEBACK_WORKERS);
    assert_int_equal(ended_story_state(), COORDINATOR_GATHERING);
}

/* The job had lost worker 1, which was counted. Then it loses worker 0, or 2, with the coordinator.
 * Before anybody is back, the next coordinator hears of that, and that the process which was
 * started in its place was killed, too. */
static void a_loss_before_anybody_is_back_counts_once(void **state)
{
    (void)state;
    for (uint32_t lost = 0; lost <= 2; lost += 2) {
        const struct launcher_news again = {LAUNCHER_AGAIN, ROLE_WORKER, lost, 5, "it was killed"};
        struct story fresh;
        story_open(&fresh, "ring", COMEBACK_WORKERS, 0);
        fresh.coordinator.workers_lost = 1;
        assert_false(ended_take(&ended_story.ended, &ended_story.back.returning, &fresh.coordinator,
                                &again));
        launcher_news_apply(&again, &fresh.coordinator, ENDED_STORY_MS);
        assert_int_equal(fresh.coordinator.workers_lost, 2);
        ended_note_counted(&ended_story.ended, &again);
        const struct launcher_news next = {LAUNCHER_AGAIN, ROLE_WORKER, lost, 6, "so was the next"};
        assert_false(
            ended_take(&ended_story.ended, &ended_story.back.returning, &fresh.coordinator, &next));
        launcher_news_apply(&next, &fresh.coordinator, ENDED_STORY_MS);
        assert_int_equal(fresh.coordinator.workers_lost, 2);
        comeback_begin_without_one(&ended_story.back, 2, ENDED_STORY_MS);
        ended_story.back.story.coordinator.workers_lost =
            fresh.coordinator.workers_lost; // see server_return
        coordinator_finish(&fresh.coordinator);
        assert_true(ended_story_hear(LAUNCHER_OVER, ROLE_WORKER, 1));
        comeback_take_numbered(&ended_story.back, lost == 0 ? 1 : 0, 2 - lost, ENDED_STORY_MS);
        ended_story_judge_of(COMEBACK_WORKERS);
        assert_int_equal(ended_story_state(), COORDINATOR_RENEWING);
        assert_int_equal(ended_story.back.story.coordinator.workers_lost, 2);
        memset(&ended_story.ended, 0, sizeof(ended_story.ended));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ENDED_STORY_TEST(after_an_earlier_loss_the_free_place_is_that_of_the_lost_one),
        ENDED_STORY_TEST(a_generation_that_begins_before_has_places_for_those_that_run),
        ENDED_STORY_TEST(a_generation_that_begins_before_keeps_the_place_of_one_from_elsewhere),
        ENDED_STORY_TEST(nobody_waits_for_one_that_asks_for_a_place),
        ENDED_STORY_TEST(one_that_has_asked_for_a_place_is_no_loss_when_it_ends),
        ENDED_STORY_TEST(two_processes_do_not_have_the_same_number),
        ENDED_STORY_TEST(a_generation_that_begins_before_has_one_place_for_one_that_asks),
        ENDED_STORY_TEST(who_has_joined_from_elsewhere_may_still_come),
        ENDED_STORY_TEST(a_loss_before_anybody_is_back_counts_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
