/* Tests of the wait for the last checkpoint, where a member is lost meanwhile. */
#include "ps-server/coordinator/checkpoint_schedule.h"
#include "tests/support/ps-server/coordinator_story.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on

static void pass_over(void *context, enum checkpoint_task task, uint64_t peer,
                      const struct message *message)
{
    (void)context, (void)task, (void)peer, (void)message; // written nowhere
}

static void offer_last(struct story *story, uint64_t peer)
{
    const uint64_t images = 40;
    const double loss_sum = 0.5;
    const struct wire_report open = {.steps = 40};
    const struct wire_slices slices = {1, &images, &loss_sum};
    const struct message message = {
        .kind = MESSAGE_SNAPSHOT, .step = 40, .report = &open, .slices = &slices};
    story_give(story, peer, message, 100);
}

/* A job of two servers, the peers 10 and 11. All have made their steps, and the last checkpoint is
 * being collected. */
static void open_end_with_servers(struct story *story, enum on_loss on_loss)
{
    story_open(story, "ps-sync", 2, 2);
    story->job.on_loss = on_loss;
    story->job.min_workers = 1;
    story->job.steps = 40;
    story->job.global_batch = 2;
    story->job.sync_every = 1;
    story->job.eval_every = 1000;
    story->job.checkpoint_every = (struct checkpoint_every){CHECKPOINT_STEPS, 10};
    story->coordinator.port.checkpoint = pass_over;
    for (uint32_t i = 0; i < 2; i++) {
        story_join(story, 10 + i, ROLE_SERVER, i);
        story_ready(story, 10 + i, ROLE_SERVER, "", NULL);
    }
    for (uint32_t i = 0; i < 2; i++) {
        story_join(story, 1 + i, ROLE_WORKER, i);
        story_ready(story, 1 + i, ROLE_WORKER, "first", &story_layout);
    }
    static const uint64_t peers[] = {1, 2, 10, 11};
    for (uint32_t i = 0; i < 4; i++) {
        story_connected(story, peers[i]);
    }
    assert_int_equal(story->coordinator.state, COORDINATOR_TRAINING);
    for (uint32_t i = 0; i < 4; i++) {
        offer_last(story, peers[i]);
    }
    for (uint32_t i = 0; i < 2; i++) {
        story_done(story, 1 + i, "last", 130);
    }
    assert_int_equal(story->coordinator.checkpointing.state, CHECKPOINTING_COLLECTING);
}

static void lose_server_1(struct story *story)
{
    const struct message message = {
        .kind = MESSAGE_LEAVE, .reason = STATUS_IO, .text = "it has a reason"};
    story_give(story, 11, message, 150);
}

static void a_server_lost_before_its_part_of_the_last_one_has_its_steps_made_again(void **state)
{
    (void)state;
    struct story story;
    open_end_with_servers(&story, ON_LOSS_REDEAL);
    lose_server_1(&story);
    assert_int_equal(story.coordinator.verdict, STATUS_AGAIN);
    coordinator_finish(&story.coordinator);
}

static void where_nobody_can_make_them_again_the_job_ends_at_once_and_says_so(void **state)
{
    (void)state;
    struct story story;
    open_end_with_servers(&story, ON_LOSS_FAIL);
    lose_server_1(&story);
    assert_int_equal(story.coordinator.state, COORDINATOR_CLOSING);
    assert_int_equal(story.coordinator.verdict, STATUS_OK);
    assert_true(story.coordinator.checkpointing.is_overdue);
    coordinator_finish(&story.coordinator);
}

static void a_server_lost_after_its_part_of_the_last_one_is_not_missed(void **state)
{
    (void)state;
    struct story story;
    open_end_with_servers(&story, ON_LOSS_REDEAL);
    const struct wire_piece none_left = {.vector = ""};
    story_give(&story, 11, (struct message){.kind = MESSAGE_PIECE, .step = 40, .piece = &none_left},
               140);
    lose_server_1(&story);
    assert_int_equal(story.coordinator.state, COORDINATOR_TRAINING); // it waits for the others
    assert_false(story.coordinator.checkpointing.is_overdue);
    coordinator_finish(&story.coordinator);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_server_lost_before_its_part_of_the_last_one_has_its_steps_made_again),
        cmocka_unit_test(where_nobody_can_make_them_again_the_job_ends_at_once_and_says_so),
        cmocka_unit_test(a_server_lost_after_its_part_of_the_last_one_is_not_missed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
