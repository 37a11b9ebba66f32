/* Tests of what the coordinator shows of a job, driven by a job of two workers in virtual time. */
#include "ps-server/live/live_fill.h"
#include "tests/support/ps-server/coordinator_story.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <math.h>
#include <string.h>

/* A report of two steps of 8 images each. */
static void report(struct story *story, struct live_state *live, uint32_t rank, uint64_t step,
                   uint64_t compute_ns)
{
    const struct wire_report report = {.steps = 2,
                                       .images = 16,
                                       .loss_sum = 24,
                                       .compute_ns = compute_ns,
                                       .exchange_wait_ns = 2000000,
                                       .total_ns = compute_ns + 2000000,
                                       .bytes_sent = 100,
                                       .staleness_sum = 6,
                                       .rate = 0.25};
    const struct message message = {
        .kind = MESSAGE_REPORT, .rank = rank, .step = step, .report = &report};
    story_give(story, 1 + rank, message, 1000 * step);
    live_fill_report(live, rank, &message);
}

static void open_both(struct story *story, struct live_state *live)
{
    story_open_training(story, 2);
    story->job.global_batch = 16;
    story->job.processes = 2;
    assert_int_equal(live_state_init(live, 2), STATUS_OK);
    live_fill_job(live, &story->job);
    live_fill_start(live, &story->coordinator);
}

static void close_both(struct story *story, struct live_state *live)
{
    coordinator_finish(&story->coordinator);
    live_state_finish(live);
}

static void a_ring_is_described_as_one(void **state)
{
    static struct story story;
    struct live_state live;
    (void)state;
    open_both(&story, &live);
    assert_string_equal(live.mode, "ring");
    assert_string_equal(live.outcome, "training");
    assert_int_equal(live.shape, LIVE_RING);
    assert_int_equal(live.total_steps,
                     job_total_steps(&story.job, story.coordinator.train_samples));
    close_both(&story, &live);
}

static void reports_become_values_of_a_rank_and_of_the_job(void **state)
{
    static struct story story;
    struct live_state live;
    (void)state;
    open_both(&story, &live);
    report(&story, &live, 0, 2, 10000000);
    live_fill_now(&live, &story.coordinator, 3000);
    assert_int_equal(live.step, 0); // rank 1 has said nothing
    assert_int_equal(live.progress.count, 0);
    report(&story, &live, 1, 2, 30000000);
    live_fill_now(&live, &story.coordinator, 4000);
    live_fill_now(&live, &story.coordinator, 4100); // nothing is new
    assert_int_equal(live.step, 2);
    assert_int_equal(live.progress.count, 1);
    assert_float_equal(live.progress.points[0].value[0], 1.5, 1e-9);
    assert_float_equal(live.loss, 1.5, 1e-9);
    assert_float_equal(live.ranks[1].compute_ms, 15, 1e-9);
    assert_float_equal(live.ranks[1].exchange_wait_ms, 1, 1e-9);
    assert_true(fabs(live.ranks[0].images_per_second - 16 / 0.012) < 1e-6);
    assert_int_equal(live.slowest, 1);
    assert_int_equal(live.ranks[0].bytes_sent, 100);
    assert_int_equal(live.staleness.counts[3], 4); // four steps, 3 updates old in the mean
    close_both(&story, &live);
}

static void a_job_that_goes_on_earlier_says_so_and_drops_what_is_behind(void **state)
{
    static struct story story;
    struct live_state live;
    const struct coordinator_resume resume = {.step = 2};
    (void)state;
    open_both(&story, &live);
    for (uint64_t step = 2; step <= 6; step += 2) {
        report(&story, &live, 0, step, 10000000);
        report(&story, &live, 1, step, 10000000);
        live_fill_now(&live, &story.coordinator, 1000 * step);
    }
    assert_int_equal(live.progress.count, 3);
    story.coordinator.resume = &resume;
    live_fill_go_on(&live, &story.coordinator);
    story.coordinator.resume = NULL;
    assert_int_equal(live.step, 2);
    assert_int_equal(live.progress.count, 1);
    assert_string_equal(live.events[live.event_count - 1].kind, "on");
    close_both(&story, &live);
}

static void losses_and_checkpoints_become_events_once(void **state)
{
    static struct story story;
    struct live_state live;
    (void)state;
    open_both(&story, &live);
    story.coordinator.workers_lost = 1;
    story.coordinator.checkpointing.written = 40;
    for (uint64_t i = 0; i < 3; i++) {
        live_fill_now(&live, &story.coordinator, 5000 + i);
    }
    assert_int_equal(live.workers_lost, 1);
    assert_int_equal(live.checkpoints, 1);
    assert_int_equal(live.checkpoint_step, 40);
    uint32_t lost = 0, checkpoints = 0;
    for (uint32_t i = 0; i < live.event_count; i++) {
        lost += strcmp(live.events[i].kind, "lost") == 0;
        checkpoints += strcmp(live.events[i].kind, "checkpoint") == 0;
    }
    assert_int_equal(lost, 1);
    assert_int_equal(checkpoints, 1);
    close_both(&story, &live);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_ring_is_described_as_one),
        cmocka_unit_test(reports_become_values_of_a_rank_and_of_the_job),
        cmocka_unit_test(a_job_that_goes_on_earlier_says_so_and_drops_what_is_behind),
        cmocka_unit_test(losses_and_checkpoints_become_events_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
