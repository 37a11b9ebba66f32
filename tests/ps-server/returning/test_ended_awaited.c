/* Tests of members in whose place another process is started while others come back. */
#include "tests/support/ps-server/ended_story.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdio.h>
#include <string.h>

static void one_in_whose_place_another_is_started_is_awaited(void **state)
{
    (void)state;
    assert_true(ended_story_hear(LAUNCHER_AGAIN, ROLE_WORKER, 1));
    assert_int_equal(ended_story.back.story.transcript.awaited_count, 1);
    assert_int_equal(ended_story.back.story.transcript.awaited_number, 1);
    assert_true(comeback_take(&ended_story.back, 0, 20, ENDED_STORY_MS));
    assert_true(comeback_take(&ended_story.back, 2, 20, ENDED_STORY_MS));
    ended_story_judge();
    assert_int_equal(ended_story_state(), COORDINATOR_GATHERING);
    assert_true(comeback_join(&ended_story.back, ROLE_WORKER, 1, 21, ENDED_STORY_MS));
    assert_int_equal(ended_story_state(), COORDINATOR_RENEWING); // all are there
}

/* They count once, and are named. */
static void those_in_whose_places_others_have_come_were_lost(void **state)
{
    struct coordinator *coordinator = &ended_story.back.story.coordinator;
    char reason[COORDINATOR_REASON_BYTES];
    (void)state;
    assert_true(ended_story_hear(LAUNCHER_AGAIN, ROLE_WORKER, 1));
    assert_true(ended_story_hear(LAUNCHER_AGAIN, ROLE_WORKER, 1)); // the next one was killed, too
    assert_true(comeback_take(&ended_story.back, 0, 20, ENDED_STORY_MS));
    assert_true(comeback_take(&ended_story.back, 2, 20, ENDED_STORY_MS));
    assert_true(comeback_join(&ended_story.back, ROLE_WORKER, 1, 21, ENDED_STORY_MS));
    ended_leave(&ended_story.ended, &ended_story.back.returning, &ended_story.back.story.job,
                coordinator, ENDED_STORY_MS);
    assert_int_equal(coordinator->workers_lost, 1);
    generation_explain(coordinator, reason);
    assert_non_null(strstr(reason, "its members join anew, and it was killed"));
}

static void one_for_whom_nobody_comes_counts_once(void **state)
{
    const struct message alive = {.kind = MESSAGE_HEARTBEAT, .text = ""};
    struct coordinator *coordinator = &ended_story.back.story.coordinator;
    (void)state;
    assert_true(ended_story_hear(LAUNCHER_AGAIN, ROLE_WORKER, 1));
    assert_true(comeback_take(&ended_story.back, 0, 20, ENDED_STORY_MS));
    assert_true(comeback_take(&ended_story.back, 2, 20, ENDED_STORY_MS));
    for (uint64_t now_ms = ENDED_STORY_MS; now_ms <= 60000; now_ms += 500) {
        coordinator_receive(coordinator, 10, &alive, now_ms);
        coordinator_receive(coordinator, 12, &alive, now_ms);
        coordinator_tick(coordinator, now_ms, 0);
    }
    assert_non_null(strstr(coordinator->reason, "worker 1 did not come back"));
    assert_int_equal(coordinator->workers_lost, 1);
}

/* It has --start-timeout, whatever --lost-after is, and is named then. */
static void one_that_is_started_again_has_the_time_that_a_start_has(void **state)
{
    static const double lost_afters[] = {1, 300};
    (void)state;
    for (uint32_t i = 0; i < 2; i++) {
        const struct message alive = {.kind = MESSAGE_HEARTBEAT, .text = ""};
        struct coordinator *coordinator = &ended_story.back.story.coordinator;
        comeback_end(&ended_story.back);
        (void)ended_story_begin(NULL);
        ended_story.back.story.job.lost_after = lost_afters[i];
        ended_story.back.story.job.start_timeout = 20;
        assert_true(ended_story_hear(LAUNCHER_AGAIN, ROLE_WORKER, 1));
        assert_true(comeback_take(&ended_story.back, 0, 20, ENDED_STORY_MS));
        assert_true(comeback_take(&ended_story.back, 2, 20, ENDED_STORY_MS));
        uint64_t now_ms = ENDED_STORY_MS;
        for (; ended_story_state() == COORDINATOR_GATHERING && now_ms <= 60000; now_ms += 500) {
            coordinator_receive(coordinator, 10, &alive, now_ms);
            coordinator_receive(coordinator, 12, &alive, now_ms);
            ended_judge(&ended_story.ended, &ended_story.back.returning,
                        &ended_story.back.story.job, coordinator, now_ms);
            coordinator_tick(coordinator, now_ms, 0);
        }
        assert_int_equal(ended_story_state(), COORDINATOR_RENEWING);
        assert_int_equal(now_ms - 500, ENDED_STORY_MS + 20000);
        assert_non_null(strstr(coordinator->reason,
                               "it was killed, and worker 1 was started again, and did not come "
                               "within 20 s (--start-timeout)"));
        assert_int_equal(coordinator->workers_lost, 1);
        assert_int_equal(coordinator->membership.workers[1].state, SLOT_GONE);
    }
}

/* It cannot know that those who are back are lost, though one more is awaited. */
static void one_that_is_awaited_makes_no_coordinator_hear_that_hears_nobody(void **state)
{
    struct coordinator *coordinator = &ended_story.back.story.coordinator;
    (void)state;
    ended_story.back.story.job.outlast = 60;
    assert_true(ended_story_hear(LAUNCHER_AGAIN, ROLE_WORKER, 1));
    assert_true(comeback_take(&ended_story.back, 0, 20, ENDED_STORY_MS));
    assert_true(comeback_take(&ended_story.back, 2, 20, ENDED_STORY_MS));
    for (uint64_t now_ms = ENDED_STORY_MS; now_ms <= ENDED_STORY_MS + 40000; now_ms += 500) {
        ended_judge(&ended_story.ended, &ended_story.back.returning, &ended_story.back.story.job,
                    coordinator, now_ms);
        coordinator_tick(coordinator, now_ms, 0);
    }
    assert_int_equal(ended_story_state(), COORDINATOR_GATHERING);
    assert_int_equal(coordinator->membership.workers[0].state, SLOT_CONNECTED);
    assert_int_equal(coordinator->membership.workers[2].state, SLOT_CONNECTED);
    assert_int_equal(coordinator->workers_lost, 1);
}

/* As if it had been stopped: nobody could have come meanwhile. */
static void time_in_which_the_coordinator_stood_still_is_not_that_of_a_start(void **state)
{
    (void)state;
    assert_true(ended_story_hear(LAUNCHER_AGAIN, ROLE_WORKER, 1));
    assert_true(comeback_take(&ended_story.back, 0, 20, ENDED_STORY_MS));
    assert_true(comeback_take(&ended_story.back, 2, 20, ENDED_STORY_MS));
    ended_story_judge();
    ended_judge(&ended_story.ended, &ended_story.back.returning, &ended_story.back.story.job,
                &ended_story.back.story.coordinator, ENDED_STORY_MS + 3600000);
    assert_int_equal(ended_story_state(), COORDINATOR_GATHERING);
}

/* Nor is it judged here where nobody has come back: the job may not have begun. */
static void before_the_job_begins_nobody_does_without_one_that_is_started_again(void **state)
{
    const struct launcher_news news = {LAUNCHER_AGAIN, ROLE_WORKER, 1, 0, "it was killed"};
    struct story fresh;
    (void)state;
    story_open(&fresh, "ring", COMEBACK_WORKERS, 0);
    assert_false(
        ended_take(&ended_story.ended, &ended_story.back.returning, &fresh.coordinator, &news));
    launcher_news_apply(&news, &fresh.coordinator, ENDED_STORY_MS);
    for (uint64_t now_ms = ENDED_STORY_MS; now_ms <= 600000; now_ms += 500) {
        ended_judge(&ended_story.ended, &ended_story.back.returning, &fresh.job, &fresh.coordinator,
                    now_ms);
    }
    assert_int_equal(fresh.coordinator.state, COORDINATOR_GATHERING);
    coordinator_finish(&fresh.coordinator);
}

/* The launcher's line came before the first member was back: its place was counted then. */
static void one_that_was_lost_before_the_others_were_back_counts_once(void **state)
{
    const struct launcher_news news = {LAUNCHER_AGAIN, ROLE_WORKER, 1, 0, "it was killed"};
    struct coordinator *coordinator = &ended_story.back.story.coordinator;
    struct story fresh;
    (void)state;
    story_open(&fresh, "ring", COMEBACK_WORKERS, 0);
    assert_false(
        ended_take(&ended_story.ended, &ended_story.back.returning, &fresh.coordinator, &news));
    launcher_news_apply(&news, &fresh.coordinator, ENDED_STORY_MS);
    assert_int_equal(fresh.coordinator.workers_lost, 1);
    coordinator->workers_lost = fresh.coordinator.workers_lost; // as server_return has it
    coordinator_finish(&fresh.coordinator);
    assert_true(comeback_take(&ended_story.back, 0, 20, ENDED_STORY_MS));
    assert_true(comeback_take(&ended_story.back, 2, 20, ENDED_STORY_MS));
    for (uint64_t now_ms = ENDED_STORY_MS; now_ms <= 60000; now_ms += 500) {
        ended_judge(&ended_story.ended, &ended_story.back.returning, &ended_story.back.story.job,
                    coordinator, now_ms);
    }
    assert_int_equal(ended_story_state(), COORDINATOR_RENEWING);
    assert_int_equal(coordinator->workers_lost, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ENDED_STORY_TEST(one_in_whose_place_another_is_started_is_awaited),
        ENDED_STORY_TEST(those_in_whose_places_others_have_come_were_lost),
        ENDED_STORY_TEST(one_for_whom_nobody_comes_counts_once),
        ENDED_STORY_TEST(one_that_is_started_again_has_the_time_that_a_start_has),
        ENDED_STORY_TEST(one_that_is_awaited_makes_no_coordinator_hear_that_hears_nobody),
        ENDED_STORY_TEST(time_in_which_the_coordinator_stood_still_is_not_that_of_a_start),
        ENDED_STORY_TEST(before_the_job_begins_nobody_does_without_one_that_is_started_again),
        ENDED_STORY_TEST(one_that_was_lost_before_the_others_were_back_counts_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
