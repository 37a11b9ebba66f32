/* Tests of how the coordinator collects checkpoints. */
#include "common/channel/snapshot.h"
#include "ps-server/coordinator/checkpoint_schedule.h"
#include "ps-server/coordinator/checkpointing.h"
#include "tests/support/ps-server/checkpoint_story.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <string.h>

#define TASKS_MAX 64

static enum checkpoint_task tasks[TASKS_MAX];
static uint32_t task_count;

static void note_task(void *context, enum checkpoint_task task, uint64_t peer,
                      const struct message *message)
{
    (void)context;
    (void)peer;
    assert_true((message != NULL) == (task == CHECKPOINT_STORE || task == CHECKPOINT_READ));
    assert_true(task_count < TASKS_MAX);
    tasks[task_count++] = task;
}

/* A ring of two workers, the peers 1 and 2: 40 steps, a checkpoint every 10, no evaluations before
 * the end. */
static void open_story(struct story *story, struct checkpoint_every every)
{
    task_count = 0;
    checkpoint_story_open(story, every);
    story->coordinator.port.checkpoint = note_task;
    checkpoint_story_train(story);
}

static const struct checkpoint_every every_10 = {CHECKPOINT_STEPS, 10};

/* What was sent to a peer last; its reason. */
static enum status last_collect(const struct story *story, uint64_t peer)
{
    for (uint32_t i = story->transcript.sent_count; i-- > 0;) {
        if (story->transcript.sent[i].peer == peer &&
            story->transcript.sent[i].kind == MESSAGE_COLLECT) {
            return story->transcript.sent[i].reason;
        }
    }
    return STATUS_COUNT; // none was
}

static void send_all(struct story *story, uint64_t step)
{
    checkpoint_story_send(story, 1, step, "params", 10, (struct span){0, 5});
    checkpoint_story_send(story, 2, step, "params", 10, (struct span){5, 5});
    checkpoint_story_send(story, 1, step, "", 1, (struct span){0, 0});
    checkpoint_story_send(story, 2, step, "", 1, (struct span){0, 0});
}

static void a_checkpoint_is_collected_once_all_have_it_and_committed_once_it_is_whole(void **state)
{
    (void)state;
    struct story story;
    open_story(&story, every_10);
    checkpoint_story_offer(&story, 1, 10, STATUS_OK);
    assert_int_equal(last_collect(&story, 1), STATUS_COUNT);
    checkpoint_story_offer(&story, 2, 10, STATUS_OK);
    assert_int_equal(last_collect(&story, 1), STATUS_OK);
    assert_int_equal(last_collect(&story, 2), STATUS_OK);
    send_all(&story, 10);
    const enum checkpoint_task expected[] = {CHECKPOINT_BEGIN, CHECKPOINT_STORE, CHECKPOINT_STORE,
                                             CHECKPOINT_COMMIT};
    assert_int_equal(task_count, 4);
    assert_memory_equal(tasks, expected, sizeof(expected));
    assert_int_equal(story.coordinator.checkpointing.vectors.count, 1);
    checkpointing_note_written(&story.coordinator, 10, STATUS_OK, "", 120);
    assert_string_equal(story.transcript.last_fact, "checkpoint at step 10");
    coordinator_finish(&story.coordinator);
}

static void who_offers_the_next_one_changes_nothing_of_the_one_that_is_collected(void **state)
{
    (void)state;
    struct story story;
    open_story(&story, every_10);
    const struct checkpointing *of = &story.coordinator.checkpointing;
    checkpoint_story_offer(&story, 1, 10, STATUS_OK);
    checkpoint_story_offer(&story, 2, 10, STATUS_OK);
    checkpoint_story_send(&story, 1, 10, "params", 10, (struct span){0, 5});
    checkpoint_story_send(&story, 1, 10, "", 1, (struct span){0, 0});
    checkpoint_story_offer(&story, 1, 20, STATUS_OK);
    assert_int_equal(of->ranks[0].open_period.steps, 20);
    assert_int_equal(of->collected[0].open_period.steps, 10);
    assert_int_equal(of->collected[1].open_period.steps, 10);
    coordinator_finish(&story.coordinator);
}

static void a_job_does_not_wait_for_copies_for_memory_alone(void **state)
{
    (void)state;
    struct story story;
    open_story(&story, (struct checkpoint_every){CHECKPOINT_NEVER, 0});
    story.job.on_loss = ON_LOSS_REDEAL;
    checkpointing_begin_phase(&story.coordinator, 100);
    checkpoint_story_offer(&story, 1, 10, STATUS_OK); // the other one has none
    assert_true(story.coordinator.checkpointing.plan.are_on);
    assert_false(checkpoint_schedule_awaits_last(&story.coordinator, 200));
    coordinator_finish(&story.coordinator);
}

/* Whether a copy for memory alone is asked for so long after training of so many values began. */
static bool has_asked_for_copy(uint64_t value_count, uint64_t after_ms)
{
    struct story story;
    open_story(&story, (struct checkpoint_every){CHECKPOINT_NEVER, 0});
    story.job.on_loss = ON_LOSS_REDEAL;
    story.job.steps = 1000000;
    story.coordinator.layout.value_count = value_count;
    checkpointing_begin_phase(&story.coordinator, 100);
    uint32_t before = story.transcript.sent_count;
    checkpointing_tick(&story.coordinator, 100 + after_ms);
    bool has_asked = story.transcript.sent_count > before;
    coordinator_finish(&story.coordinator);
    return has_asked;
}

static void a_large_model_is_copied_only_after_the_time_that_a_copy_is_worth(void **state)
{
    (void)state;
    assert_true(has_asked_for_copy(60000, 0));
    uint64_t large = 25000000; // 100 MB, at 10 MiB a second
    assert_false(has_asked_for_copy(large, 8000));
    assert_true(has_asked_for_copy(large, 10000));
}

static void the_next_copy_waits_until_the_last_one_is_mirrored(void **state)
{
    (void)state;
    struct story story;
    open_story(&story, (struct checkpoint_every){CHECKPOINT_NEVER, 0});
    story.job.on_loss = ON_LOSS_REDEAL;
    story.job.steps = 1000000;
    checkpointing_begin_phase(&story.coordinator, 100);
    uint32_t before = story.transcript.sent_count;
    story.coordinator.checkpointing.is_mirroring = true;
    checkpointing_tick(&story.coordinator, 60000);
    assert_int_equal(story.transcript.sent_count, before);
    story.coordinator.checkpointing.is_mirroring = false;
    checkpointing_tick(&story.coordinator, 60001);
    assert_true(story.transcript.sent_count > before);
    coordinator_finish(&story.coordinator);
}

/* Whether the next copy is asked for so long after one whose values took `took_ms` to come. */
static bool has_asked_again(uint64_t took_ms, uint64_t after_ms)
{
    struct story story;
    open_story(&story, (struct checkpoint_every){CHECKPOINT_NEVER, 0});
    story.job.on_loss = ON_LOSS_REDEAL;
    story.job.steps = 1000000;
    checkpointing_begin_phase(&story.coordinator, 100);
    checkpoint_story_offer(&story, 1, 10, STATUS_OK);
    checkpoint_story_offer(&story, 2, 10, STATUS_OK);
    uint64_t end_ms = story.coordinator.checkpointing.began_ms + took_ms;
    const struct wire_piece none_left = {.vector = ""};
    for (uint64_t peer = 1; peer <= 2; peer++) {
        story_give(&story, peer,
                   (struct message){.kind = MESSAGE_PIECE, .step = 10, .piece = &none_left},
                   end_ms);
    }
    checkpointing_note_written(&story.coordinator, 10, STATUS_OK, "", end_ms);
    uint32_t before = story.transcript.sent_count;
    checkpointing_tick(&story.coordinator, end_ms + after_ms);
    bool has_asked = story.transcript.sent_count > before;
    coordinator_finish(&story.coordinator);
    return has_asked;
}

static void copies_over_a_slow_link_take_a_hundredth_of_the_time(void **state)
{
    (void)state;
    assert_false(has_asked_again(1, 999));
    assert_true(has_asked_again(1, 1000));
    assert_false(has_asked_again(320, 31999));
    assert_true(has_asked_again(320, 32000));
}

static void where_one_has_no_snapshot_the_others_drop_theirs(void **state)
{
    (void)state;
    struct story story;
    open_story(&story, every_10);
    checkpoint_story_offer(&story, 1, 10, STATUS_OK);
    checkpoint_story_offer(&story, 2, 10, STATUS_INTERRUPTED);
    assert_int_equal(last_collect(&story, 1), STATUS_INTERRUPTED);
    assert_int_equal(task_count, 0);
    // Also of those who come later than the one who lacks it.
    checkpoint_story_offer(&story, 2, 20, STATUS_INTERRUPTED);
    checkpoint_story_offer(&story, 1, 20, STATUS_OK);
    assert_int_equal(task_count, 0);
    checkpoint_story_offer(&story, 1, 30, STATUS_OK);
    checkpoint_story_offer(&story, 2, 30, STATUS_OK);
    assert_int_equal(task_count, 1);
    coordinator_finish(&story.coordinator);
}

static void what_is_offered_meanwhile_waits_for_its_turn(void **state)
{
    (void)state;
    struct story story;
    open_story(&story, every_10);
    checkpoint_story_offer(&story, 1, 10, STATUS_OK);
    checkpoint_story_offer(&story, 2, 10, STATUS_OK);
    send_all(&story, 10);
    checkpoint_story_offer(&story, 1, 20, STATUS_OK);
    checkpoint_story_offer(&story, 2, 20, STATUS_OK);
    assert_int_equal(tasks[task_count - 1], CHECKPOINT_COMMIT);
    checkpointing_note_written(&story.coordinator, 10, STATUS_OK, "", 120);
    assert_int_equal(tasks[task_count - 1], CHECKPOINT_BEGIN);
    assert_int_equal(story.coordinator.checkpointing.step, 20);
    coordinator_finish(&story.coordinator);
}

static void pieces_that_do_not_belong_give_it_up_and_training_goes_on(void **state)
{
    (void)state;
    const struct {
        const char *vector;
        uint64_t total;
        struct span span;
    } bad[] = {
        {"../params", 10, {0, 5}},
        {"params", 11, {0, 5}},
        {"params", 10, {6, 5}},
        {"rank-1/statistics", 5, {0, 5}},
        {"rank-0/statistics", UINT64_C(1) << 30, {0, 5}},
        {"params", 10, {UINT64_MAX - 2, 5}},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct story story;
        open_story(&story, every_10);
        checkpoint_story_offer(&story, 1, 10, STATUS_OK);
        checkpoint_story_offer(&story, 2, 10, STATUS_OK);
        checkpoint_story_send(&story, 1, 10, bad[i].vector, bad[i].total, bad[i].span);
        assert_int_equal(tasks[task_count - 1], CHECKPOINT_ABANDON);
        assert_int_equal(last_collect(&story, 2), STATUS_INTERRUPTED);
        assert_int_equal(story.coordinator.state, COORDINATOR_TRAINING);
        coordinator_finish(&story.coordinator);
    }
}

static void more_pieces_than_there_are_credits_give_it_up(void **state)
{
    (void)state;
    struct story story;
    open_story(&story, every_10);
    checkpoint_story_offer(&story, 1, 10, STATUS_OK);
    checkpoint_story_offer(&story, 2, 10, STATUS_OK);
    for (uint64_t i = 0; i < SNAPSHOT_CREDITS; i++) {
        checkpoint_story_send(&story, 1, 10, "params", 10, (struct span){i, 1});
        assert_int_equal(tasks[task_count - 1], CHECKPOINT_STORE);
    }
    checkpointing_note_stored(&story.coordinator, 1, 10);
    checkpoint_story_send(&story, 1, 10, "params", 10, (struct span){8, 1});
    assert_int_equal(tasks[task_count - 1], CHECKPOINT_STORE);
    checkpoint_story_send(&story, 1, 10, "params", 10, (struct span){9, 1});
    assert_int_equal(tasks[task_count - 1], CHECKPOINT_ABANDON);
    // The next one begins once this one is over.
    checkpoint_story_offer(&story, 1, 20, STATUS_OK);
    checkpoint_story_offer(&story, 2, 20, STATUS_OK);
    assert_int_equal(tasks[task_count - 1], CHECKPOINT_ABANDON);
    checkpointing_note_written(&story.coordinator, 10, STATUS_INTERRUPTED, "", 120);
    assert_int_equal(tasks[task_count - 1], CHECKPOINT_BEGIN);
    coordinator_finish(&story.coordinator);
}

static void a_gap_is_not_committed(void **state)
{
    (void)state;
    struct story story;
    open_story(&story, every_10);
    checkpoint_story_offer(&story, 1, 10, STATUS_OK);
    checkpoint_story_offer(&story, 2, 10, STATUS_OK);
    checkpoint_story_send(&story, 1, 10, "params", 10, (struct span){0, 5});
    checkpoint_story_send(&story, 1, 10, "", 1, (struct span){0, 0});
    checkpoint_story_send(&story, 2, 10, "", 0, (struct span){0, 0});
    assert_int_equal(tasks[task_count - 1], CHECKPOINT_ABANDON);
    coordinator_finish(&story.coordinator);
}

static void a_failure_is_said_once_with_the_last_good_one(void **state)
{
    (void)state;
    struct story story;
    open_story(&story, every_10);
    for (uint64_t step = 10; step <= 30; step += 10) {
        checkpoint_story_offer(&story, 1, step, STATUS_OK);
        checkpoint_story_offer(&story, 2, step, STATUS_OK);
        bool fails = step > 10;
        checkpointing_note_written(&story.coordinator, step, fails ? STATUS_IO : STATUS_OK,
                                   "the disk is full", 120);
        if (step == 20) {
            assert_non_null(strstr(story.transcript.last_error, "the disk is full"));
            assert_non_null(strstr(story.transcript.last_error, "of step 10"));
            story.transcript.last_error[0] = '\0';
        }
    }
    assert_string_equal(story.transcript.last_error, "");
    assert_int_equal(story.coordinator.state, COORDINATOR_TRAINING);
    coordinator_finish(&story.coordinator);
}

static void the_end_of_the_job_waits_for_its_checkpoint_but_not_for_ever(void **state)
{
    (void)state;
    for (int is_written = 0; is_written < 2; is_written++) {
        struct story story;
        open_story(&story, every_10);
        checkpoint_story_offer(&story, 1, 40, STATUS_OK);
        story_done(&story, 1, "last", 130);
        checkpoint_story_offer(&story, 2, 40, STATUS_OK);
        story_done(&story, 2, "last", 130);
        assert_int_equal(story.coordinator.state, COORDINATOR_TRAINING);
        send_all(&story, 40);
        coordinator_tick(&story.coordinator, 140, 0);
        assert_int_equal(story.coordinator.state, COORDINATOR_TRAINING);
        if (is_written) {
            checkpointing_note_written(&story.coordinator, 40, STATUS_OK, "", 150);
        }
        story.coordinator.checkpointing.done_ms = 140;
        for (uint64_t i = 0; i < 2; i++) { // both are heard
            story_give(&story, 1 + i, (struct message){.kind = MESSAGE_HEARTBEAT, .step = 40},
                       is_written ? 160 : 60200);
        }
        coordinator_tick(&story.coordinator, is_written ? 160 : 60200, 0);
        assert_int_equal(story.coordinator.state, COORDINATOR_CLOSING);
        assert_int_equal(story.coordinator.verdict, STATUS_OK);
        coordinator_finish(&story.coordinator);
    }
}

static void its_own_absence_does_not_count_against_the_last_checkpoint(void **state)
{
    (void)state;
    struct story story;
    open_story(&story, every_10);
    for (uint32_t peer = 1; peer <= 2; peer++) {
        checkpoint_story_offer(&story, peer, 40, STATUS_OK);
        story_done(&story, peer, "last", 130);
    }
    send_all(&story, 40);
    coordinator_tick(&story.coordinator, 140, 0);
    for (uint32_t peer = 1; peer <= 2; peer++) { // what was waiting is heard first
        story_give(&story, peer, (struct message){.kind = MESSAGE_HEARTBEAT, .step = 40}, 90000);
    }
    coordinator_tick(&story.coordinator, 90000, 89860);
    assert_int_equal(story.coordinator.state, COORDINATOR_TRAINING);
    checkpointing_note_written(&story.coordinator, 40, STATUS_OK, "", 90010);
    coordinator_tick(&story.coordinator, 90010, 0);
    assert_int_equal(story.coordinator.state, COORDINATOR_CLOSING);
    assert_int_equal(story.coordinator.verdict, STATUS_OK);
    coordinator_finish(&story.coordinator);
}

static void nobody_joins_at_the_end_of_the_job(void **state)
{
    (void)state;
    struct story story;
    open_story(&story, every_10);
    for (uint32_t step = 30; step <= 40; step += 10) {
        checkpoint_story_offer(&story, 1, step, STATUS_OK);
        checkpoint_story_offer(&story, 2, step, STATUS_OK);
        send_all(&story, step);
        checkpointing_note_written(&story.coordinator, step, STATUS_OK, "", 150);
        assert_int_equal(story.coordinator.checkpointing.written, step);
        assert_int_equal(story.coordinator.checkpointing.copied, 30);
    }
    coordinator_finish(&story.coordinator);
}

/* The copy is of a step before, and the last step is made meanwhile. */
static void for_one_that_comes_at_the_end_no_step_is_made_again(void **state)
{
    (void)state;
    static const uint64_t last_made[] = {39, 40};
    for (uint32_t i = 0; i < 2; i++) {
        struct story story;
        open_story(&story, every_10);
        story.coordinator.newcomers.count = 1;
        story.coordinator.newcomers.list[0] = (struct newcomer){.peer = 9, .heard_ms = 150};
        checkpoint_story_offer(&story, 1, 30, STATUS_OK);
        checkpoint_story_offer(&story, 2, 30, STATUS_OK);
        send_all(&story, 30);
        story_give(&story, 1, (struct message){.kind = MESSAGE_HEARTBEAT, .step = last_made[i]},
                   150);
        checkpointing_note_written(&story.coordinator, 30, STATUS_OK, "", 150);
        assert_int_equal(story.coordinator.state,
                         i == 0 ? COORDINATOR_RENEWING : COORDINATOR_TRAINING);
        coordinator_finish(&story.coordinator);
    }
}

static void with_minutes_a_step_ahead_of_everybody_is_named(void **state)
{
    (void)state;
    struct story story;
    open_story(&story, (struct checkpoint_every){CHECKPOINT_MINUTES, 1});
    story.coordinator.checkpointing.plan.total = 1000000;
    story.coordinator.checkpointing.phases.list[0].marks.end = 1000000;
    uint32_t before = story.transcript.sent_count;
    checkpointing_tick(&story.coordinator, 59000);
    assert_int_equal(story.transcript.sent_count, before);
    story_give(&story, 2, (struct message){.kind = MESSAGE_HEARTBEAT, .step = 600}, 60000);
    checkpointing_tick(&story.coordinator, 60031);
    assert_int_equal(story.transcript.sent_count, before + 2);
    assert_int_equal(story_last_kind(&story), MESSAGE_SNAPSHOT);
    uint64_t step = story.coordinator.checkpointing.announced;
    assert_true(step > 600);
    // Who was faster says so; then a later one is named.
    checkpoint_story_offer(&story, 1, step, STATUS_INTERRUPTED);
    checkpointing_tick(&story.coordinator, 61100);
    assert_true(story.coordinator.checkpointing.announced > step);
    coordinator_finish(&story.coordinator);
}

/* Where workers race each other, servers count the steps of all: as many as workers make in the
 * mean. */
static void a_copy_of_a_race_is_named_by_the_mean_and_counts_every_rank_alike(void **state)
{
    (void)state;
    struct story story;
    open_story(&story, (struct checkpoint_every){CHECKPOINT_MINUTES, 1});
    struct checkpointing *of = &story.coordinator.checkpointing;
    struct phase *phase = &of->phases.list[0];
    phase->mode.kind = MODE_PS_ASYNC;
    phase->is_unsynchronised = true;
    phase->marks.end = of->plan.total = 700;
    for (uint64_t i = 0; i < 2; i++) {
        story_give(&story, 1 + i,
                   (struct message){.kind = MESSAGE_HEARTBEAT, .step = i == 0 ? 50 : 650}, 60000);
    }
    checkpointing_tick(&story.coordinator, 60031);
    assert_in_range(of->announced, 351, 649);

    // A quick worker's 650 steps are 350 of the job, and so are a slow one's 50.
    const struct wire_report quick = {
        .steps = 650, .images = 650, .images_dropped = 3, .loss_sum = 1300, .compute_ns = 6500};
    const struct wire_report slow = {.steps = 50, .images = 50, .loss_sum = 50};
    story_give(&story, 1, (struct message){.kind = MESSAGE_REPORT, .step = 50, .report = &slow},
               60040);
    story_give(&story, 2, (struct message){.kind = MESSAGE_REPORT, .step = 650, .report = &quick},
               60040);
    checkpoint_story_offer(&story, 1, 350, STATUS_OK);
    checkpoint_story_offer(&story, 2, 350, STATUS_OK);
    for (uint32_t rank = 0; rank < 2; rank++) {
        const struct results_rank *results = &of->ranks[rank].results;
        assert_int_equal(results->steps, 350);
        assert_int_equal(results->step, 350);
        assert_int_equal(results->images, 350);
        assert_true(results->images_dropped == 0);
        assert_true(results->loss_sum == 350.0 * (1 + rank));
    }
    assert_int_equal(of->ranks[1].results.compute_ns, 6500); // the time that has passed
    coordinator_finish(&story.coordinator);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_checkpoint_is_collected_once_all_have_it_and_committed_once_it_is_whole),
        cmocka_unit_test(who_offers_the_next_one_changes_nothing_of_the_one_that_is_collected),
        cmocka_unit_test(a_job_does_not_wait_for_copies_for_memory_alone),
        cmocka_unit_test(the_next_copy_waits_until_the_last_one_is_mirrored),
        cmocka_unit_test(a_large_model_is_copied_only_after_the_time_that_a_copy_is_worth),
        cmocka_unit_test(copies_over_a_slow_link_take_a_hundredth_of_the_time),
        cmocka_unit_test(where_one_has_no_snapshot_the_others_drop_theirs),
        cmocka_unit_test(what_is_offered_meanwhile_waits_for_its_turn),
        cmocka_unit_test(pieces_that_do_not_belong_give_it_up_and_training_goes_on),
        cmocka_unit_test(more_pieces_than_there_are_credits_give_it_up),
        cmocka_unit_test(a_gap_is_not_committed),
        cmocka_unit_test(a_failure_is_said_once_with_the_last_good_one),
        cmocka_unit_test(the_end_of_the_job_waits_for_its_checkpoint_but_not_for_ever),
        cmocka_unit_test(a_copy_of_a_race_is_named_by_the_mean_and_counts_every_rank_alike),
        cmocka_unit_test(its_own_absence_does_not_count_against_the_last_checkpoint),
        cmocka_unit_test(nobody_joins_at_the_end_of_the_job),
        cmocka_unit_test(for_one_that_comes_at_the_end_no_step_is_made_again),
        cmocka_unit_test(with_minutes_a_step_ahead_of_everybody_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
