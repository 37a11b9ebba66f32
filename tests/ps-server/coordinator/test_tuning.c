/* Tests of what --bucket-mb auto chooses, and what it says. */
#include "ps-server/coordinator/tuning.h"
#include "tests/support/common/sample_job.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <string.h>

#define MS UINT64_C(1000000)

static struct tuning tuning_for(struct job job, bool is_shared)
{
    struct tuning tuning;
    job = sample_job_resolved(job);
    tuning_init(&job, 1000, is_shared, &tuning);
    return tuning;
}

static struct tuning trying(const char *mode_option)
{
    struct tuning tuning =
        tuning_for(SAMPLE_JOB("steps=200", "bucket-mb=auto", mode_option), false);
    assert_int_equal(tuning.state, TUNING_TRYING);
    return tuning;
}

static void check_text(const struct tuning *tuning, const char *text)
{
    char said[256] = "nothing";
    assert_true(tuning_describe(tuning, said, sizeof(said)));
    assert_string_equal(said, text);
}

/* One worker's milliseconds of each trial. */
static void note_all(struct tuning *tuning, const uint64_t ms[PHASES_TRIALS])
{
    for (uint32_t i = 0; i < PHASES_TRIALS; i++) {
        tuning_note(tuning, i, ms[i] * MS);
    }
}

static void phases_have_the_sizes_of_their_trials_and_then_the_fastest(void **state)
{
    (void)state;
    struct tuning tuning = trying("mode=ring");
    check_text(&tuning, "bucket-mb auto: tries 0.25, 1, 4, 16 in the first 48 steps");
    assert_int_equal(tuning_begin_phase(&tuning, 0), 0); // models are cut at the smallest
    assert_int_equal(tuning_begin_phase(&tuning, 1), 1 << 20);
    assert_int_equal(tuning_begin_phase(&tuning, 2), 4 << 20);
    assert_int_equal(tuning_begin_phase(&tuning, 3), 16 << 20);
    note_all(&tuning, (const uint64_t[]){12, 11, 13, 15});
    assert_int_equal(tuning_begin_phase(&tuning, 4), 1 << 20);
    assert_int_equal(tuning.state, TUNING_DECIDED);
    check_text(
        &tuning,
        "bucket-mb auto: 0.25: 12.0, 1: 11.0, 4: 13.0, 16: 15.0 ms a step; continues with 1");
    tuning_note(&tuning, 4, MS); // of a phase that is no trial
    tuning_note(&tuning, 2, MS); // of one that is over
    assert_int_equal(tuning_begin_phase(&tuning, 5), 1 << 20);
}

static void the_smallest_size_is_the_layout_as_it_is(void **state)
{
    (void)state;
    struct tuning tuning = trying("mode=ring");
    note_all(&tuning, (const uint64_t[]){10, 11, 13, 15});
    assert_int_equal(tuning_begin_phase(&tuning, 4), 0);
    assert_int_equal(tuning.bytes, 256 << 10);
}

static void the_slowest_worker_is_the_time_of_a_step_that_all_make_together(void **state)
{
    (void)state;
    struct tuning tuning = trying("mode=ps-sync");
    note_all(&tuning, (const uint64_t[]){10, 20, 20, 20});
    note_all(&tuning, (const uint64_t[]){40, 21, 30, 30});
    assert_int_equal(tuning_begin_phase(&tuning, 4), 1 << 20);
    assert_true(tuning_trial_ms(&tuning, 0) >= 40 && tuning_trial_ms(&tuning, 1) <= 21);
}

static void the_rates_of_unsynchronised_workers_add_up(void **state)
{
    (void)state;
    struct tuning tuning = trying("mode=ps-async");
    note_all(&tuning, (const uint64_t[]){10, 20, 20, 20});
    note_all(&tuning, (const uint64_t[]){40, 21, 30, 30});
    assert_int_equal(tuning_begin_phase(&tuning, 4), 0); // 125 steps a second; 98 with 1 MiB
    assert_true(tuning_trial_ms(&tuning, 0) > 15.99 && tuning_trial_ms(&tuning, 0) < 16.01);
}

static void of_sizes_that_are_as_good_the_largest_is_taken(void **state)
{
    (void)state;
    struct tuning tuning = trying("mode=ring");
    note_all(&tuning, (const uint64_t[]){1000, 1020, 1009, 1011});
    assert_int_equal(tuning_begin_phase(&tuning, 4), 4 << 20);
}

static void what_was_not_measured_is_not_chosen(void **state)
{
    (void)state;
    struct tuning tuning = trying("mode=ps-async");
    note_all(&tuning, (const uint64_t[]){0, 0, 7, 8});
    assert_int_equal(tuning_begin_phase(&tuning, 4), 4 << 20);
    check_text(&tuning, "bucket-mb auto: 0.25: not measured, 1: not measured, 4: 7.0, 16: 8.0 ms a "
                        "step; continues with 4");
    tuning = trying("mode=ps-async");
    assert_int_equal(tuning_begin_phase(&tuning, 4), 1 << 20); // the default
    tuning = trying("mode=ring");
    for (uint32_t i = 0; i < PHASES_TRIALS; i++) {
        tuning_note(&tuning, i, UINT64_MAX); // whatever a peer says
    }
    assert_int_equal(tuning_begin_phase(&tuning, 4), 16 << 20);
}

static void without_trials_the_default_stays_and_the_reason_is_said(void **state)
{
    (void)state;
    struct tuning tuning =
        tuning_for(SAMPLE_JOB("steps=191", "bucket-mb=auto", "mode=ring"), false);
    check_text(&tuning, "bucket-mb auto: stays at 1; 191 steps are too few for trials, which take "
                        "48 of at least 192");
    assert_int_equal(tuning_begin_phase(&tuning, 0), 1 << 20);
    tuning = tuning_for(
        SAMPLE_JOB("steps=500", "bucket-mb=auto", "mode=ring", "switch=step:100=ps-sync"), false);
    check_text(&tuning, "bucket-mb auto: stays at 1; 100 steps are too few for trials, which take "
                        "48 of at least 192");
    assert_int_equal(tuning_begin_phase(&tuning, 1), 1 << 20);
    tuning = tuning_for(SAMPLE_JOB("steps=500", "bucket-mb=auto", "mode=local"), false);
    check_text(&tuning, "bucket-mb auto: stays at 1; one worker exchanges nothing");
    assert_int_equal(tuning_begin_phase(&tuning, 0), 1 << 20);
    tuning = tuning_for(SAMPLE_JOB("steps=500", "bucket-mb=auto", "mode=ring"), true);
    check_text(&tuning, "bucket-mb auto: stays at 1; workers add up gradients in shared memory, "
                        "so no bucket travels");
    for (uint32_t phase = 0; phase <= PHASES_TRIALS; phase++) {
        tuning_note(&tuning, phase, (5 - phase) * MS);
        assert_int_equal(tuning_begin_phase(&tuning, phase), 1 << 20);
    }
}

static void a_size_that_was_given_is_that_of_the_layout(void **state)
{
    (void)state;
    char text[256];
    struct tuning tuning = tuning_for(SAMPLE_JOB("steps=500", "bucket-mb=4", "mode=ring"), false);
    assert_int_equal(tuning_begin_phase(&tuning, 0), 0);
    assert_int_equal(tuning_begin_phase(&tuning, 7), 0);
    assert_false(tuning_describe(&tuning, text, sizeof(text)));
}

static void it_is_said_once_when_it_is_known(void **state)
{
    (void)state;
    char text[256];
    struct tuning tuning = trying("mode=ring");
    for (uint32_t phase = 0; phase <= PHASES_TRIALS + 1; phase++) {
        tuning_begin_phase(&tuning, phase);
        bool is_news = tuning_describe_news(&tuning, phase, text, sizeof(text));
        assert_true(is_news == (phase == 0 || phase == PHASES_TRIALS));
        tuning_note(&tuning, phase, MS);
    }
    tuning = tuning_for(SAMPLE_JOB("steps=500", "bucket-mb=auto", "mode=ring"), true);
    assert_true(tuning_describe_news(&tuning, 0, text, sizeof(text)));
    assert_false(tuning_describe_news(&tuning, PHASES_TRIALS, text, sizeof(text)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(phases_have_the_sizes_of_their_trials_and_then_the_fastest),
        cmocka_unit_test(the_smallest_size_is_the_layout_as_it_is),
        cmocka_unit_test(the_slowest_worker_is_the_time_of_a_step_that_all_make_together),
        cmocka_unit_test(the_rates_of_unsynchronised_workers_add_up),
        cmocka_unit_test(of_sizes_that_are_as_good_the_largest_is_taken),
        cmocka_unit_test(what_was_not_measured_is_not_chosen),
        cmocka_unit_test(without_trials_the_default_stays_and_the_reason_is_said),
        cmocka_unit_test(a_size_that_was_given_is_that_of_the_layout),
        cmocka_unit_test(it_is_said_once_when_it_is_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
