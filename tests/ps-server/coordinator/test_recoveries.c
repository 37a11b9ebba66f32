/* What is written down of a loss. */
#include "ps-server/coordinator/checkpoint_schedule.h"
#include "ps-server/coordinator/coordinator_states.h"
#include "ps-server/coordinator/deadlines.h"
#include "ps-server/coordinator/generation.h"
#include "ps-server/launcher/launcher_news.h"
#include "ps-server/record/recoveries.h"
#include "tests/support/ps-server/coordinator_story.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <string.h>

static void join_again(struct story *story, uint32_t number, uint64_t made)
{
    const struct wire_member member = {
        .role = ROLE_WORKER, .has_rank = true, .rank = number, .host = "node"};
    const struct message join = {
        .kind = MESSAGE_JOIN, .step = made, .member = &member, .text = RINGSIDE_VERSION};
    story_give(story, 10 + number, join, 1200);
}

/* One of three workers leaves, and the job is to go on. */
static void lose_one(struct story *story, struct generation *ret_next)
{
    const struct message leave = {.kind = MESSAGE_LEAVE, .reason = STATUS_IO, .text = "a reason"};
    story_give(story, 3, leave, 1000);
    story_call_back(story, 1100);
    assert_int_equal(generation_next(&story->coordinator, ret_next), STATUS_OK);
}

static void begin(struct story *story, const struct generation *next)
{
    const struct coordinator_port port = story->coordinator.port;
    coordinator_finish(&story->coordinator);
    story->job.processes = next->process_count;
    assert_int_equal(coordinator_init(&story->coordinator, &story->job, "the job", &port, 1100),
                     STATUS_OK);
    generation_begin(next, &story->coordinator);
}

/* Signs of life come twice a second, and a step may take a millisecond. */
static void steps_that_no_sign_of_life_had_told_count_among_those_made_again(void **state)
{
    (void)state;
    struct story story;
    struct generation next;
    story_open_training(&story, 3);
    story.job.on_loss = ON_LOSS_REDEAL;
    story.job.steps = 400;
    story_give(&story, 1, (struct message){.kind = MESSAGE_HEARTBEAT, .step = 290}, 900);
    lose_one(&story, &next);
    assert_int_equal(next.recoveries[0].lost_step, 290);
    begin(&story, &next);
    join_again(&story, 0, 299);
    join_again(&story, 1, 298);
    generation_note_start(&next, &story.coordinator, 2000);
    assert_int_equal(next.recoveries[0].lost_step, 299);
    coordinator_finish(&story.coordinator);
    generation_finish(&next);
}

/* Those who read that there is none would not look. */
static void the_last_good_checkpoint_is_known_after_a_loss(void **state)
{
    (void)state;
    struct story story;
    struct generation next;
    story_open_training(&story, 3);
    story.job.on_loss = ON_LOSS_REDEAL;
    story.coordinator.checkpointing.written = 48;
    lose_one(&story, &next);
    begin(&story, &next);
    assert_int_equal(story.coordinator.checkpointing.written, 48);
    coordinator_finish(&story.coordinator);
    generation_finish(&next);
}

/* Over a slow link each copy takes a large part of it: a loss is no reason for another one. */
static void copies_over_slow_links_are_as_far_apart_after_a_loss(void **state)
{
    (void)state;
    static const uint64_t took_ms[] = {5, 300};
    for (int is_slow = 0; is_slow < 2; is_slow++) {
        struct story story;
        struct generation next;
        story_open_training(&story, 3);
        story.job.on_loss = ON_LOSS_REDEAL;
        story.coordinator.checkpointing.took_ms = took_ms[is_slow];
        lose_one(&story, &next);
        begin(&story, &next);
        checkpoint_schedule_begin(&story.coordinator, 2000);
        uint64_t due_ms = story.coordinator.checkpointing.spare_due_ms;
        assert_int_equal(due_ms, is_slow ? 31000 : 2000);
        coordinator_finish(&story.coordinator);
        generation_finish(&next);
    }
}

/* The second one is lost before those who are left train again. */
static void a_loss_that_another_one_overtakes_tells_where_the_job_went_on(void **state)
{
    (void)state;
    struct story story;
    struct generation next, second;
    const struct coordinator_resume resume = {.step = 60};
    const struct message leave = {.kind = MESSAGE_LEAVE, .reason = STATUS_IO, .text = "a reason"};
    story_open_training(&story, 3);
    story.job.on_loss = ON_LOSS_REDEAL;
    story.job.steps = 400;
    story_give(&story, 1, (struct message){.kind = MESSAGE_HEARTBEAT, .step = 82}, 900);
    lose_one(&story, &next);
    begin(&story, &next);
    join_again(&story, 0, 83);
    join_again(&story, 1, 82);
    story.coordinator.resume = &resume;
    story_give(&story, 11, leave, 1300);
    story_call_back(&story, 1400);
    assert_int_equal(generation_next(&story.coordinator, &second), STATUS_OK);
    assert_int_equal(second.recovery_count, 2);
    assert_int_equal(second.recoveries[0].lost_step, 83);
    assert_int_equal(second.recoveries[0].begin_step, 60);
    assert_int_equal(second.recoveries[1].lost_step, 60); // none is made again for it
    assert_true(second.recoveries[0].seconds == 0.3);     // until the second one
    assert_false(second.recoveries[0].has_gone_on);
    generation_note_start(&second, &story.coordinator, 2000);
    assert_true(second.recoveries[0].has_gone_on && second.recoveries[1].has_gone_on);
    assert_int_equal(second.recoveries[0].begin_step, 60);
    coordinator_finish(&story.coordinator);
    generation_finish(&next);
    generation_finish(&second);
}

static void heartbeat(struct story *story, uint64_t peer, uint64_t step, uint64_t now_ms)
{
    story_give(story, peer, (struct message){.kind = MESSAGE_HEARTBEAT, .step = step}, now_ms);
}

/* All that join again are ready, and train, at now_ms. */
static void train_again(struct story *story, struct generation *next, uint64_t now_ms)
{
    struct coordinator *coordinator = &story->coordinator;
    for (uint32_t i = 0; i < coordinator->membership.worker_count; i++) {
        struct slot *slot = &coordinator->membership.workers[i];
        slot_enter(&coordinator->membership, slot, SLOT_CONNECTED, now_ms);
    }
    coordinator_enter(coordinator, COORDINATOR_TRAINING, now_ms);
    generation_note_start(next, coordinator, now_ms);
}

static void expect_rate(const json_t *recovery, const char *when, double expected)
{
    char key[64];
    snprintf(key, sizeof(key), "images_per_second_%s", when);
    const json_t *rate = json_object_get(recovery, key);
    assert_true(json_is_number(rate));
    assert_float_equal(json_number_value(rate), expected, 1e-3);
}

/* Steps have three images. 290 were made in 0.87 s, and 299 until the loss; the job begins anew.
 * 200 steps are made again in the first second, and 300 in each of the next. */
static void the_coordinator_counts_images_before_during_and_after_a_loss(void **state)
{
    (void)state;
    struct story story;
    struct generation next;
    story_open_training(&story, 3);
    uint64_t begun_ms = story.coordinator.started_ms;
    story.job.on_loss = ON_LOSS_REDEAL;
    story.job.steps = 4000;
    heartbeat(&story, 1, 145, begun_ms + 435);
    heartbeat(&story, 2, 290, begun_ms + 870);
    lose_one(&story, &next);
    begin(&story, &next);
    join_again(&story, 0, 299);
    join_again(&story, 1, 298);
    train_again(&story, &next, 2000);
    heartbeat(&story, 10, 200, 3000);
    heartbeat(&story, 11, 500, 4000);
    heartbeat(&story, 10, 800, 5000);
    heartbeat(&story, 10, 800, 5500); // nothing was made since
    coordinator_stop(&story.coordinator, STATUS_INTERRUPTED, "by SIGINT", 6000);
    json_t *list = recoveries_json(&story.coordinator), *only = json_array_get(list, 0);
    expect_rate(only, "before", 1000);
    double behind = json_number_value(json_object_get(only, "seconds_behind"));
    assert_float_equal(behind, 2.33, 1e-2); // a second to begin, and 1.33 for 299 steps
    expect_rate(only, "during", 299 * 3 / behind);
    expect_rate(only, "after", 2 * 800 / 3.0 + 500 / 2.0); // worker 0 carries two ranks
    json_decref(list);
    coordinator_finish(&story.coordinator);
    generation_finish(&next);
}

/* Those who join again say how many steps they had made. */
static void the_rate_is_known_of_a_job_that_is_lost_before_any_sign_of_life(void **state)
{
    (void)state;
    struct story story;
    struct generation next;
    story_open_training(&story, 3);
    uint64_t begun_ms = story.coordinator.started_ms;
    story.job.on_loss = ON_LOSS_REDEAL;
    story.job.steps = 400;
    lose_one(&story, &next);
    begin(&story, &next);
    join_again(&story, 0, 97);
    join_again(&story, 1, 96);
    train_again(&story, &next, 2000);
    json_t *list = recoveries_json(&story.coordinator), *only = json_array_get(list, 0);
    expect_rate(only, "before", 97 * 3 * 1000.0 / (double)(1000 - begun_ms));
    assert_true(json_is_null(json_object_get(only, "images_per_second_after"))); // no sign yet
    json_decref(list);
    coordinator_finish(&story.coordinator);
    generation_finish(&next);
}

/* In races fast workers make more steps than each one's share. */
static void no_more_steps_are_lost_than_the_job_has(void **state)
{
    (void)state;
    struct story story;
    struct generation next;
    story_open_training(&story, 3);
    story.job.on_loss = ON_LOSS_REDEAL;
    story.job.steps = 200;
    story_give(&story, 1, (struct message){.kind = MESSAGE_HEARTBEAT, .step = 211}, 900);
    lose_one(&story, &next);
    assert_int_equal(next.recoveries[0].lost_step, 200);
    begin(&story, &next);
    join_again(&story, 0, 212);
    join_again(&story, 1, 190);
    generation_note_start(&next, &story.coordinator, 2000);
    assert_int_equal(next.recoveries[0].lost_step, 200);
    coordinator_finish(&story.coordinator);
    generation_finish(&next);
}

/* Nobody knows where it would have gone on, and no step was made again. */
static void a_loss_that_the_end_of_the_job_overtakes_has_no_step_that_it_went_on_from(void **state)
{
    (void)state;
    for (uint32_t goes_on = 0; goes_on < 2; goes_on++) {
        struct story story;
        struct generation next;
        story_open_training(&story, 3);
        story.job.on_loss = ON_LOSS_REDEAL;
        story.job.steps = 400;
        story_give(&story, 1, (struct message){.kind = MESSAGE_HEARTBEAT, .step = 82}, 900);
        lose_one(&story, &next);
        begin(&story, &next);
        if (goes_on != 0) {
            generation_note_start(&next, &story.coordinator, 2000);
        }
        coordinator_stop(&story.coordinator, STATUS_INTERRUPTED, "by SIGINT", 2100);
        json_t *list = recoveries_json(&story.coordinator), *only = json_array_get(list, 0);
        assert_int_equal(json_integer_value(json_object_get(only, "lost_step")), 82);
        assert_int_equal(json_is_null(json_object_get(only, "begin_step")), goes_on == 0);
        assert_int_equal(json_is_null(json_object_get(only, "seconds")), goes_on == 0);
        assert_int_equal(json_integer_value(json_object_get(only, "steps_redone")),
                         goes_on != 0 ? 82 : 0);
        json_decref(list);
        coordinator_finish(&story.coordinator);
        generation_finish(&next);
    }
}

static void open_four(struct story *story)
{
    story_open_training(story, 4);
    story->job.on_loss = ON_LOSS_REDEAL;
    story->job.min_workers = 1;
    story->job.steps = 400;
}

static void kill_worker(struct story *story, uint32_t worker, const char *sentence)
{
    const struct launcher_news news = {LAUNCHER_KILLED, ROLE_WORKER, worker, 0, sentence};
    launcher_news_apply(&news, &story->coordinator, 1000);
}

/* What is written of the loss, with which the story ends. */
static void expect_written(struct story *story, uint32_t lost, const char *reason)
{
    struct generation next;
    story_call_back(story, 2100);
    assert_int_equal(story->coordinator.workers_lost, lost);
    assert_int_equal(generation_next(&story->coordinator, &next), STATUS_OK);
    assert_int_equal(next.recovery_count, 1);
    assert_string_equal(next.recoveries[0].reason, reason);
    generation_finish(&next);
    coordinator_finish(&story->coordinator);
}

static void all_that_are_lost_together_are_named(void **state)
{
    (void)state;
    struct story story;
    open_four(&story);
    deadlines_note_closed(&story.coordinator, 2, 900);
    deadlines_note_closed(&story.coordinator, 4, 1000);
    coordinator_tick(&story.coordinator, 2000, 0);
    assert_string_equal(
        story.transcript.last_error,
        "the job goes on: worker 3 (host node, pid 103) was lost (last heard of at step 0): its "
        "connection was closed, too");
    expect_written(
        &story, 2,
        "worker 1 (host node, pid 101) was lost (last heard of at step 0): its connection was "
        "closed, "
        "and worker 3 (host node, pid 103) was lost (last heard of at step 0): its connection was "
        "closed");
}

static void of_those_that_were_killed_together_each_is_named_once(void **state)
{
    (void)state;
    const struct message leave = {.kind = MESSAGE_LEAVE, .reason = STATUS_IO, .text = "a reason"};
    struct story story;
    open_four(&story);
    story_give(&story, 3, leave, 1000); // of which the launcher knows more
    story_give(&story, 2, leave, 1000);
    kill_worker(&story, 1, "worker 1 was killed");
    kill_worker(&story, 3, "worker 3 was killed");
    kill_worker(&story, 2, "worker 2 was killed");
    expect_written(&story, 3,
                   "worker 2 was killed, and worker 1 was killed, and worker 3 was killed");
}

static void a_job_that_ends_for_a_second_loss_names_the_first(void **state)
{
    (void)state;
    struct story story;
    open_four(&story);
    story.job.min_workers = 3;
    kill_worker(&story, 1, "worker 1 was killed");
    kill_worker(&story, 3, "worker 3 was killed");
    assert_string_equal(story.coordinator.reason,
                        "worker 3 was killed; 2 worker processes are left, and --min-workers is 3; "
                        "before that, worker 1 was killed");
    coordinator_finish(&story.coordinator);
}

/* Its connection was closed before it could be told to come back. */
static void one_that_is_lost_soon_after_another_is_missed_as_soon(void **state)
{
    (void)state;
    struct story story;
    struct generation next;
    open_four(&story);
    deadlines_note_closed(&story.coordinator, 2, 1000);
    deadlines_note_closed(&story.coordinator, 3, 1500);
    coordinator_tick(&story.coordinator, 2000, 0);
    story_call_back(&story, 2000);
    assert_int_equal(generation_next(&story.coordinator, &next), STATUS_OK);
    begin(&story, &next);
    coordinator_tick(&story.coordinator, 2499, 0);
    assert_int_equal(story.coordinator.state, COORDINATOR_GATHERING);
    coordinator_tick(&story.coordinator, 2500, 0);
    assert_int_equal(story.coordinator.state, COORDINATOR_RENEWING);
    assert_non_null(strstr(story.coordinator.reason, "worker 2 did not come back"));
    coordinator_finish(&story.coordinator);
    generation_finish(&next);
}

/* Its connection was closed while the coordinator was away, which it outlasts by another one. */
static void one_that_left_an_absent_coordinator_may_still_come_back_after_a_loss(void **state)
{
    (void)state;
    struct story story;
    struct generation next;
    open_four(&story);
    story.job.outlast = 60;
    deadlines_excuse(&story.coordinator, 30000, 31000);
    deadlines_note_closed(&story.coordinator, 3, 31000);
    kill_worker(&story, 1, "worker 1 was killed");
    story_call_back(&story, 31100);
    assert_int_equal(generation_next(&story.coordinator, &next), STATUS_OK);
    begin(&story, &next);
    for (uint32_t i = 0; i < story.coordinator.membership.worker_count; i++) {
        struct slot *slot = &story.coordinator.membership.workers[i];
        slot->heard_ms = slot->step_since_ms = 31100; // when this generation began
    }
    coordinator_tick(&story.coordinator, 32500, 0);
    assert_int_equal(story.coordinator.state, COORDINATOR_GATHERING);
    coordinator_finish(&story.coordinator);
    generation_finish(&next);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_that_no_sign_of_life_had_told_count_among_those_made_again),
        cmocka_unit_test(the_coordinator_counts_images_before_during_and_after_a_loss),
        cmocka_unit_test(the_rate_is_known_of_a_job_that_is_lost_before_any_sign_of_life),
        cmocka_unit_test(a_loss_that_another_one_overtakes_tells_where_the_job_went_on),
        cmocka_unit_test(no_more_steps_are_lost_than_the_job_has),
        cmocka_unit_test(the_last_good_checkpoint_is_known_after_a_loss),
        cmocka_unit_test(copies_over_slow_links_are_as_far_apart_after_a_loss),
        cmocka_unit_test(a_loss_that_the_end_of_the_job_overtakes_has_no_step_that_it_went_on_from),
        cmocka_unit_test(all_that_are_lost_together_are_named),
        cmocka_unit_test(of_those_that_were_killed_together_each_is_named_once),
        cmocka_unit_test(a_job_that_ends_for_a_second_loss_names_the_first),
        cmocka_unit_test(one_that_is_lost_soon_after_another_is_missed_as_soon),
        cmocka_unit_test(one_that_left_an_absent_coordinator_may_still_come_back_after_a_loss),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
