/* Tests of a job whose worker processes carry several ranks: a slot for each process, books for
 * each rank. */
#include "tests/support/ps-server/coordinator_story.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
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
        cmocka_unit_test(a_job_is_done_when_its_processes_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
