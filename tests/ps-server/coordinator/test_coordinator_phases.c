/* Stories of phases: --switch, and a target that ends a job. */
#include "tests/support/ps-server/coordinator_story.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdio.h>
#include <string.h>

static void passed(struct story *story, uint64_t peer, uint32_t phase)
{
    const struct wire_passed told = {.phase = phase};
    story_give(story, peer, (struct message){.kind = MESSAGE_PASSED, .passed = &told}, 40);
}

static void the_next_phase_begins_when_all_have_passed_and_are_connected(void **state)
{
    (void)state;
    struct story story;
    story_open_training(&story, 2);
    uint32_t sent = story.transcript.sent_count;
    passed(&story, 1, 2); // not the next one
    passed(&story, 1, 1);
    passed(&story, 1, 1); // said twice
    assert_int_equal(story.coordinator.state, COORDINATOR_TRAINING);
    passed(&story, 2, 1);
    assert_int_equal(story.coordinator.state, COORDINATOR_CONNECTING);
    assert_int_equal(story.coordinator.phase_index, 1);
    assert_int_equal(story.transcript.sent_count, sent + 2);
    assert_int_equal(story_last_kind(&story), MESSAGE_START);
    story_connected(&story, 2);
    assert_int_equal(story.coordinator.state, COORDINATOR_CONNECTING);
    story_connected(&story, 1);
    assert_int_equal(story.coordinator.state, COORDINATOR_TRAINING);
    assert_int_equal(story_last_kind(&story), MESSAGE_GO);
    assert_int_equal(story.transcript.started_count, 1);
    assert_int_equal(story.transcript.switched_count, 1);
    story_done(&story, 1, "same", 1000);
    story_done(&story, 2, "same", 1000);
    assert_int_equal(story.coordinator.verdict, STATUS_OK);
    coordinator_finish(&story.coordinator);
}

static void a_phase_that_nobody_connects_to_fails_the_job(void **state)
{
    (void)state;
    struct story story;
    story_open_training(&story, 2);
    passed(&story, 1, 1);
    passed(&story, 2, 1);
    for (uint64_t now_ms = 1000; now_ms <= 31000; now_ms += 1000) {
        for (uint64_t peer = 1; peer <= 2; peer++) {
            story_give(&story, peer, (struct message){.kind = MESSAGE_HEARTBEAT}, now_ms);
        }
        coordinator_tick(&story.coordinator, now_ms, 0);
    }
    assert_int_equal(story.coordinator.verdict, STATUS_TIMED_OUT);
    assert_non_null(strstr(story.coordinator.reason, "still connecting: rank 0 and 1"));
    coordinator_finish(&story.coordinator);
}

/* Eight buckets of 0.25 MiB. */
static struct layout fine_layout(void)
{
    struct layout layout = {.value_count = 8 << 16, .bucket_count = 8, .digest = 5};
    for (uint32_t i = 0; i < 8; i++) {
        layout.buckets[i] = (struct span){(uint64_t)(7 - i) << 16, 1 << 16};
    }
    return layout;
}

/* Two workers and a server, peer 3, with --bucket-mb auto; the first trial is under way. */
static void open_tuning(struct story *story)
{
    struct layout layout = fine_layout();
    story_open(story, "ps-sync", 2, 1);
    story->job.bucket_mb = 0;
    story->job.steps = 200;
    story->job.global_batch = 10;
    story->job.sync_every = story->job.gradients_per_update = 1;
    snprintf(story->job.switches, sizeof(story->job.switches), "none");
    for (uint32_t i = 0; i < 3; i++) {
        story_join(story, 1 + i, i < 2 ? ROLE_WORKER : ROLE_SERVER, i % 2);
    }
    for (uint32_t i = 0; i < 3; i++) {
        story_ready(story, 1 + i, i < 2 ? ROLE_WORKER : ROLE_SERVER, "first", &layout);
    }
    for (uint64_t peer = 1; peer <= 3; peer++) {
        story_connected(story, peer);
    }
    assert_int_equal(story->coordinator.state, COORDINATOR_TRAINING);
}

/* The last START said so, to servers and workers alike. */
static void check_started(const struct story *story, uint64_t bucket_bytes, uint32_t bucket_count)
{
    uint32_t start_count = 0;
    for (uint32_t i = story->transcript.sent_count; i-- > 0 && start_count < 3;) {
        if (story->transcript.sent[i].kind == MESSAGE_START) {
            assert_int_equal(story->transcript.sent[i].bucket_bytes, bucket_bytes);
            assert_int_equal(story->transcript.sent[i].bucket_count, bucket_count);
            start_count++;
        }
    }
    assert_int_equal(start_count, 3);
}

/* Both workers end a trial; the next phase begins. */
static void end_trial(struct story *story, uint32_t next, uint64_t step_ns)
{
    for (uint64_t peer = 1; peer <= 2; peer++) {
        const struct wire_passed told = {next, step_ns + 1000 * peer};
        story_give(story, peer, (struct message){.kind = MESSAGE_PASSED, .passed = &told}, 40);
    }
    for (uint64_t peer = 1; peer <= 3; peer++) {
        story_connected(story, peer);
    }
    assert_int_equal(story->coordinator.state, COORDINATOR_TRAINING);
    assert_int_equal(story->coordinator.phase_index, next);
}

static void trials_of_buckets_begin_with_their_layouts_and_the_fastest_stays(void **state)
{
    (void)state;
    struct story story;
    open_tuning(&story);
    check_started(&story, 0, 8);
    end_trial(&story, 1, 9000000);
    check_started(&story, 1 << 20, 3); // the first a quarter, four buckets, and the rest
    end_trial(&story, 2, 8000000);
    check_started(&story, 4 << 20, 2);
    end_trial(&story, 3, 7000000);
    check_started(&story, 16 << 20, 1);
    end_trial(&story, 4, 9500000);
    check_started(&story, 4 << 20, 2);
    assert_string_equal(story.transcript.last_fact,
                        "bucket-mb auto: 0.25: 9.0, 1: 8.0, 4: 7.0, 16: 9.5 ms a step; continues "
                        "with 4");
    assert_int_equal(story.coordinator.layout.bucket_count, 8);
    coordinator_finish(&story.coordinator);
}

static void a_worker_that_does_not_end_its_trial_is_named(void **state)
{
    (void)state;
    struct story story;
    open_tuning(&story);
    passed(&story, 1, 1);
    for (uint64_t now_ms = 1000; story.coordinator.state == COORDINATOR_TRAINING; now_ms += 1000) {
        assert_in_range(now_ms, 0, 200000);
        for (uint64_t peer = 1; peer <= 3; peer++) {
            story_give(&story, peer,
                       (struct message){.kind = MESSAGE_HEARTBEAT, .step = peer == 2 ? 5 : 12},
                       now_ms);
        }
        coordinator_tick(&story.coordinator, now_ms, 0);
    }
    assert_int_equal(story.coordinator.verdict, STATUS_TIMED_OUT);
    if (strstr(story.coordinator.reason, "worker 1") == NULL &&
        strstr(story.coordinator.reason, "rank 1") == NULL) {
        fail_msg("%s", story.coordinator.reason);
    }
    coordinator_finish(&story.coordinator);
}

static void evaluated(struct story *story, uint64_t peer, uint64_t period, uint64_t correct)
{
    const struct wire_report report = {
        .closes_period = true, .period = period, .test_images = 50, .test_correct = correct};
    story_give(story, peer, (struct message){.kind = MESSAGE_REPORT, .report = &report}, 100);
}

static void workers_hear_when_the_target_is_reached(void **state)
{
    (void)state;
    struct story story;
    story_open_training(&story, 2);
    story.job.target_accuracy = 0.8;
    uint32_t sent = story.transcript.sent_count;
    evaluated(&story, 1, 0, 50);
    assert_int_equal(story.transcript.sent_count, sent);
    evaluated(&story, 2, 0, 29); // 79 of 100
    assert_int_equal(story.transcript.sent_count, sent + 2);
    assert_int_equal(story_last_kind(&story), MESSAGE_PROCEED);
    assert_false(story.transcript.sent[sent].is_enough);
    evaluated(&story, 1, 1, 40);
    evaluated(&story, 2, 1, 40); // 80 of 100
    assert_int_equal(story.transcript.sent_count, sent + 4);
    assert_true(story.transcript.sent[sent + 3].is_enough);
    assert_true(story.coordinator.results.has_reached_target);
    assert_int_equal(story.coordinator.results.target_period, 1);
    coordinator_finish(&story.coordinator);
}

static void give_sum(struct story *story, uint64_t peer, uint64_t round, const double *values,
                     uint32_t count)
{
    const struct wire_sum sum = {round, count, values};
    story_give(story, peer, (struct message){.kind = MESSAGE_SUM, .sum = &sum}, 100);
}

static void all_workers_hear_the_sum_when_each_has_given_its_part(void **state)
{
    (void)state;
    static const double values[] = {1, 2, 3};
    struct story story;
    story_open_training(&story, 3);
    uint32_t sent = story.transcript.sent_count;
    for (uint64_t round = 0; round < 2; round++) {
        give_sum(&story, 2, round, values, 3);
        give_sum(&story, 1, round, values, 3);
        assert_int_equal(story.transcript.sent_count, sent + 3 * round);
        give_sum(&story, 3, round, values, 3);
        assert_int_equal(story.transcript.sent_count, sent + 3 * (round + 1));
        assert_int_equal(story_last_kind(&story), MESSAGE_SUM);
    }
    coordinator_finish(&story.coordinator);
}

/* As programs of one's own do, to have the same first parameters. */
static void workers_add_up_numbers_before_they_are_ready(void **state)
{
    (void)state;
    static const double values[] = {1, 2, 3};
    struct story story;
    story_open(&story, "ring", 2, 0);
    story_join(&story, 1, ROLE_WORKER, 0);
    give_sum(&story, 1, 0, values, 3); // before the other one is there
    story_join(&story, 2, ROLE_WORKER, 1);
    uint32_t sent = story.transcript.sent_count;
    give_sum(&story, 2, 0, values, 3);
    assert_int_equal(story.coordinator.state, COORDINATOR_GATHERING);
    assert_int_equal(story.transcript.sent_count, sent + 2);
    assert_int_equal(story_last_kind(&story), MESSAGE_SUM);
    assert_int_equal(story.coordinator.membership.arrived_ms, 100); // --start-timeout begins anew
    coordinator_finish(&story.coordinator);
}

static void workers_whose_numbers_do_not_fit_together_fail_the_job(void **state)
{
    (void)state;
    static const double values[] = {1, 2, 3};
    struct story story;
    story_open_training(&story, 2);
    give_sum(&story, 1, 0, values, 3);
    give_sum(&story, 2, 0, values, 2);
    assert_int_equal(story.coordinator.verdict, STATUS_MISMATCH);
    assert_non_null(strstr(story.coordinator.reason, "gave 2 numbers"));
    coordinator_finish(&story.coordinator);
}

/* The worker waits for its sum: silence would be a hang. */
static void more_numbers_than_a_sum_takes_fail_the_job(void **state)
{
    (void)state;
    static const double values[] = {1, 2, 3};
    const uint32_t counts[] = {SUMS_COUNT_MAX + 1, UINT32_MAX};
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        struct story story;
        story_open_training(&story, 2);
        give_sum(&story, 2, 0, values, counts[i]);
        assert_int_equal(story.coordinator.verdict, STATUS_MALFORMED);
        assert_non_null(strstr(story.coordinator.reason, "worker 1 (host node) gave"));
        coordinator_finish(&story.coordinator);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_next_phase_begins_when_all_have_passed_and_are_connected),
        cmocka_unit_test(a_phase_that_nobody_connects_to_fails_the_job),
        cmocka_unit_test(trials_of_buckets_begin_with_their_layouts_and_the_fastest_stays),
        cmocka_unit_test(a_worker_that_does_not_end_its_trial_is_named),
        cmocka_unit_test(workers_hear_when_the_target_is_reached),
        cmocka_unit_test(all_workers_hear_the_sum_when_each_has_given_its_part),
        cmocka_unit_test(workers_add_up_numbers_before_they_are_ready),
        cmocka_unit_test(workers_whose_numbers_do_not_fit_together_fail_the_job),
        cmocka_unit_test(more_numbers_than_a_sum_takes_fail_the_job),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
