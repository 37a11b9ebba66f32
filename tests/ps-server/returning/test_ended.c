/* Tests of members that have ended before a coordinator had them back, as the launcher says. */
#include "tests/support/ps-server/ended_story.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdio.h>
#include <string.h>

static void who_was_lost_with_the_coordinator_is_given_up_once_the_others_are_back(void **state)
{
    const struct coordinator *coordinator = &ended_story.back.story.coordinator;
    (void)state;
    assert_true(ended_story_hear(LAUNCHER_LOST, ROLE_WORKER, 1));
    assert_true(comeback_take(&ended_story.back, 0, 20, ENDED_STORY_MS));
    ended_story_judge();
    assert_int_equal(ended_story_state(), COORDINATOR_GATHERING);
    const struct message once =
        comeback_say(&ended_story.back, 2, 20); // and is asked to say so again
    assert_true(returning_take(&ended_story.back.returning, &ended_story.back.generation,
                               &ended_story.back.story.coordinator, 12, &once, ENDED_STORY_MS));
    ended_story_judge();
    assert_int_equal(ended_story_state(), COORDINATOR_GATHERING);
    assert_true(comeback_take(&ended_story.back, 2, 20, ENDED_STORY_MS));
    ended_story_judge();
    assert_int_equal(ended_story_state(), COORDINATOR_RENEWING);
    assert_string_equal(coordinator->reason, "it was killed");
    assert_int_equal(coordinator->workers_lost, 1);
    assert_int_equal(coordinator->membership.workers[1].state, SLOT_GONE);
    assert_int_equal(coordinator->membership.workers[0].state, SLOT_CONNECTED);
}

static void a_loss_that_a_coordinator_before_has_counted_is_not_counted_again(void **state)
{
    const struct launcher_news news = {LAUNCHER_LOST,   ROLE_WORKER,       1, 0,
                                       "it was killed", .is_counted = true};
    (void)state;
    assert_true(ended_take(&ended_story.ended, &ended_story.back.returning,
                           &ended_story.back.story.coordinator, &news));
    assert_true(comeback_take(&ended_story.back, 0, 20, ENDED_STORY_MS));
    assert_true(comeback_take(&ended_story.back, 2, 20, ENDED_STORY_MS));
    ended_story_judge();
    assert_int_equal(ended_story_state(), COORDINATOR_RENEWING);
    assert_int_equal(ended_story.back.story.coordinator.workers_lost, 0);
    assert_int_equal(ended_story.back.story.coordinator.membership.workers[1].state, SLOT_GONE);
}

static void all_that_were_lost_with_the_coordinator_are_named(void **state)
{
    static const struct launcher_news news[] = {
        {LAUNCHER_LOST, ROLE_WORKER, 1, 0, "worker 1 was killed"},
        {LAUNCHER_LOST, ROLE_WORKER, 2, 0, "worker 2 was killed"},
    };
    (void)state;
    for (uint32_t i = 0; i < 2; i++) {
        assert_true(ended_take(&ended_story.ended, &ended_story.back.returning,
                               &ended_story.back.story.coordinator, &news[i]));
    }
    assert_true(comeback_take(&ended_story.back, 0, 20, ENDED_STORY_MS));
    ended_story_judge();
    assert_int_equal(ended_story_state(), COORDINATOR_RENEWING);
    assert_string_equal(ended_story.back.story.coordinator.reason,
                        "worker 1 was killed, and worker 2 was killed");
}

static void without_such_news_all_are_awaited(void **state)
{
    (void)state;
    assert_true(comeback_take(&ended_story.back, 0, 20, ENDED_STORY_MS));
    assert_true(comeback_take(&ended_story.back, 2, 20, ENDED_STORY_MS));
    ended_story_judge();
    assert_int_equal(ended_story_state(), COORDINATOR_GATHERING);
    assert_true(
        ended_story_hear(LAUNCHER_OVER, ROLE_WORKER, 1)); // somebody else may have its place
    ended_story_judge();
    assert_int_equal(ended_story_state(), COORDINATOR_GATHERING);
}

static void what_comes_before_the_first_is_back_is_kept(void **state)
{
    (void)state;
    const struct launcher_news news = {LAUNCHER_LOST, ROLE_WORKER, 1, 0, "it was killed"};
    struct story fresh;
    story_open(&fresh, "ring", COMEBACK_WORKERS, 0);
    assert_true(
        ended_take(&ended_story.ended, &ended_story.back.returning, &fresh.coordinator, &news));
    assert_int_equal(fresh.coordinator.state, COORDINATOR_GATHERING); // it fails no job
    ended_judge(&ended_story.ended, &ended_story.back.returning, &fresh.job, &fresh.coordinator,
                ENDED_STORY_MS);
    coordinator_finish(&fresh.coordinator);
    assert_true(comeback_take(&ended_story.back, 0, 20, ENDED_STORY_MS));
    assert_true(comeback_take(&ended_story.back, 2, 20, ENDED_STORY_MS));
    ended_story_judge();
    assert_int_equal(ended_story_state(), COORDINATOR_RENEWING);
}

/* Its end was told late: the process that has its number by now is back. */
static void the_end_of_an_earlier_process_is_not_that_of_one_that_is_back(void **state)
{
    (void)state;
    const struct launcher_news late = {LAUNCHER_LOST, ROLE_WORKER, 1, 5, "it was killed"};
    for (uint32_t rank = 0; rank < 2; rank++) {
        const struct message message = comeback_say(&ended_story.back, rank, 20);
        ended_story.back.member.launch = 11 + rank;
        const struct message once = message; // it is to say so again
        assert_true(returning_take(&ended_story.back.returning, &ended_story.back.generation,
                                   &ended_story.back.story.coordinator, 10 + rank, &once,
                                   ENDED_STORY_MS));
    }
    assert_true(ended_take(&ended_story.ended, &ended_story.back.returning,
                           &ended_story.back.story.coordinator, &late));
    assert_true(comeback_take(&ended_story.back, 0, 20, ENDED_STORY_MS));
    assert_true(comeback_take(&ended_story.back, 2, 20, ENDED_STORY_MS));
    ended_story_judge();
    assert_int_equal(ended_story_state(), COORDINATOR_GATHERING); // worker 1 is to say so again
    assert_true(comeback_take(&ended_story.back, 1, 20, ENDED_STORY_MS));
    assert_int_equal(ended_story_state(), COORDINATOR_TRAINING);
    assert_int_equal(ended_story.back.story.coordinator.workers_lost, 0);
}

/* The job goes on, and hears that worker 1 was killed. */
static void lose_while_it_trains(struct story *training)
{
    const struct launcher_news news = {LAUNCHER_KILLED, ROLE_WORKER, 1, 0, "it was killed"};
    story_open_training(training, COMEBACK_WORKERS);
    training->job.on_loss = ON_LOSS_REDEAL;
    training->job.min_workers = 1;
    assert_false(
        ended_take(&ended_story.ended, &ended_story.back.returning, &training->coordinator, &news));
    launcher_news_apply(&news, &training->coordinator, ENDED_STORY_MS);
    assert_int_equal(training->coordinator.state, COORDINATOR_RENEWING);
    ended_leave(&ended_story.ended, &ended_story.back.returning, &training->job,
                &training->coordinator, ENDED_STORY_MS);
}

/* Nobody tells it again. While it is away, worker 0 is killed. */
static void a_coordinator_that_was_away_knows_who_had_ended_before(void **state)
{
    struct story training;
    (void)state;
    lose_while_it_trains(&training);
    coordinator_finish(&training.coordinator);
    comeback_begin_without_one(&ended_story.back, 2, ENDED_STORY_MS);
    assert_true(ended_story_hear(LAUNCHER_KILLED, ROLE_WORKER, 0));
    comeback_take_numbered(&ended_story.back, 1, 2, ENDED_STORY_MS);
    ended_story_judge_of(COMEBACK_WORKERS);
    assert_int_equal(ended_story_state(), COORDINATOR_RENEWING);
    assert_int_equal(ended_story.back.story.coordinator.membership.workers[0].state, SLOT_GONE);
}

/* It has a place of its own, and trains with the others. */
static void one_that_was_started_again_since_is_awaited(void **state)
{
    struct story training;
    (void)state;
    lose_while_it_trains(&training);
    coordinator_finish(&training.coordinator);
    story_open_training(&training, COMEBACK_WORKERS); // as the next generation
    ended_judge(&ended_story.ended, &ended_story.back.returning, &training.job,
                &training.coordinator, ENDED_STORY_MS);
    coordinator_finish(&training.coordinator);
    assert_true(ended_story_hear(LAUNCHER_KILLED, ROLE_WORKER, 0));
    assert_true(comeback_take(&ended_story.back, 2, 20, ENDED_STORY_MS));
    ended_story_judge();
    assert_int_equal(ended_story_state(), COORDINATOR_GATHERING);
    assert_true(comeback_take(&ended_story.back, 1, 20, ENDED_STORY_MS));
    ended_story_judge();
    assert_int_equal(ended_story_state(), COORDINATOR_RENEWING);
    assert_int_equal(ended_story.back.story.coordinator.workers_lost, 1);
}

/* The second process of worker 1, a program that commits, fails before it is ready. */
static void one_that_had_no_part_in_the_job_is_known_to_have_ended(void **state)
{
    static const struct launcher_news news = {LAUNCHER_NEWCOMER, ROLE_WORKER, 1, 0, "it failed"};
    struct story training;
    (void)state;
    lose_while_it_trains(&training);
    coordinator_finish(&training.coordinator);
    story_open_training(&training, COMEBACK_WORKERS); // as the next generation
    ended_judge(&ended_story.ended, &ended_story.back.returning, &training.job,
                &training.coordinator, ENDED_STORY_MS);
    assert_false(
        ended_take(&ended_story.ended, &ended_story.back.returning, &training.coordinator, &news));
    coordinator_finish(&training.coordinator);
    comeback_begin_without_one(&ended_story.back, 2, ENDED_STORY_MS);
    assert_true(ended_story_hear(LAUNCHER_KILLED, ROLE_WORKER, 0));
    comeback_take_numbered(&ended_story.back, 1, 2, ENDED_STORY_MS);
    ended_story_judge_of(COMEBACK_WORKERS);
    assert_int_equal(ended_story_state(), COORDINATOR_RENEWING);
}

/* They were told to join the next generation, and the coordinator was lost before it began. */
static void members_that_join_go_on_without_those_that_have_ended(void **state)
{
    const struct launcher_news over = {LAUNCHER_OVER, ROLE_WORKER, 1, 0, "it was lost before"};
    struct story fresh;
    (void)state;
    story_open(&fresh, "ring", COMEBACK_WORKERS, 0);
    fresh.job.on_loss = ON_LOSS_REDEAL;
    fresh.job.min_workers = 1;
    assert_true(
        ended_take(&ended_story.ended, &ended_story.back.returning, &fresh.coordinator, &over));
    story_join(&fresh, 1, ROLE_WORKER, 0);
    ended_judge(&ended_story.ended, &ended_story.back.returning, &fresh.job, &fresh.coordinator,
                ENDED_STORY_MS);
    assert_int_equal(fresh.coordinator.state, COORDINATOR_GATHERING);
    story_join(&fresh, 2, ROLE_WORKER, 2);
    ended_judge(&ended_story.ended, &ended_story.back.returning, &fresh.job, &fresh.coordinator,
                ENDED_STORY_MS);
    assert_int_equal(fresh.coordinator.state, COORDINATOR_RENEWING);
    assert_string_equal(fresh.coordinator.reason, "it was lost before");
    assert_int_equal(fresh.coordinator.membership.workers[1].state, SLOT_GONE);
    coordinator_finish(&fresh.coordinator);
}

/* Worker 1 was lost before the coordinator, worker 2 with it. */
static void of_members_that_join_only_what_was_lost_now_is_counted(void **state)
{
    static const struct launcher_news news[] = {
        {LAUNCHER_OVER, ROLE_WORKER, 1, 7, "it was lost before"},
        {LAUNCHER_LOST, ROLE_WORKER, 2, 8, "it was killed"},
    };
    struct story fresh;
    (void)state;
    story_open(&fresh, "ring", COMEBACK_WORKERS, 0);
    fresh.job.on_loss = ON_LOSS_REDEAL;
    fresh.job.min_workers = 1;
    fresh.coordinator.workers_lost = 1; // as the run folder says
    for (uint32_t i = 0; i < 2; i++) {
        assert_true(ended_take(&ended_story.ended, &ended_story.back.returning, &fresh.coordinator,
                               &news[i]));
    }
    story_join(&fresh, 1, ROLE_WORKER, 0);
    ended_judge(&ended_story.ended, &ended_story.back.returning, &fresh.job, &fresh.coordinator,
                ENDED_STORY_MS);
    assert_int_equal(fresh.coordinator.state, COORDINATOR_RENEWING);
    assert_int_equal(fresh.coordinator.workers_lost, 2);
    coordinator_finish(&fresh.coordinator);
}

static void a_server_is_given_up_likewise(void **state)
{
    (void)state;
    comeback_end(&ended_story.back);
    comeback_begin_in(&ended_story.back, "ps-sync", 2, ENDED_STORY_MS);
    assert_true(ended_story_hear(LAUNCHER_LOST, ROLE_SERVER, 1));
    for (uint32_t rank = 0; rank < COMEBACK_WORKERS; rank++) {
        assert_true(comeback_take_anew(&ended_story.back, ROLE_WORKER, rank, 10 + rank));
    }
    ended_story_judge();
    assert_int_equal(ended_story_state(), COORDINATOR_GATHERING); // its own server is not there yet
    assert_true(comeback_join(&ended_story.back, ROLE_SERVER, 0, 20, ENDED_STORY_MS));
    ended_story_judge();
    assert_int_equal(ended_story_state(), COORDINATOR_RENEWING);
    assert_int_equal(ended_story.back.story.coordinator.membership.servers[1].state, SLOT_GONE);
}

static void news_of_a_member_that_is_back_is_a_loss_like_any_other(void **state)
{
    (void)state;
    assert_true(comeback_take(&ended_story.back, 1, 20, ENDED_STORY_MS));
    assert_false(ended_story_hear(LAUNCHER_KILLED, ROLE_WORKER, 1));
    assert_true(ended_story_hear(LAUNCHER_KILLED, ROLE_WORKER, 2));
    assert_true(comeback_take(&ended_story.back, 0, 20, ENDED_STORY_MS));
    assert_true(
        comeback_take(&ended_story.back, 2, 20, ENDED_STORY_MS)); // it was another one, by hand
    assert_int_equal(ended_story_state(), COORDINATOR_TRAINING);
    ended_story_judge();
    assert_int_equal(ended_story_state(), COORDINATOR_TRAINING);
    assert_false(ended_story.ended.has_any);
    assert_false(ended_story_hear(LAUNCHER_LOST, ROLE_WORKER, 2));
}

/* Of a program that commits, others may have what it has committed. */
static void one_that_ends_before_the_others_are_back_is_done_without(void **state)
{
    (void)state;
    for (uint32_t commits = 0; commits < 2; commits++) {
        struct coordinator *coordinator = &ended_story.back.story.coordinator;
        if (commits) {
            ended_story.back.story.job.on_loss = ON_LOSS_COMMIT;
            snprintf(ended_story.back.story.job.model, sizeof(ended_story.back.story.job.model),
                     "external:mine");
            const struct message first = comeback_say(&ended_story.back, 0, 20);
            returning_begin(&ended_story.back.returning, &first, &ended_story.back.story.job,
                            &ended_story.back.generation, coordinator);
            ended_story.back.back.has_commit = true;
        }
        assert_true(comeback_take(&ended_story.back, 0, 20, ENDED_STORY_MS));
        const struct sender lost = membership_member(&coordinator->membership, ROLE_WORKER, 0);
        generation_lose_killed(coordinator, "worker 0 was killed", &lost, ENDED_STORY_MS);
        assert_int_equal(coordinator->verdict, STATUS_AGAIN);
        comeback_end(&ended_story.back);
        comeback_begin(&ended_story.back, ENDED_STORY_MS);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ENDED_STORY_TEST(who_was_lost_with_the_coordinator_is_given_up_once_the_others_are_back),
        ENDED_STORY_TEST(a_loss_that_a_coordinator_before_has_counted_is_not_counted_again),
        ENDED_STORY_TEST(all_that_were_lost_with_the_coordinator_are_named),
        ENDED_STORY_TEST(a_coordinator_that_was_away_knows_who_had_ended_before),
        ENDED_STORY_TEST(one_that_was_started_again_since_is_awaited),
        ENDED_STORY_TEST(one_that_had_no_part_in_the_job_is_known_to_have_ended),
        ENDED_STORY_TEST(without_such_news_all_are_awaited),
        ENDED_STORY_TEST(what_comes_before_the_first_is_back_is_kept),
        ENDED_STORY_TEST(the_end_of_an_earlier_process_is_not_that_of_one_that_is_back),
        ENDED_STORY_TEST(members_that_join_go_on_without_those_that_have_ended),
        ENDED_STORY_TEST(of_members_that_join_only_what_was_lost_now_is_counted),
        ENDED_STORY_TEST(one_that_ends_before_the_others_are_back_is_done_without),
        ENDED_STORY_TEST(a_server_is_given_up_likewise),
        ENDED_STORY_TEST(news_of_a_member_that_is_back_is_a_loss_like_any_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
