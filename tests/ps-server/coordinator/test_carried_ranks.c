/* Tests of a job whose worker processes carry several ranks: a slot for each process, books for
 * each rank. */
#include "tests/support/ps-server/coordinator_story.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdio.h>
#include <string.h>

#define RANKS     5
#define PROCESSES 2 // ranks 0 to 2, and 3 and 4

static void open_gathering(struct story *story)
{
    story_open(story, "ring", RANKS, 0);
    const struct coordinator_port port = story->coordinator.port;
    coordinator_finish(&story->coordinator);
    story->job.processes = PROCESSES;
    assert_int_equal(coordinator_init(&story->coordinator, &story->job, "the job", &port, 0),
                     STATUS_OK);
}

/* The peers are 1 and 2. */
static void open_training(struct story *story)
{
    open_gathering(story);
    for (uint32_t i = 0; i < PROCESSES; i++) {
        story_join(story, 1 + i, ROLE_WORKER, i);
    }
    for (uint32_t i = 0; i < PROCESSES; i++) {
        story_ready(story, 1 + i, ROLE_WORKER, "aa", &story_layout);
    }
    for (uint32_t i = 0; i < PROCESSES; i++) {
        story_connected(story, 1 + i);
    }
    assert_int_equal(story->coordinator.state, COORDINATOR_TRAINING);
}

static void a_job_starts_with_its_processes_and_has_no_place_for_more(void **state)
{
    (void)state;
    struct story story;
    open_gathering(&story);
    story_join(&story, 1, ROLE_WORKER, 0);
    story_join(&story, 3, ROLE_WORKER, PROCESSES);
    assert_int_equal(story_last_kind(&story), MESSAGE_REFUSE);
    assert_non_null(strstr(story.transcript.last_error, "this job has 2: 0 to 1"));
    assert_non_null(strstr(story.transcript.last_error, "--processes"));
    coordinator_finish(&story.coordinator);
    open_training(&story);
    coordinator_finish(&story.coordinator);
}

static void a_period_closes_when_all_ranks_have_closed_it(void **state)
{
    (void)state;
    struct story story;
    open_training(&story);
    const struct wire_report report = {.steps = 5, .images = 10, .closes_period = true};
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        assert_int_equal(story.transcript.period_count, 0);
        const struct message message = {.kind = MESSAGE_REPORT, .rank = rank, .report = &report};
        story_give(&story, rank < 3 ? 1 : 2, message, 100);
    }
    assert_int_equal(story.transcript.period_count, 1);
    assert_int_equal(story.coordinator.results.periods[0].images, 10 * RANKS);
    coordinator_finish(&story.coordinator);
}

static void intervals_are_booked_by_rank(void **state)
{
    (void)state;
    struct story story;
    open_training(&story);
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        const struct wire_report report = {
            .steps = 1, .images = 1 + rank, .loss_sum = rank, .total_ns = 1000};
        const struct message message = {
            .kind = MESSAGE_REPORT, .rank = rank, .step = 1, .report = &report};
        story_give(&story, rank < 3 ? 1 : 2, message, 100);
    }
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        assert_int_equal(story.coordinator.results.ranks[rank].images, 1 + rank);
    }
    coordinator_finish(&story.coordinator);
}

static void what_a_worker_says_of_a_rank_that_it_does_not_carry_is_dropped_by_name(void **state)
{
    (void)state;
    struct story story;
    open_training(&story);
    const struct wire_report report = {.steps = 5, .images = 10, .closes_period = true};
    const struct message message = {.kind = MESSAGE_REPORT, .rank = 3, .report = &report};
    story_give(&story, 1, message, 100);
    assert_int_equal(story.coordinator.results.period_count, 0);
    assert_non_null(
        strstr(story.transcript.last_error, "worker 0 (host node) sent REPORT of rank 3"));
    assert_non_null(strstr(story.transcript.last_error, "ranks 0 to 2"));
    const double one = 1;
    const struct wire_sum sum = {0, 1, &one};
    story_give(&story, 2, (struct message){.kind = MESSAGE_SUM, .rank = 2, .sum = &sum}, 100);
    assert_non_null(strstr(story.transcript.last_error, "worker 1 (host node) sent SUM of rank 2"));
    assert_int_equal(story.coordinator.sums.arrived, 0);
    assert_int_equal(story.coordinator.state, COORDINATOR_TRAINING);
    coordinator_finish(&story.coordinator);
}

/* Doubles whose sum depends on their order; they come in another one. */
static void a_sum_is_taken_in_the_order_of_ranks(void **state)
{
    (void)state;
    static const double values[RANKS] = {1, 0x1p-53, 0x1p-53, 0x1p-53, 0x1p-52};
    static const uint32_t order[RANKS] = {4, 1, 3, 0, 2};
    struct story story;
    open_training(&story);
    for (uint32_t i = 0; i < RANKS; i++) {
        uint32_t sent = story.transcript.sent_count, rank = order[i];
        const struct wire_sum sum = {0, 1, &values[rank]};
        story_give(&story, rank < 3 ? 1 : 2,
                   (struct message){.kind = MESSAGE_SUM, .rank = rank, .sum = &sum}, 100);
        // The answer goes to each process once.
        assert_int_equal(story.transcript.sent_count - sent, i + 1 == RANKS ? PROCESSES : 0);
    }
    double expected = (((values[0] + values[1]) + values[2]) + values[3]) + values[4];
    assert_true(expected != values[0] + (values[1] + values[2] + values[3] + values[4]));
    assert_true(story.coordinator.sums.values[0] == expected);
    coordinator_finish(&story.coordinator);
}

static enum checkpoint_task last_task;

static void note_task(void *context, enum checkpoint_task task, uint64_t peer,
                      const struct message *message)
{
    (void)context;
    (void)peer;
    (void)message;
    last_task = task;
}

/* Peers 1 and 2, and a checkpoint that both are to offer at step 10. */
static void open_with_checkpoints(struct story *story)
{
    open_gathering(story);
    story->job.steps = 40;
    story->job.global_batch = RANKS;
    story->job.sync_every = 1;
    story->job.eval_every = 1000;
    story->job.checkpoint_every = (struct checkpoint_every){CHECKPOINT_STEPS, 10};
    snprintf(story->job.order, sizeof(story->job.order), "free");
    snprintf(story->job.switches, sizeof(story->job.switches), "none");
    story->coordinator.port.checkpoint = note_task;
    last_task = CHECKPOINT_READ;
    for (uint32_t i = 0; i < PROCESSES; i++) {
        story_join(story, 1 + i, ROLE_WORKER, i);
    }
    for (uint32_t i = 0; i < PROCESSES; i++) {
        story_ready(story, 1 + i, ROLE_WORKER, "aa", &story_layout);
    }
    for (uint32_t i = 0; i < PROCESSES; i++) {
        story_connected(story, 1 + i);
    }
}

static const uint64_t open_images[RANKS] = {10, 11, 12, 13, 14};
static const double open_loss_sums[RANKS] = {0.0, 0.1, 0.2, 0.3, 0.4};

/* Offers step 10 with what is open of so many ranks from `first` on. */
static void offer(struct story *story, uint64_t peer, uint32_t first, uint32_t count)
{
    const struct wire_report report = {.steps = 10, .total_ns = 100 * peer};
    const struct wire_slices slices = {count, open_images + first, open_loss_sums + first};
    story_give(story, peer,
               (struct message){.kind = MESSAGE_SNAPSHOT,
                                .step = 10,
                                .report = &report,
                                .slices = count > 0 ? &slices : NULL},
               100);
}

static void a_snapshot_says_what_each_carried_rank_has_not_reported(void **state)
{
    (void)state;
    struct story story;
    open_with_checkpoints(&story);
    story.coordinator.results.ranks[2].images = 77; // as it is now, and not later
    offer(&story, 1, 0, 3);
    story.coordinator.results.ranks[2].images = 99;
    offer(&story, 2, 3, 2);
    assert_int_equal(last_task, CHECKPOINT_BEGIN);
    const struct checkpoint_rank *ranks = story.coordinator.checkpointing.ranks;
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        assert_int_equal(ranks[rank].open_period.images, open_images[rank]);
        assert_true(ranks[rank].open_period.loss_sum == open_loss_sums[rank]);
        assert_int_equal(ranks[rank].open_period.total_ns, rank < 3 ? 100 : 200);
    }
    assert_int_equal(ranks[2].results.images, 77);
    coordinator_finish(&story.coordinator);
}

static void a_snapshot_of_more_or_fewer_ranks_than_are_carried_makes_no_checkpoint(void **state)
{
    (void)state;
    static const uint32_t counts[] = {0, 2, 4};
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        struct story story;
        open_with_checkpoints(&story);
        offer(&story, 2, 3, 2);
        offer(&story, 1, 0, counts[i]);
        assert_int_equal(last_task, CHECKPOINT_READ); // none
        assert_int_equal(story_last_kind(&story), MESSAGE_COLLECT);
        assert_non_null(strstr(story.transcript.last_error, "worker 0 (host node)"));
        assert_non_null(strstr(story.transcript.last_error, "ranks 0 to 2"));
        assert_int_equal(story.coordinator.state, COORDINATOR_TRAINING);
        coordinator_finish(&story.coordinator);
    }
}

static void a_worker_sends_pieces_of_the_ranks_that_it_carries_alone(void **state)
{
    (void)state;
    static const float values[4];
    static const struct {
        const char *vector;
        enum checkpoint_task task;
    } cases[] = {
        {"rank-3/statistics", CHECKPOINT_STORE},
        {"rank-4/statistics", CHECKPOINT_STORE},
        {"rank-2/statistics", CHECKPOINT_ABANDON},
        {"rank-5/statistics", CHECKPOINT_ABANDON},
        {"rank-4294967295/statistics", CHECKPOINT_ABANDON},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct story story;
        open_with_checkpoints(&story);
        offer(&story, 1, 0, 3);
        offer(&story, 2, 3, 2);
        const struct wire_piece piece = {.vector = cases[i].vector, .total = 4};
        story_give(&story, 2,
                   (struct message){.kind = MESSAGE_PIECE,
                                    .step = 10,
                                    .piece = &piece,
                                    .span = {0, 4},
                                    .values = values},
                   110);
        assert_int_equal(last_task, cases[i].task);
        coordinator_finish(&story.coordinator);
    }
}

/* The message that was sent to whoever joined last, with copies of what is borrowed. */
static struct {
    struct wire_report report;
    uint64_t images[RANKS];
    double loss_sums[RANKS];
    uint32_t count;
    uint64_t step;
} welcomed;

static void note_welcome(void *context, uint64_t peer, const struct message *message)
{
    (void)context;
    (void)peer;
    assert_int_equal(message->kind, MESSAGE_WELCOME);
    welcomed.step = message->step;
    welcomed.report = *message->report;
    welcomed.count = message->slices->count;
    assert_true(welcomed.count <= RANKS);
    memcpy(welcomed.images, message->slices->images, welcomed.count * sizeof(uint64_t));
    memcpy(welcomed.loss_sums, message->slices->loss_sums, welcomed.count * sizeof(double));
}

static void who_joins_a_resumed_job_gets_what_is_open_of_each_rank_that_it_carries_now(void **state)
{
    (void)state;
    struct story story;
    // Three processes wrote the checkpoint: of ranks 0 and 1, 2 and 3, and 4.
    static const struct wire_report open[RANKS] = {
        {.steps = 4, .total_ns = 5}, {.steps = 4, .total_ns = 5}, {.steps = 4, .total_ns = 9},
        {.steps = 4, .total_ns = 9}, {.steps = 4, .total_ns = 7},
    };
    const struct coordinator_resume resume = {.step = 10,
                                              .open_period = open,
                                              .open_images = open_images,
                                              .open_loss_sums = open_loss_sums};
    open_gathering(&story);
    story.coordinator.resume = &resume;
    story.coordinator.port.send = note_welcome;
    story_join(&story, 2, ROLE_WORKER, 1);
    assert_int_equal(welcomed.step, 10);
    assert_int_equal(welcomed.count, 2);
    assert_memory_equal(welcomed.images, open_images + 3, 2 * sizeof(uint64_t));
    assert_memory_equal(welcomed.loss_sums, open_loss_sums + 3, 2 * sizeof(double));
    assert_int_equal(welcomed.report.total_ns, 9);
    story_join(&story, 1, ROLE_WORKER, 0);
    assert_int_equal(welcomed.count, 3);
    assert_memory_equal(welcomed.images, open_images, 3 * sizeof(uint64_t));
    assert_int_equal(welcomed.report.steps, 4);
    assert_int_equal(welcomed.report.total_ns, 9); // of the slowest
    coordinator_finish(&story.coordinator);
}

static void a_job_is_done_when_its_processes_are(void **state)
{
    (void)state;
    struct story story;
    open_training(&story);
    story_done(&story, 1, "bb", 200);
    assert_int_equal(story.coordinator.state, COORDINATOR_TRAINING);
    story_done(&story, 2, "bb", 200);
    assert_int_equal(story.coordinator.state, COORDINATOR_CLOSING);
    assert_int_equal(story.coordinator.verdict, STATUS_OK);
    assert_int_equal(story.coordinator.results.ranks[3].warm_images, 100);
    coordinator_finish(&story.coordinator);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_starts_with_its_processes_and_has_no_place_for_more),
        cmocka_unit_test(a_period_closes_when_all_ranks_have_closed_it),
        cmocka_unit_test(intervals_are_booked_by_rank),
        cmocka_unit_test(what_a_worker_says_of_a_rank_that_it_does_not_carry_is_dropped_by_name),
        cmocka_unit_test(a_sum_is_taken_in_the_order_of_ranks),
        cmocka_unit_test(a_snapshot_says_what_each_carried_rank_has_not_reported),
        cmocka_unit_test(a_snapshot_of_more_or_fewer_ranks_than_are_carried_makes_no_checkpoint),
        cmocka_unit_test(a_worker_sends_pieces_of_the_ranks_that_it_carries_alone),
        cmocka_unit_test(
            who_joins_a_resumed_job_gets_what_is_open_of_each_rank_that_it_carries_now),
        cmocka_unit_test(a_job_is_done_when_its_processes_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
