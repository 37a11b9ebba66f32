/* Tests of folders with several runs that are watched. */
#include "common/base/folder_lock.h"
#include "deploy/watch/series.h"
#include "deploy/watch/series_screen.h"
#include "tests/support/common/temp_folder.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define JOB                                                                         \
    "{\"version\": \"0\", \"train_samples\": 100, \"options\": {\"workers\": 1, "   \
    "\"mode\": \"ring\", \"model\": \"cnn\", \"data\": \"shapes\", \"epochs\": 1, " \
    "\"steps\": 0, \"global-batch\": 10}, \"members\": []}"
#define COMPLETED                                                            \
    "{\"outcome\": \"completed\", \"steps\": 10, \"seconds\": 8.0, "         \
    "\"images_per_second\": 123.0, \"epochs\": [{\"test_accuracy\": 0.25}, " \
    "{\"test_accuracy\": 0.5}, {\"test_accuracy\": null}]}"
#define FAILED "{\"outcome\": \"failed\", \"steps\": 3, \"seconds\": 1.0, \"epochs\": []}"

static char *folder; // of the test that runs

static void add(const char *run, const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof(path), "%s/%s", run, name);
    temp_folder_write(folder, path, text, strlen(text));
}

static int open_folder(void **state)
{
    (void)state;
    folder = temp_folder_create();
    return 0;
}

static int close_folder(void **state)
{
    (void)state;
    temp_folder_destroy(folder);
    return 0;
}

static void update(struct series *series)
{
    bool is_new;
    assert_int_equal(series_update(series, &is_new), STATUS_OK);
}

static char *text_of(const struct series *series, bool is_screen)
{
    char *text = NULL;
    size_t size;
    FILE *file = open_memstream(&text, &size);
    if (is_screen) {
        series_screen_write(series, 24, 100, file);
    } else {
        series_screen_write_line(series, file);
    }
    assert_int_equal(fclose(file), 0);
    return text;
}

static void a_run_and_an_empty_folder_are_no_series(void **state)
{
    (void)state;
    char run[512];
    assert_false(series_is_there(folder));
    add("one", "job.json", JOB);
    assert_true(series_is_there(folder));
    snprintf(run, sizeof(run), "%s/one", folder);
    assert_false(series_is_there(run));
    assert_false(series_is_there("/nowhere"));
}

static void runs_are_what_their_files_say(void **state)
{
    (void)state;
    struct series series;
    add("1", "job.json", JOB);
    add("1", "summary.json", COMPLETED);
    add("2", "job.json", JOB);
    add("2", "summary.json", FAILED);
    add("2", "details.json", "{\"diverged_step\": 7}");
    add("3", "job.json", JOB);
    add("3", "summary.json", FAILED);
    add("4", "job.json", JOB); // nobody is there who could still write its summary
    add("5", "table.csv", "no run");
    assert_int_equal(series_open(folder, &series), STATUS_OK);
    update(&series);
    assert_int_equal(series.count, 4);
    assert_int_equal(series.runs[0].state, SERIES_COMPLETED);
    assert_true(series.runs[0].has_accuracy);
    assert_true(series.runs[0].accuracy > 0.49 && series.runs[0].accuracy < 0.51);
    assert_int_equal(series.runs[1].state, SERIES_DIVERGED);
    assert_int_equal(series.runs[1].step, 7);
    assert_int_equal(series.runs[2].state, SERIES_FAILED);
    assert_int_equal(series.runs[3].state, SERIES_FAILED);
    char *line = text_of(&series, false), *screen = text_of(&series, true);
    assert_string_equal(line, "4 runs: 1 completed, 1 diverged, 2 failed; nothing runs\n");
    assert_non_null(strstr(screen, "completed  1  50.00 %, 8.0 s, 123 images/s\n"));
    assert_non_null(strstr(screen, "diverged   2  at step 7\n"));
    free(line);
    free(screen);
    series_close(&series);
}

static void a_run_without_a_summary_runs_while_the_folder_is_held(void **state)
{
    (void)state;
    struct series series;
    struct folder_lock lock;
    bool is_new;
    assert_int_equal(folder_lock_take(folder, &lock), STATUS_OK);
    add("1", "job.json", JOB);
    assert_int_equal(series_open(folder, &series), STATUS_OK);
    update(&series);
    assert_true(series.is_running);
    assert_int_equal(series.runs[0].state, SERIES_RUNNING);
    assert_true(series_eta(&series) < 0); // nothing is known of its pace
    add("1", "metrics.jsonl",
        "{\"rank\": 0, \"step\": 4, \"steps\": 4, \"epoch\": 1, \"seconds\": 2.0, \"lr\": 0.1, "
        "\"loss\": 1.5, \"images_per_second\": 20, \"ms\": {}, \"staleness\": 0}\n");
    update(&series);
    assert_int_equal(series.runs[0].step, 4);
    assert_int_equal(series.runs[0].total_steps, 10);
    assert_true(series_eta(&series) > 2.9 && series_eta(&series) < 3.1); // 6 steps of half a second
    add("1", "summary.json", COMPLETED);
    add("2", "job.json", JOB); // which nobody knew of before
    update(&series);
    assert_int_equal(series.count, 2);
    assert_int_equal(series.runs[0].state, SERIES_COMPLETED);
    assert_int_equal(series.runs[1].state, SERIES_RUNNING);
    assert_true(series_eta(&series) > 7.9 && series_eta(&series) < 8.1); // as long as the first
    folder_lock_release(&lock);
    assert_int_equal(series_update(&series, &is_new), STATUS_OK);
    assert_true(is_new);
    assert_false(series.is_running);
    assert_int_equal(series.runs[1].state, SERIES_FAILED);
    series_close(&series);
}

static void many_runs_are_shown_around_the_one_that_runs(void **state)
{
    (void)state;
    struct series series = {.has_plan = true, .is_running = true, .count = 100};
    series.runs = calloc(series.count, sizeof(*series.runs));
    assert_non_null(series.runs);
    for (size_t i = 0; i < series.count; i++) {
        series.runs[i].state = i < 50    ? SERIES_COMPLETED
                               : i == 50 ? SERIES_RUNNING
                                         : SERIES_WAITING;
        series.runs[i].seconds = 1;
        snprintf(series.runs[i].label, sizeof(series.runs[i].label), "run-%03zu", i);
    }
    char *screen = text_of(&series, true);
    assert_non_null(
        strstr(screen, "100 runs: 49 waiting, 1 running, 50 completed; about 50 s to go\n"));
    assert_non_null(strstr(screen, "running    run-050"));
    assert_non_null(strstr(screen, " before\n"));
    assert_non_null(strstr(screen, "and 43 more\n"));
    assert_null(strstr(screen, "run-099"));
    free(screen);
    free(series.runs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_run_and_an_empty_folder_are_no_series, open_folder,
                                        close_folder),
        cmocka_unit_test_setup_teardown(runs_are_what_their_files_say, open_folder, close_folder),
        cmocka_unit_test_setup_teardown(a_run_without_a_summary_runs_while_the_folder_is_held,
                                        open_folder, close_folder),
        cmocka_unit_test(many_runs_are_shown_around_the_one_that_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
