/* What is written down of a loss. */
#include "ps-server/coordinator/generation.h"
#include "tests/support/ps-server/coordinator_story.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on

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
    coordinator_finish(&story.coordinator);
    generation_finish(&next);
    generation_finish(&second);
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

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_that_no_sign_of_life_had_told_count_among_those_made_again),
        cmocka_unit_test(a_loss_that_another_one_overtakes_tells_where_the_job_went_on),
        cmocka_unit_test(no_more_steps_are_lost_than_the_job_has),
        cmocka_unit_test(the_last_good_checkpoint_is_known_after_a_loss),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
