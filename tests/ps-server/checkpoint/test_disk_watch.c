/* Tests of how a disk is judged that takes nothing. */
#include "ps-server/checkpoint/disk_watch.h"
#include "ps-server/coordinator/checkpoint_schedule.h"
#include "ps-server/coordinator/generation.h"
#include "tests/support/ps-server/checkpoint_story.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <string.h>

#define FOLDER  "/runs/a/checkpoint"
#define WARN_MS UINT64_C(10000)
#define HANG_MS UINT64_C(60000)
#define TURN_MS 100 // between two looks

static enum checkpoint_task last_task;
static uint32_t task_count;

static void note_task(void *context, enum checkpoint_task task, uint64_t peer,
                      const struct message *message)
{
    (void)context, (void)peer, (void)message;
    last_task = task;
    task_count++;
}

/* A ring of two workers, the peers 1 and 2: 40 steps, a checkpoint every 10. */
static void open_story(struct story *story, enum on_loss on_loss)
{
    task_count = 0;
    checkpoint_story_open(story, (struct checkpoint_every){CHECKPOINT_STEPS, 10});
    story->job.on_loss = on_loss;
    story->job.stall_warn = WARN_MS / 1000.0;
    story->job.stall_fail = 2 * HANG_MS / 1000.0;
    story->coordinator.port.checkpoint = note_task;
    checkpoint_story_train(story);
}

static void offer(struct story *story, uint64_t step)
{
    for (uint64_t peer = 1; peer <= 2; peer++) {
        checkpoint_story_offer(story, peer, step, STATUS_OK);
    }
}

static void send_all(struct story *story, uint64_t step)
{
    for (uint64_t peer = 1; peer <= 2; peer++) {
        checkpoint_story_send(story, peer, step, "params", 10, (struct span){5 * (peer - 1), 5});
        checkpoint_story_send(story, peer, step, "", 1, (struct span){0, 0});
    }
}

static bool has_said(const struct story *story, const char *words)
{
    return strstr(story->transcript.last_error, words) != NULL;
}

/* Looks as often as a coordinator does that is not stopped meanwhile. */
static void look(struct disk_watch *watch, struct story *story, bool has_moved, uint64_t now_ms)
{
    for (uint64_t at_ms = watch->idle.attention.looked_ms; at_ms > 0 && at_ms + TURN_MS < now_ms;) {
        at_ms += TURN_MS;
        disk_watch_look(watch, &story->coordinator, FOLDER, has_moved, at_ms);
    }
    disk_watch_look(watch, &story->coordinator, FOLDER, has_moved, now_ms);
}

/* The disk has the checkpoint of step 10 from 120 ms on, and takes nothing of it for so long. */
static struct disk_watch hang(struct story *story, uint64_t idle_ms)
{
    struct disk_watch watch = {.idle = {.done = 0}};
    offer(story, 10);
    send_all(story, 10);
    look(&watch, story, false, 120);
    look(&watch, story, false, 120 + idle_ms);
    return watch;
}

static void one_that_takes_long_is_named_once(void **state)
{
    (void)state;
    struct story story;
    open_story(&story, ON_LOSS_FAIL);
    struct disk_watch watch = hang(&story, WARN_MS - 1);
    assert_string_equal(story.transcript.last_error, "");
    look(&watch, &story, false, 120 + WARN_MS);
    assert_true(has_said(&story, FOLDER) && has_said(&story, "step 10"));
    story.transcript.last_error[0] = '\0';
    look(&watch, &story, false, 120 + 2 * WARN_MS);
    assert_string_equal(story.transcript.last_error, "");
    // It takes something: the time begins anew.
    look(&watch, &story, true, HANG_MS);
    look(&watch, &story, false, HANG_MS + WARN_MS - 1);
    assert_string_equal(story.transcript.last_error, "");
    coordinator_finish(&story.coordinator);
}

/* As a machine does that was suspended: what the disk did meanwhile is told at the next look. */
static void time_in_which_the_coordinator_stood_still_does_not_count(void **state)
{
    (void)state;
    struct story story;
    open_story(&story, ON_LOSS_FAIL);
    struct disk_watch watch = hang(&story, 0);
    disk_watch_look(&watch, &story.coordinator, FOLDER, false, 120 + 2 * HANG_MS);
    assert_string_equal(story.transcript.last_error, "");
    look(&watch, &story, false, 120 + 3 * HANG_MS);
    assert_true(has_said(&story, "hangs"));
    coordinator_finish(&story.coordinator);
}

static void members_that_send_nothing_are_not_its_fault(void **state)
{
    (void)state;
    struct story story;
    struct disk_watch watch = {.idle = {.done = 0}};
    open_story(&story, ON_LOSS_FAIL);
    offer(&story, 10);
    look(&watch, &story, false, 120);
    look(&watch, &story, false, 120 + HANG_MS);
    assert_string_equal(story.transcript.last_error, "");
    coordinator_finish(&story.coordinator);
}

static void one_that_hangs_gets_nothing_more_until_it_is_free_again(void **state)
{
    (void)state;
    struct story story;
    open_story(&story, ON_LOSS_FAIL);
    hang(&story, HANG_MS);
    assert_true(has_said(&story, "hangs") && has_said(&story, FOLDER) &&
                has_said(&story, "there is none so far"));
    assert_int_equal(last_task, CHECKPOINT_COMMIT); // which may be done still
    uint32_t before = task_count;
    offer(&story, 20);
    assert_int_equal(task_count, before);
    checkpointing_note_good(&story.coordinator, 10);
    assert_string_equal(story.transcript.last_fact, "checkpoint at step 10");
    checkpointing_note_free(&story.coordinator, HANG_MS);
    offer(&story, 30);
    assert_int_equal(last_task, CHECKPOINT_BEGIN);
    assert_true(story.coordinator.checkpointing.is_written);
    coordinator_finish(&story.coordinator);
}

static void meanwhile_memory_has_what_a_job_can_go_on_from(void **state)
{
    (void)state;
    struct story story;
    open_story(&story, ON_LOSS_REDEAL);
    hang(&story, HANG_MS);
    offer(&story, 20);
    assert_int_equal(last_task, CHECKPOINT_BEGIN);
    assert_false(story.coordinator.checkpointing.is_written);
    coordinator_finish(&story.coordinator);
}

static void what_is_half_with_it_is_given_up(void **state)
{
    (void)state;
    struct story story;
    struct disk_watch watch = {.idle = {.done = 0}};
    static const float values[5];
    const struct wire_piece piece = {.vector = "params", .total = 10};
    open_story(&story, ON_LOSS_FAIL);
    offer(&story, 10);
    story_give(
        &story, 1,
        (struct message){
            .kind = MESSAGE_PIECE, .step = 10, .piece = &piece, .span = {0, 5}, .values = values},
        110);
    look(&watch, &story, false, 120);
    look(&watch, &story, false, 120 + HANG_MS);
    assert_int_equal(last_task, CHECKPOINT_ABANDON);
    coordinator_finish(&story.coordinator);
}

static void the_end_of_the_job_does_not_wait_for_it(void **state)
{
    (void)state;
    struct story story;
    open_story(&story, ON_LOSS_FAIL);
    hang(&story, HANG_MS);
    assert_true(checkpoint_schedule_holds_up(&story.coordinator, 40));
    assert_false(checkpoint_schedule_holds_up(&story.coordinator, 39));
    offer(&story, 40);
    for (uint64_t peer = 1; peer <= 2; peer++) {
        story_done(&story, peer, "last", HANG_MS + 200);
    }
    assert_int_equal(story.coordinator.state, COORDINATOR_TRAINING);
    coordinator_tick(&story.coordinator, HANG_MS + 200, 0);
    assert_int_equal(story.coordinator.state, COORDINATOR_CLOSING);
    assert_int_equal(story.coordinator.verdict, STATUS_OK);
    assert_true(has_said(&story, "without its last checkpoint") && has_said(&story, "hangs"));
    coordinator_finish(&story.coordinator);
}

static void the_last_one_waits_for_what_a_generation_before_has_left(void **state)
{
    (void)state;
    struct story story;
    open_story(&story, ON_LOSS_REDEAL);
    story.coordinator.checkpointing.has_rest = true;
    offer(&story, 40);
    assert_int_equal(task_count, 0);
    checkpointing_note_free(&story.coordinator, HANG_MS);
    assert_int_equal(last_task, CHECKPOINT_BEGIN);
    assert_true(story.coordinator.checkpointing.is_written);
    coordinator_finish(&story.coordinator);
}

/* Of which this coordinator knows no step. */
static void what_a_generation_before_has_left_is_no_checkpoint_of_step_0(void **state)
{
    (void)state;
    struct story story;
    struct disk_watch watch = {.idle = {.done = 0}};
    open_story(&story, ON_LOSS_REDEAL);
    story.coordinator.checkpointing.has_rest = true;
    look(&watch, &story, false, 120);
    look(&watch, &story, false, 120 + WARN_MS);
    assert_true(has_said(&story, "nothing of an earlier checkpoint"));
    look(&watch, &story, false, 120 + HANG_MS);
    assert_true(has_said(&story, "the disk hangs") && !has_said(&story, "step 0"));
    coordinator_finish(&story.coordinator);
}

/* What server.c does when worker 1 is lost and the disk has something left. */
static void lose_one(struct story *story, struct generation *ret_next)
{
    const struct coordinator_port port = story->coordinator.port;
    const struct sender lost = membership_member(&story->coordinator.membership, ROLE_WORKER, 1);
    generation_lose(&story->coordinator, STATUS_UNREACHABLE, "it was lost", &lost, HANG_MS + 200);
    assert_int_equal(generation_next(&story->coordinator, ret_next), STATUS_OK);
    coordinator_finish(&story->coordinator);
    story->job.processes = ret_next->process_count;
    assert_int_equal(coordinator_init(&story->coordinator, &story->job, "the job", &port, 2),
                     STATUS_OK);
    generation_begin(ret_next, &story->coordinator);
    story->coordinator.checkpointing.has_rest = true;
    story->transcript.last_error[0] = '\0';
}

static void one_that_hangs_is_named_once_whoever_is_lost_meanwhile(void **state)
{
    (void)state;
    for (uint32_t hangs = 0; hangs < 2; hangs++) {
        struct story story;
        struct generation next;
        open_story(&story, ON_LOSS_REDEAL);
        story.job.min_workers = 1;
        struct disk_watch watch = hang(&story, WARN_MS);
        if (hangs != 0) {
            look(&watch, &story, false, 120 + HANG_MS);
        }
        lose_one(&story, &next);
        look(&watch, &story, false, HANG_MS - 100);
        assert_string_equal(story.transcript.last_error, "");
        look(&watch, &story, false, 3 * HANG_MS);
        assert_int_equal(has_said(&story, "the disk hangs"), hangs == 0); // its time goes on
        checkpointing_note_free(&story.coordinator, HANG_MS);
        assert_string_equal(story.transcript.last_fact, "the disk takes checkpoints again");
        coordinator_finish(&story.coordinator);
        generation_finish(&next);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_that_takes_long_is_named_once),
        cmocka_unit_test(time_in_which_the_coordinator_stood_still_does_not_count),
        cmocka_unit_test(members_that_send_nothing_are_not_its_fault),
        cmocka_unit_test(one_that_hangs_gets_nothing_more_until_it_is_free_again),
        cmocka_unit_test(meanwhile_memory_has_what_a_job_can_go_on_from),
        cmocka_unit_test(what_is_half_with_it_is_given_up),
        cmocka_unit_test(the_end_of_the_job_does_not_wait_for_it),
        cmocka_unit_test(the_last_one_waits_for_what_a_generation_before_has_left),
        cmocka_unit_test(what_a_generation_before_has_left_is_no_checkpoint_of_step_0),
        cmocka_unit_test(one_that_hangs_is_named_once_whoever_is_lost_meanwhile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
