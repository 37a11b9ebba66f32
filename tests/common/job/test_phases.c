/* Tests of phases and marks against what one would list by hand. */
#include "common/job/phases.h"
#include "tests/support/common/sample_job.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <string.h>

static void check_marks(struct marks marks, const uint64_t *expected, uint64_t count)
{
    assert_int_equal(marks_count(&marks), count);
    for (uint64_t i = 0; i < count; i++) {
        assert_int_equal(marks_step(&marks, i + 1), expected[i]);
    }
}

static void marks_are_the_ends_of_periods_and_of_the_phase(void **state)
{
    (void)state;
    check_marks((struct marks){0, 30, 10}, (const uint64_t[]){10, 20, 30}, 3);
    check_marks((struct marks){0, 25, 10}, (const uint64_t[]){10, 20, 25}, 3);
    check_marks((struct marks){25, 41, 10}, (const uint64_t[]){30, 40, 41}, 3);
    check_marks((struct marks){20, 40, 10}, (const uint64_t[]){30, 40}, 2);
    check_marks((struct marks){3, 5, 10}, (const uint64_t[]){5}, 1);
    check_marks((struct marks){0, UINT64_MAX, UINT64_MAX}, (const uint64_t[]){UINT64_MAX}, 1);
}

static struct phases phases_for(struct job job, uint64_t samples)
{
    struct phases phases;
    char error[256] = "";
    job = sample_job_resolved(job);
    if (phases_of(&job, samples, &phases, error, sizeof(error)) != STATUS_OK) {
        fail_msg("%s", error);
    }
    return phases;
}

static void a_job_without_switches_is_one_phase(void **state)
{
    (void)state;
    struct phases phases = phases_for(SAMPLE_JOB("global-batch=10", "epochs=3", "mode=ring"), 105);
    assert_int_equal(phases.count, 1);
    assert_string_equal(mode_text(phases.list[0].mode).text, "ring");
    assert_false(phases.list[0].is_unsynchronised);
    check_marks(phases.list[0].marks, (const uint64_t[]){10, 20, 30}, 3);
}

static void switches_cut_a_job_and_updates_are_counted_through(void **state)
{
    (void)state;
    struct phases phases =
        phases_for(SAMPLE_JOB("global-batch=10", "epochs=3", "mode=ps-sync", "workers=2",
                              "switch=epoch:1=ps-async;step:14=ring", "gradients-per-update=2",
                              "eval-every=4"),
                   100);
    assert_int_equal(phases.count, 3);
    const struct phase *list = phases.list;
    assert_string_equal(mode_text(list[1].mode).text, "ps-async");
    assert_true(!list[0].is_unsynchronised && list[1].is_unsynchronised &&
                !list[2].is_unsynchronised);
    check_marks(list[0].marks, (const uint64_t[]){4, 8, 10}, 3);
    check_marks(list[1].marks, (const uint64_t[]){12, 14}, 2);
    check_marks(list[2].marks, (const uint64_t[]){16, 20, 24, 28, 30}, 5);
    assert_int_equal(list[0].updates_before, 0);
    assert_int_equal(list[1].updates_before, 10);
    assert_int_equal(list[2].updates_before, 10 + 4 * 2 / 2);
}

static void check_phase(const struct phase *phase, uint64_t first, uint64_t end,
                        uint64_t updates_before)
{
    assert_int_equal(phase->marks.first, first);
    assert_int_equal(phase->marks.end, end);
    assert_int_equal(phase->updates_before, updates_before);
}

static void trials_of_buckets_are_the_first_phases_of_a_job(void **state)
{
    (void)state;
    struct phases phases = phases_for(
        SAMPLE_JOB("global-batch=10", "steps=300", "mode=ring", "bucket-mb=auto", "eval-every=20"),
        100);
    assert_int_equal(phases.trial_count, PHASES_TRIALS);
    assert_int_equal(phases.count, PHASES_TRIALS + 1);
    for (uint32_t i = 0; i < PHASES_TRIALS; i++) {
        check_phase(&phases.list[i], 12 * (uint64_t)i, 12 * (uint64_t)i + 12, 12 * (uint64_t)i);
        assert_string_equal(mode_text(phases.list[i].mode).text, "ring");
    }
    check_phase(&phases.list[4], 48, 300, 48);
    // Evaluations stay where they are.
    check_marks(phases.list[0].marks, (const uint64_t[]){12}, 1);
    check_marks(phases.list[1].marks, (const uint64_t[]){20, 24}, 2);
    assert_int_equal(phases_trial_bytes(0), 256 << 10);
    assert_int_equal(phases_trial_bytes(1), 1 << 20);
    assert_int_equal(phases_trial_bytes(3), 16 << 20);
}

static void trials_are_in_the_phase_before_the_first_switch(void **state)
{
    (void)state;
    struct phases phases =
        phases_for(SAMPLE_JOB("global-batch=10", "steps=400", "mode=ps-async", "workers=2",
                              "bucket-mb=auto", "switch=step:192=ring"),
                   100);
    assert_int_equal(phases.count, PHASES_TRIALS + 2);
    check_phase(&phases.list[4], 48, 192, 96);
    assert_true(phases.list[3].is_unsynchronised && phases.list[4].is_unsynchronised &&
                !phases.list[5].is_unsynchronised);
    check_phase(&phases.list[5], 192, 400, 384);
    assert_string_equal(mode_text(phases.list[5].mode).text, "ring");
}

static void trials_have_whole_rounds_of_local_steps(void **state)
{
    (void)state;
    struct phases phases = phases_for(
        SAMPLE_JOB("global-batch=10", "steps=700", "mode=ring", "bucket-mb=auto", "sync-every=3"),
        100);
    assert_int_equal(phases.count, PHASES_TRIALS + 1);
    check_phase(&phases.list[1], 36, 72, 36);
    check_phase(&phases.list[4], 144, 700, 144);
}

static void a_job_that_is_short_or_has_one_worker_has_no_trials(void **state)
{
    (void)state;
    const struct job jobs[] = {
        SAMPLE_JOB("global-batch=10", "steps=191", "bucket-mb=auto"),
        SAMPLE_JOB("global-batch=10", "steps=400", "bucket-mb=auto", "switch=step:191=ring"),
        SAMPLE_JOB("global-batch=10", "steps=500", "bucket-mb=auto", "sync-every=3"),
        SAMPLE_JOB("global-batch=10", "steps=400", "bucket-mb=auto", "workers=1"),
        SAMPLE_JOB("global-batch=10", "steps=400", "bucket-mb=auto", "mode=local"),
        SAMPLE_JOB("global-batch=10", "steps=400", "bucket-mb=1"),
    };
    for (size_t i = 0; i < sizeof(jobs) / sizeof(jobs[0]); i++) {
        struct phases phases = phases_for(jobs[i], 100);
        assert_int_equal(phases.trial_count, 0);
        assert_int_equal(phases.count, i == 1 ? 2 : 1);
    }
}

static void pushes_count_rounds_of_all_workers(void **state)
{
    (void)state;
    struct marks marks = {10, 30, 10};
    assert_int_equal(phases_pushes(&marks, 4, 1, 10), 0);
    assert_int_equal(phases_pushes(&marks, 4, 1, 30), 80);
    assert_int_equal(phases_pushes(&marks, 4, 8, 30), 10);
    assert_int_equal(phases_pushes(&marks, 3, 7, 30), 9); // 60 / 7, and a part of one
    marks.end = UINT64_MAX;
    assert_int_equal(phases_pushes(&marks, 4, 1, UINT64_MAX), UINT64_MAX);
}

static void check_refused(struct job job, uint64_t samples, const char *text)
{
    struct phases phases;
    char error[256] = "";
    job = sample_job_resolved(job);
    assert_int_equal(phases_of(&job, samples, &phases, error, sizeof(error)), STATUS_INVALID);
    if (strstr(error, text) == NULL) {
        fail_msg("'%s' is not in: %s", text, error);
    }
}

static void what_does_not_fit_the_data_is_refused(void **state)
{
    (void)state;
    check_refused(SAMPLE_JOB("global-batch=10", "epochs=3", "switch=step:30=ring"), 100,
                  "never comes: the job has 30 steps, 10 an epoch");
    check_refused(SAMPLE_JOB("global-batch=10", "steps=25", "switch=epoch:3=ring"), 100,
                  "never comes: the job has 25 steps");
    check_refused(SAMPLE_JOB("global-batch=10", "epochs=3", "switch=epoch:1=ring;step:10=ps-sync"),
                  100, "must come in their order");
    check_refused(SAMPLE_JOB("global-batch=10", "epochs=1", "sync-every=11", "mode=ring"), 100,
                  "longer than the 10 steps");
    check_refused(SAMPLE_JOB("global-batch=10", "epochs=3", "timeline-steps=31..40"), 100,
                  "--timeline-steps 31..40 never come: the job has 30 steps");
    check_refused(SAMPLE_JOB("global-batch=10", "epochs=1", "mode=ring"), 9,
                  "fewer than one global batch");
}

static void rounds_end_at_marks_too(void **state)
{
    (void)state;
    const struct marks marks = {.first = 3, .end = 45, .period = 10};
    // 3..7, 7..10; 10..14, 14..18, 18..20; ...
    const uint64_t steps[] = {3, 4, 7, 10, 12, 14, 20, 30, 31, 45};
    const uint64_t rounds[] = {0, 1, 1, 2, 3, 3, 5, 8, 9, 13};
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        assert_int_equal(marks_rounds(&marks, 4, steps[i]), rounds[i]);
    }
    const struct marks endless = {.first = 3, .end = 45, .period = UINT64_MAX};
    assert_int_equal(marks_rounds(&endless, 1, 45), 42);
}

static void a_resumed_job_begins_a_phase_where_it_stopped(void **state)
{
    (void)state;
    struct job job = SAMPLE_JOB("global-batch=10", "epochs=3", "mode=ps-sync", "workers=2",
                                "switch=epoch:1=ps-async;step:14=ring", "gradients-per-update=2");
    struct phases phases = phases_for(job, 100);
    uint32_t index;
    job = sample_job_resolved(job);
    assert_int_equal(phases_resume(&job, &phases, 12, &index), STATUS_OK);
    assert_int_equal(index, 1);
    assert_int_equal(phases.list[1].marks.first, 12);
    assert_int_equal(phases.list[1].begin, 12);
    assert_int_equal(phases.list[1].updates_before, 10 + 2); // two steps of two gradients
    assert_int_equal(phase_marks_before(&phases.list[1]), 0);
    phases = phases_for(job, 100);
    assert_int_equal(phases_resume(&job, &phases, 30, &index), STATUS_END_OF_DATA);
}

static void with_a_seeded_order_draws_count_from_the_beginning_of_the_phase(void **state)
{
    (void)state;
    struct job job = SAMPLE_JOB("global-batch=10", "epochs=3", "mode=ps-async", "workers=2",
                                "order=seeded:constant:2");
    struct phases phases = phases_for(job, 100);
    uint32_t index;
    job = sample_job_resolved(job);
    assert_int_equal(phases_resume(&job, &phases, 12, &index), STATUS_OK);
    assert_int_equal(phases.list[0].marks.first, 0);
    assert_int_equal(phases.list[0].updates_before, 0);
    assert_int_equal(phases.list[0].begin, 12);
    assert_int_equal(phase_marks_before(&phases.list[0]), 1);
    assert_int_equal(phase_rounds_before(&phases.list[0], 1), 12);
}

static void a_trial_is_not_resumed(void **state)
{
    (void)state;
    struct job job =
        SAMPLE_JOB("global-batch=10", "steps=1000", "mode=ps-sync", "workers=2", "bucket-mb=auto");
    struct phases phases = phases_for(job, 100);
    uint32_t index;
    job = sample_job_resolved(job);
    assert_true(phases.trial_count > 0);
    assert_int_equal(phases_resume(&job, &phases, 5, &index), STATUS_UNSUPPORTED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(marks_are_the_ends_of_periods_and_of_the_phase),
        cmocka_unit_test(a_job_without_switches_is_one_phase),
        cmocka_unit_test(switches_cut_a_job_and_updates_are_counted_through),
        cmocka_unit_test(trials_of_buckets_are_the_first_phases_of_a_job),
        cmocka_unit_test(trials_are_in_the_phase_before_the_first_switch),
        cmocka_unit_test(trials_have_whole_rounds_of_local_steps),
        cmocka_unit_test(a_job_that_is_short_or_has_one_worker_has_no_trials),
        cmocka_unit_test(pushes_count_rounds_of_all_workers),
        cmocka_unit_test(what_does_not_fit_the_data_is_refused),
        cmocka_unit_test(rounds_end_at_marks_too),
        cmocka_unit_test(a_resumed_job_begins_a_phase_where_it_stopped),
        cmocka_unit_test(with_a_seeded_order_draws_count_from_the_beginning_of_the_phase),
        cmocka_unit_test(a_trial_is_not_resumed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
