/* Tests of the steps after which a job writes checkpoints. */
#include "common/job/checkpoints.h"
#include "tests/support/common/sample_job.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <string.h>

/* Phases that end at these steps, with marks every `period` steps. */
static struct phases phases_ending_at(const uint64_t *ends, uint32_t count, uint64_t period,
                                      bool is_unsynchronised)
{
    struct phases phases = {.count = count};
    for (uint32_t i = 0; i < count; i++) {
        uint64_t first = i > 0 ? ends[i - 1] : 0;
        phases.list[i] = (struct phase){.marks = {first, ends[i], period},
                                        .begin = first,
                                        .is_unsynchronised = is_unsynchronised};
    }
    return phases;
}

static void checkpoints_come_at_multiples_and_at_the_end(void **state)
{
    (void)state;
    const uint64_t end = 25;
    const struct phases phases = phases_ending_at(&end, 1, 10, false);
    const struct checkpoints checkpoints = {
        .are_on = true, .are_written = true, .every = 10, .total = 25, .sync_every = 1};
    const uint64_t expected[] = {10, 20, 25};
    uint64_t at = 0;
    for (size_t i = 0; i < 3; i++) {
        at = checkpoints_next(&checkpoints, &phases, at);
        assert_int_equal(at, expected[i]);
    }
    assert_true(checkpoints_next(&checkpoints, &phases, at) == CHECKPOINTS_NEVER);
    for (uint64_t step = 0; step <= 25; step++) {
        bool is_due = step == 10 || step == 20 || step == 25;
        assert_int_equal(checkpoints_are_due(&checkpoints, &phases, step), is_due);
    }
}

static void a_job_without_checkpoints_has_none_at_its_end(void **state)
{
    (void)state;
    const uint64_t end = 25;
    const struct phases phases = phases_ending_at(&end, 1, 10, false);
    const struct checkpoints checkpoints = {
        .are_on = false, .are_written = false, .every = 0, .total = 25, .sync_every = 1};
    assert_true(checkpoints_next(&checkpoints, &phases, 0) == CHECKPOINTS_NEVER);
}

static void a_job_that_keeps_checkpoints_in_memory_alone_has_none_at_steps_of_its_own(void **state)
{
    (void)state;
    const uint64_t end = 25;
    const struct phases phases = phases_ending_at(&end, 1, 10, false);
    const struct checkpoints checkpoints = {.are_on = true, .total = 25, .sync_every = 1};
    assert_true(checkpoints_next(&checkpoints, &phases, 0) == CHECKPOINTS_NEVER);
    assert_false(checkpoints_are_due(&checkpoints, &phases, 25));
}

static void between_rounds_which_end_at_marks_where_workers_are_in_step(void **state)
{
    (void)state;
    const uint64_t end = 30;
    const struct checkpoints checkpoints = {
        .are_on = true, .are_written = true, .every = 6, .total = 30, .sync_every = 4};
    // Rounds end at 4, 8, 10; 14, 18, 20; 24, 28, 30.
    struct phases phases = phases_ending_at(&end, 1, 10, false);
    const uint64_t in_step[] = {8, 14, 18, 24, 30};
    uint64_t at = 0;
    for (size_t i = 0; i < 5; i++) {
        at = checkpoints_next(&checkpoints, &phases, at);
        assert_int_equal(at, in_step[i]);
    }
    // Rounds of others end at 4, 8, 12, 16 ...
    phases = phases_ending_at(&end, 1, 10, true);
    const uint64_t apart[] = {8, 12, 20, 24, 30};
    at = 0;
    for (size_t i = 0; i < 5; i++) {
        at = checkpoints_next(&checkpoints, &phases, at);
        assert_int_equal(at, apart[i]);
    }
}

static void never_in_trials_nor_where_one_phase_hands_over_to_the_next(void **state)
{
    (void)state;
    const uint64_t ends[] = {5, 20, 40};
    struct phases phases = phases_ending_at(ends, 3, 10, false);
    phases.trial_count = 1;
    const struct checkpoints checkpoints = {
        .are_on = true, .are_written = true, .every = 4, .total = 40, .sync_every = 1};
    assert_int_equal(checkpoints_next(&checkpoints, &phases, 0), 6);
    assert_int_equal(checkpoints_fit(&checkpoints, &phases, 20), 21);
    assert_int_equal(checkpoints_fit(&checkpoints, &phases, 40), 40);
    assert_false(checkpoints_are_due(&checkpoints, &phases, 20));
    assert_true(checkpoints_are_due(&checkpoints, &phases, 21));
}

/* Servers whose workers are in step count from where they go on: from a checkpoint, or from a copy
 * between two of them. */
static void a_job_that_goes_on_has_the_checkpoints_that_it_would_have_had(void **state)
{
    (void)state;
    const uint64_t ends[] = {50, 90}, begins[] = {20, 23, 60, 69};
    const uint64_t expected[][3] = {{30, 40, 51}, {30, 40, 51}, {70, 80, 90}, {70, 80, 90}};
    const struct checkpoints checkpoints = {
        .are_on = true, .are_written = true, .every = 10, .total = 90, .sync_every = 1};
    for (size_t i = 0; i < sizeof(begins) / sizeof(begins[0]); i++) {
        struct phases phases = phases_ending_at(ends, 2, 100, false);
        struct phase *phase = &phases.list[begins[i] > ends[0]];
        phase->begin = phase->marks.first = begins[i];
        uint64_t at = begins[i];
        for (size_t k = 0; k < 3; k++) {
            at = checkpoints_next(&checkpoints, &phases, at);
            assert_int_equal(at, expected[i][k]);
            assert_true(checkpoints_are_due(&checkpoints, &phases, at));
        }
    }
}

static void a_mirror_needs_copies_in_memory_and_who_has_none_hears_why(void **state)
{
    (void)state;
    static const struct {
        const char *settings[8];
        const char *words; // NULL: it has copies
    } jobs[] = {
        {{"mode=ps-sync", NULL}, NULL},
        {{"mode=ring", "on-loss=shrink", NULL}, NULL},
        {{"mode=local", "workers=1", NULL}, "in mode local"},
        {{"mode=ps-sync", "workers=1", NULL}, "with one worker"},
        {{"mode=ps-sync", "on-loss=fail", NULL}, "another --on-loss"},
        {{"mode=ps-sync", "sync-every=2", NULL}, "--sync-every 1; use --checkpoint-every"},
        {{"mode=ps-sync", "model=external:mine", NULL}, "a program of your own"},
    };
    for (size_t i = 0; i < sizeof(jobs) / sizeof(jobs[0]); i++) {
        char error[OPTION_ERROR_BYTES];
        const struct job job = sample_job_resolved(sample_job(jobs[i].settings));
        enum status status = checkpoints_check_mirror(&job, error, sizeof(error));
        assert_int_equal(status, jobs[i].words == NULL ? STATUS_OK : STATUS_INVALID);
        assert_true(jobs[i].words == NULL || strstr(error, jobs[i].words) != NULL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(checkpoints_come_at_multiples_and_at_the_end),
        cmocka_unit_test(a_job_without_checkpoints_has_none_at_its_end),
        cmocka_unit_test(a_job_that_keeps_checkpoints_in_memory_alone_has_none_at_steps_of_its_own),
        cmocka_unit_test(between_rounds_which_end_at_marks_where_workers_are_in_step),
        cmocka_unit_test(a_job_that_goes_on_has_the_checkpoints_that_it_would_have_had),
        cmocka_unit_test(never_in_trials_nor_where_one_phase_hands_over_to_the_next),
        cmocka_unit_test(a_mirror_needs_copies_in_memory_and_who_has_none_hears_why),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
