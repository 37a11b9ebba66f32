/* Tests of what a sweep found: runs to settings, settings to series. */
#include "deploy/predict/convergence/convergence.h"
#include "deploy/report/sweep_settings.h"
#include "deploy/report/sweep_table.h"
#include "tests/support/common/temp_folder.h"
#include "tests/support/deploy/sample_runs.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RUNS 8

struct sweep_test {
    char *folder;
    struct sweep_run runs[RUNS];
    struct sweep_plan plan;
    struct run_folder folders[RUNS];
    struct run_folder *summaries[RUNS];
    struct sweep_settings settings;
};

/* Two runs a setting: momentum and sgd, each with the staleness 4 and 0 (in this order). The last
 * run has failed, the one before it is missing. */
static const struct {
    const char *label;
    struct sample_run sample;
} samples[RUNS] = {
    {"optimizer=sgd order=seeded:constant:4",
     {.accuracy = 0.7, .staleness = 4, .target_steps = 90}},
    {"optimizer=sgd order=seeded:constant:4",
     {.accuracy = 0.8, .staleness = 4, .target_steps = 110}},
    {"optimizer=sgd order=seeded:constant:0", {.accuracy = 0.9, .target_steps = 50}},
    {"optimizer=sgd order=seeded:constant:0", {.accuracy = 0.9, .target_steps = 50}},
    {"optimizer=adam order=seeded:constant:0", {.accuracy = 0.5, .target_steps = 20}},
    {"optimizer=adam order=seeded:constant:0", {.accuracy = 0.7}},
    {"optimizer=adam order=seeded:constant:4", {.staleness = 4}},
    {"optimizer=adam order=seeded:constant:4", {.outcome = "failed", .staleness = 4}},
};

static int set_up(void **state)
{
    static struct sweep_test test;
    memset(&test, 0, sizeof(test));
    test.folder = temp_folder_create();
    test.plan = (struct sweep_plan){test.runs, RUNS, RUNS / 2};
    for (size_t i = 0; i < RUNS; i++) {
        snprintf(test.runs[i].name, sizeof(test.runs[i].name), "run-%zu", i);
        snprintf(test.runs[i].label, sizeof(test.runs[i].label), "%s", samples[i].label);
        test.runs[i].group = i / 2;
        test.runs[i].job.target_accuracy = 0.8;
        sample_runs_open(test.folder, test.runs[i].name, &samples[i].sample, &test.folders[i]);
        test.summaries[i] = i == 6 ? NULL : &test.folders[i];
    }
    const struct sweep_results results = {&test.plan, test.summaries};
    assert_int_equal(sweep_settings_of(&results, &test.settings), STATUS_OK);
    *state = &test;
    return 0;
}

static int tear_down(void **state)
{
    struct sweep_test *test = *state;
    for (size_t i = 0; i < RUNS; i++) {
        run_folder_close(&test->folders[i]);
    }
    sweep_settings_free(&test->settings);
    temp_folder_destroy(test->folder);
    return 0;
}

static void check_near(double value, double wanted)
{
    if (!(fabs(value - wanted) <= 1e-3 * (1 + fabs(wanted)))) {
        fail_msg("%.6g, wanted %.6g", value, wanted);
    }
}

static void settings_are_in_series_and_sorted_by_staleness(void **state)
{
    const struct sweep_test *test = *state;
    const struct sweep_setting *list = test->settings.list;
    assert_int_equal(test->settings.count, 4);
    assert_int_equal(test->settings.series_count, 2);
    assert_string_equal(list[0].series, "optimizer=sgd");
    assert_string_equal(list[0].axis, "order=seeded:constant:0");
    assert_string_equal(list[1].axis, "order=seeded:constant:4");
    assert_string_equal(list[2].series, "optimizer=adam");
    assert_int_equal(list[0].series_index, 0);
    assert_int_equal(list[3].series_index, 1);
}

/* Settings as planned: ps-sync with 4 and with 16 workers, then ring. Nothing of them is stale. */
static void rows_are_by_mode_and_as_planned_where_nothing_is_stale(void **state)
{
    struct sweep_test *test = *state;
    static const char *const labels[] = {"mode=ps-sync workers=4", "mode=ps-sync workers=16",
                                         "mode=ring workers=4", "mode=ring workers=16"};
    static const char *const wanted[] = {"mode=ring workers=4", "mode=ring workers=16",
                                         "mode=ps-sync workers=4", "mode=ps-sync workers=16"};
    char cell[SWEEP_TABLE_CELL_BYTES];
    for (size_t i = 0; i < RUNS; i++) {
        snprintf(test->runs[i].label, sizeof(test->runs[i].label), "%s", labels[i / 2]);
        test->runs[i].job.mode.kind = i < 4 ? MODE_PS_SYNC : MODE_RING;
        test->summaries[i] = &test->folders[2];
    }
    sweep_settings_free(&test->settings);
    const struct sweep_results results = {&test->plan, test->summaries};
    assert_int_equal(sweep_settings_of(&results, &test->settings), STATUS_OK);
    for (size_t i = 0; i < 4; i++) {
        sweep_table_cell(&test->settings, i, 0, cell, sizeof(cell));
        assert_string_equal(cell, wanted[i]);
    }
}

static void means_are_over_the_seeds_that_completed(void **state)
{
    const struct sweep_test *test = *state;
    const struct sweep_setting *list = test->settings.list;
    check_near(list[1].measures[MEASURE_ACCURACY].mean, 75);
    check_near(list[1].measures[MEASURE_ACCURACY].half_width, 12.706 * 5); // t of one degree
    check_near(list[1].measures[MEASURE_STALENESS].mean, 4);
    assert_int_equal(list[3].planned, 2);
    assert_int_equal(list[3].completed, 0);
    assert_int_equal(list[3].failed, 1);
    assert_int_equal(list[3].measures[MEASURE_ACCURACY].count, 0);
    check_near(list[0].shares[0], 0.75);
    check_near(list[0].shares[1], 0.25);
}

static void steps_to_the_target_are_relative_to_the_least_stale_of_the_series(void **state)
{
    const struct sweep_test *test = *state;
    const struct sweep_setting *list = test->settings.list;
    assert_int_equal(list[0].reached, 2);
    check_near(list[0].relative_steps.mean, 1);
    check_near(list[0].relative_steps.half_width, 0);
    check_near(list[1].relative_steps.mean, 2);
    // (100 +- 12.706 * 10) / (50 +- 0)
    check_near(list[1].relative_steps.half_width, 2 * 1.2706);
    check_near(list[1].relative_seconds.mean, 2);
    assert_int_equal(list[2].reached, 1);
    assert_int_equal(list[2].measures[MEASURE_TARGET_STEPS].count, 1);
    assert_int_equal(list[3].relative_steps.count, 0);
}

static void errors_of_a_ratio_add_up_in_squares(void **state)
{
    (void)state;
    const struct statistics a = {3, 30, 3}, b = {3, 10, 0.5}, none = {0, 0, 0};
    struct statistics ratio = sweep_ratio(&a, &b);
    check_near(ratio.mean, 3);
    check_near(ratio.half_width, 3 * sqrt(0.01 + 0.0025));
    assert_int_equal(sweep_ratio(&a, &none).count, 0);
    assert_int_equal(sweep_ratio(&none, &a).count, 0);
}

/* Both epochs of the samples, with the seconds summed up. */
static void curves_have_a_point_for_each_evaluation(void **state)
{
    const struct sweep_test *test = *state;
    const struct sweep_setting *setting = &test->settings.list[0];
    assert_int_equal(setting->point_count, 2);
    check_near(setting->points[0].step, 2);
    check_near(setting->points[0].seconds.mean, 0.5);
    assert_int_equal(setting->points[0].accuracy.count, 0);
    check_near(setting->points[1].step, 4);
    check_near(setting->points[1].seconds.mean, 1.25);
    check_near(setting->points[1].accuracy.mean, 90);
    check_near(setting->points[1].train_loss.mean, 0.5);
}

#define SETTINGS_TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

/* The run that failed has diverged: it is counted by its step, and left out of means as before. */
static void a_run_that_diverged_has_not_failed(void **state)
{
    struct sweep_test *test = *state;
    struct sweep_settings settings;
    const struct sweep_results results = {&test->plan, test->summaries};
    json_object_set_new(test->folders[7].details, "diverged_step", json_integer(57));
    assert_int_equal(sweep_settings_of(&results, &settings), STATUS_OK);
    size_t diverged = 0;
    for (size_t i = 0; i < settings.count; i++) {
        assert_int_equal(settings.list[i].failed, 0);
        if (settings.list[i].diverged > 0) {
            assert_int_equal(settings.list[i].diverged_steps[0], 57);
            assert_int_equal(settings.list[i].completed, 0);
            diverged += settings.list[i].diverged;
        }
    }
    assert_int_equal(diverged, 1);
    sweep_settings_free(&settings);
}

static void a_histogram_whose_last_bin_counts_more_is_known_by_its_maximum(void **state)
{
    struct sweep_test *test = *state;
    struct sweep_settings settings;
    const struct sweep_results results = {&test->plan, test->summaries};
    for (size_t i = 0; i < test->settings.count; i++) {
        assert_int_equal(test->settings.list[i].capped_bin, 0);
    }
    json_object_set_new(json_object_get(test->folders[0].summary, "staleness"), "max",
                        json_integer(5)); // of two bins
    assert_int_equal(sweep_settings_of(&results, &settings), STATUS_OK);
    size_t capped = 0;
    for (size_t i = 0; i < settings.count; i++) {
        capped += settings.list[i].capped_bin;
    }
    assert_int_equal(capped, 1);
    sweep_settings_free(&settings);
}

/* One of the two runs of a setting has lost a worker, and one that failed, too. */
static void accuracies_of_fewer_images_are_named_below_the_table(void **state)
{
    struct sweep_test *test = *state;
    struct sweep_settings settings;
    const struct sweep_results results = {&test->plan, test->summaries};
    static const size_t part_tested[] = {1, 7};
    char *text = NULL;
    size_t size;
    for (size_t i = 0; i < sizeof(part_tested) / sizeof(part_tested[0]); i++) {
        struct run_folder *run = &test->folders[part_tested[i]];
        json_t *last = json_array_get(json_object_get(run->summary, "epochs"), 1);
        json_object_set_new(last, "test_images", json_integer(500));
        run->job = json_pack("{s:i}", "test_samples", 2000);
    }
    assert_int_equal(sweep_settings_of(&results, &settings), STATUS_OK);
    FILE *stream = open_memstream(&text, &size);
    sweep_table_print(stream, &settings);
    fclose(stream);
    const char *said = strstr(text, "the test accuracy");
    assert_non_null(strstr(text,
                           "\noptimizer=sgd order=seeded:constant:4: the test accuracy of 1 of "
                           "2 runs leaves out images of a worker that was lost\n"));
    assert_null(strstr(said + 1, "the test accuracy"));
    free(text);
    sweep_settings_free(&settings);
}

static void predictions_read_the_table_of_a_sweep(void **state)
{
    struct sweep_test *test = *state;
    struct sweep_settings settings;
    struct convergence convergence;
    struct target target;
    char path[4096];
    struct job job = {.mode = {MODE_PS_ASYNC, 0}, .workers = 8, .gradients_per_update = 1};
    const struct sweep_results results = {&test->plan, test->summaries};
    for (size_t i = 0; i < RUNS; i++) {
        struct job *own = &test->runs[i].job;
        own->mode = job.mode;
        own->workers = 2;
        own->global_batch = 64;
        own->gradients_per_update = 1;
    }
    assert_int_equal(sweep_settings_of(&results, &settings), STATUS_OK);
    assert_int_equal(sweep_table_write(test->folder, &settings), STATUS_OK);
    snprintf(path, sizeof(path), "%s/sweep.csv", test->folder);
    assert_int_equal(convergence_read(path, &convergence), STATUS_OK);
    assert_int_equal(convergence.count, settings.count);
    convergence_find(&convergence, &job, 32, 2, 0.1, &target); // 50 steps of 2 at 0, 100 at 4
    check_near(target.steps, 75.0 * 2 / 8);
    check_near(target.seconds, 0.1 * 75 * 2 / 8);
    assert_string_equal(target.recipe, "optimizer=sgd");
    convergence_finish(&convergence);
    sweep_settings_free(&settings);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SETTINGS_TEST(settings_are_in_series_and_sorted_by_staleness),
        SETTINGS_TEST(rows_are_by_mode_and_as_planned_where_nothing_is_stale),
        SETTINGS_TEST(means_are_over_the_seeds_that_completed),
        SETTINGS_TEST(steps_to_the_target_are_relative_to_the_least_stale_of_the_series),
        SETTINGS_TEST(curves_have_a_point_for_each_evaluation),
        SETTINGS_TEST(a_run_that_diverged_has_not_failed),
        SETTINGS_TEST(a_histogram_whose_last_bin_counts_more_is_known_by_its_maximum),
        SETTINGS_TEST(accuracies_of_fewer_images_are_named_below_the_table),
        SETTINGS_TEST(predictions_read_the_table_of_a_sweep),
        cmocka_unit_test(errors_of_a_ratio_add_up_in_squares),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
