/* Tests of reading run folders. */
#include "deploy/report/run_folder.h"
#include "tests/support/common/captured_log.h"
#include "tests/support/common/temp_folder.h"
#include "tests/support/deploy/sample_runs.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdio.h>
#include <string.h>

static int set_up(void **state)
{
    *state = temp_folder_create();
    return 0;
}

static int tear_down(void **state)
{
    temp_folder_destroy(*state);
    return 0;
}

/* Opens FOLDER/NAME with this text as its summary. */
static void open_text(const char *folder, const char *name, const char *summary,
                      struct run_folder *ret_run)
{
    char path[RUN_FOLDER_PATH_MAX];
    snprintf(path, sizeof(path), "%s/summary.json", name);
    temp_folder_write(folder, path, summary, strlen(summary));
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    assert_int_equal(run_folder_open(path, ret_run), STATUS_OK);
}

static void check_value(const struct run_folder *run, const char *key, const char *expected)
{
    char text[256] = "untouched";
    run_folder_value(run, key, text, sizeof(text));
    if (strcmp(text, expected) != 0) {
        fail_msg("%s is '%s', not '%s'", key, text, expected);
    }
}

static void check_format(const struct run_folder *run, const char *key, const char *expected)
{
    char text[256] = "untouched";
    run_folder_format(run, key, text, sizeof(text));
    if (strcmp(text, expected) != 0) {
        fail_msg("%s reads '%s', not '%s'", key, text, expected);
    }
}

static void values_are_found_by_keys_with_dots(void **state)
{
    struct run_folder run;
    sample_runs_open(*state, "run", &(struct sample_run){0}, &run);
    check_value(&run, "mode", "ring");
    check_value(&run, "parameters", "83126");
    check_value(&run, "lr", "0.5");
    check_value(&run, "ms_per_step.compute", "6.5");
    check_value(&run, "bytes_per_step.worker_received", "2048");
    check_value(&run, "staleness.histogram", "[3,1]");
    check_value(&run, "late_gradients", "0");
    check_value(&run, "target.steps", "");
    check_value(&run, "nothing", "");
    check_value(&run, "ms_per_step.nothing", "");
    check_value(&run, "ms_per_step.compute.deeper", "");
    check_value(&run, "mode.deeper", "");
    check_value(&run, "reason", "");
    run_folder_close(&run);
}

static void a_job_that_has_lost_a_server_has_those_that_it_began_with(void **state)
{
    static const char summary[] = "{\"mode\": \"ps-sync\", \"workers\": 4, \"servers\": 1}";
    static const char began[] = "{\"options\": {\"servers\": 2}}";
    struct run_folder run;
    temp_folder_write(*state, "lost/job.json", began, strlen(began));
    open_text(*state, "lost", summary, &run);
    check_value(&run, "servers", "2");
    assert_string_equal(run.label, "ps-sync, N = 4, K = 2");
    run_folder_close(&run);
}

static void results_are_those_of_the_last_epoch(void **state)
{
    struct run_folder run;
    sample_runs_open(*state, "run", &(struct sample_run){0}, &run);
    check_value(&run, "train_loss", "0.5");
    check_value(&run, "test_loss", "0.75");
    check_value(&run, "test_accuracy", "0.8125");
    assert_float_equal(run_folder_number(&run, "test_accuracy"), 0.8125, 0);
    run_folder_close(&run);
}

static void what_was_not_evaluated_in_the_end_was_so_before(void **state)
{
    static const char summary[] = "{\"epochs\": [{\"test_accuracy\": 0.5, \"train_loss\": 2.0},"
                                  "{\"test_accuracy\": null, \"train_loss\": 1.0}]}";
    struct run_folder run;
    char path[RUN_FOLDER_PATH_MAX];
    temp_folder_write(*state, "run/summary.json", summary, strlen(summary));
    snprintf(path, sizeof(path), "%s/run", (const char *)*state);
    assert_int_equal(run_folder_open(path, &run), STATUS_OK);
    check_value(&run, "test_accuracy", "0.5");
    check_value(&run, "train_loss", "1");
    run_folder_close(&run);
}

static void a_run_without_epochs_has_no_results(void **state)
{
    static const char *const summaries[] = {
        "{}",
        "{\"epochs\": []}",
        "{\"epochs\": 7}",
        "{\"epochs\": [3]}",
        "{\"epochs\": [{\"test_accuracy\": null, \"test_loss\": null, \"train_loss\": null}]}",
        "{\"test_accuracy\": 0.5}",
    };
    for (size_t i = 0; i < sizeof(summaries) / sizeof(summaries[0]); i++) {
        struct run_folder run;
        open_text(*state, "run", summaries[i], &run);
        check_value(&run, "test_accuracy", "");
        check_value(&run, "test_loss", "");
        check_value(&run, "train_loss", "");
        check_format(&run, "test_accuracy", "-");
        assert_float_equal(run_folder_number(&run, "train_loss"), 0, 0);
        run_folder_close(&run);
    }
}

static void people_read_percent_and_round_numbers(void **state)
{
    struct run_folder run;
    sample_runs_open(*state, "run", &(struct sample_run){.images_per_second = 1234.56}, &run);
    check_format(&run, "test_accuracy", "81.25 %");
    check_format(&run, "images_per_second", "1235");
    check_format(&run, "ms_per_step.compute", "6.50");
    check_format(&run, "workers", "2");
    check_format(&run, "mode", "ring");
    check_format(&run, "nothing", "-");
    check_format(&run, "reason", "-"); // empty
    run_folder_close(&run);
}

/* Of 2000 images, in a job that evaluated with all of its workers, then without some. */
static void accuracies_of_fewer_images_say_so(void **state)
{
    static const struct {
        const char *model;                    // a program's own processes may evaluate a part each
        unsigned first, last;                 // images of the two evaluations; the first is better
        const char *expected, *expected_best; // as people read them
    } cases[] = {
        {"cnn", 2000, 2000, "50.00 %", "60.00 %"},
        {"cnn", 2000, 1500, "50.00 % (1500 of 2000 images)", "60.00 %"},
        {"cnn", 1500, 500, "50.00 % (500 of 2000 images)", "60.00 % (1500 of 2000 images)"},
        {"external:a", 2000, 500, "50.00 %", "60.00 %"},
    };
    static const char job[] = "{\"test_samples\": 2000}";
    temp_folder_write(*state, "run/job.json", job, strlen(job));
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char summary[400];
        struct run_folder run;
        snprintf(summary, sizeof(summary),
                 "{\"model\": \"%s\", \"best_accuracy\": 0.6, \"epochs\": ["
                 "{\"epoch\": 1, \"test_accuracy\": 0.6, \"test_images\": %u}, "
                 "{\"epoch\": 2, \"test_accuracy\": 0.5, \"test_images\": %u}]}",
                 cases[i].model, cases[i].first, cases[i].last);
        open_text(*state, "run", summary, &run);
        check_format(&run, "test_accuracy", cases[i].expected);
        check_format(&run, "best_accuracy", cases[i].expected_best);
        check_value(&run, "test_accuracy", "0.5");
        run_folder_close(&run);
    }
}

/* Without job.json nobody knows how many there are. */
static void accuracies_of_an_unknown_test_set_say_nothing(void **state)
{
    struct run_folder run;
    open_text(*state, "run", "{\"epochs\": [{\"test_accuracy\": 0.5, \"test_images\": 7}]}", &run);
    check_format(&run, "test_accuracy", "50.00 %");
    run_folder_close(&run);
}

static void numbers_are_0_where_there_is_none(void **state)
{
    struct run_folder run;
    sample_runs_open(*state, "run", &(struct sample_run){0}, &run);
    assert_float_equal(run_folder_number(&run, "workers"), 2, 0);
    assert_float_equal(run_folder_number(&run, "ms_per_step.total"), 6.875, 0);
    assert_float_equal(run_folder_number(&run, "mode"), 0, 0);
    assert_float_equal(run_folder_number(&run, "nothing"), 0, 0);
    run_folder_close(&run);
}

static void values_are_cut_to_their_room(void **state)
{
    struct run_folder run;
    char text[8];
    sample_runs_open(*state, "run", &(struct sample_run){0}, &run);
    run_folder_value(&run, "params_digest", text, sizeof(text));
    assert_string_equal(text, "1111111");
    run_folder_value(&run, "epochs", text, sizeof(text));
    assert_int_equal(strlen(text), 7);
    run_folder_close(&run);
}

/* The transport only if one was asked for. */
static void labels_say_the_mode_and_the_sizes(void **state)
{
    static const char *const cases[][3] = {
        {"{\"mode\": \"ring\", \"workers\": 4, \"servers\": 0, \"transport\": \"shm\"}",
         "ring, N = 4", "{\"options\": {\"transport\": \"auto\"}}"},
        {"{\"mode\": \"ps-sync\", \"workers\": 4, \"servers\": 2, \"transport\": \"tcp\"}",
         "ps-sync, N = 4, K = 2, tcp", "{\"options\": {\"transport\": \"tcp\"}}"},
        {"{}", "?, N = 0", "{}"},
        {"{\"mode\": 7, \"workers\": \"x\", \"servers\": [], \"transport\": {}}", "?, N = 0",
         "{\"options\": {\"transport\": 3}}"},
        {"{\"mode\": \"0123456789012345678901234567890123456789and more\", \"workers\": 1}",
         "0123456789012345678901234567890123456789, N = 1", "[]"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct run_folder run;
        temp_folder_write(*state, "run/job.json", cases[i][2], strlen(cases[i][2]));
        open_text(*state, "run", cases[i][0], &run);
        assert_string_equal(run.label, cases[i][1]);
        run_folder_close(&run);
    }
}

static void a_run_that_diverged_has_an_outcome_of_its_own(void **state)
{
    struct run_folder run;
    char text[64];
    unsigned long long step = 0;
    sample_runs_open(*state, "whole", &(struct sample_run){0}, &run);
    assert_false(run_folder_has_diverged(&run, &step));
    run_folder_outcome(&run, text, sizeof(text));
    assert_string_equal(text, "completed");
    json_object_set_new(run.details, "unmet", json_pack("[s]", "--timeline-steps 9 has recorded"));
    run_folder_outcome(&run, text, sizeof(text));
    assert_string_equal(text, "completed");
    json_object_set_new(run.details, "unmet",
                        json_pack("[s]", "--fault after=step:3,join did not strike: no worker"));
    run_folder_outcome(&run, text, sizeof(text));
    assert_string_equal(text, "completed, not all faults struck");
    run_folder_close(&run);
    sample_runs_open(*state, "diverged",
                     &(struct sample_run){.outcome = "failed", .diverged_step = 57}, &run);
    assert_true(run_folder_has_diverged(&run, &step));
    assert_int_equal(step, 57);
    run_folder_outcome(&run, text, sizeof(text));
    assert_string_equal(text, "diverged at step 57");
    assert_false(run_folder_is_completed(&run));
    run_folder_close(&run);
}

static void only_completed_runs_are_completed(void **state)
{
    static const struct {
        const char *summary;
        bool is_completed;
    } cases[] = {
        {"{\"outcome\": \"completed\"}", true},
        {"{\"outcome\": \"failed\"}", false},
        {"{\"outcome\": 1}", false},
        {"{\"outcome\": null}", false},
        {"{}", false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct run_folder run;
        open_text(*state, "run", cases[i].summary, &run);
        assert_int_equal(run_folder_is_completed(&run), cases[i].is_completed);
        run_folder_close(&run);
    }
}

static void the_job_is_read_if_it_is_there(void **state)
{
    static const char job[] = "{\"train_samples\": 8192}", broken[] = "{";
    struct run_folder run;
    sample_runs_open(*state, "run", &(struct sample_run){0}, &run);
    assert_null(run.job);
    run_folder_close(&run);
    temp_folder_write(*state, "run/job.json", job, strlen(job));
    sample_runs_open(*state, "run", &(struct sample_run){0}, &run);
    assert_int_equal(json_integer_value(json_object_get(run.job, "train_samples")), 8192);
    run_folder_close(&run);
    assert_null(run.summary);
    temp_folder_write(*state, "run/job.json", broken, strlen(broken));
    sample_runs_open(*state, "run", &(struct sample_run){0}, &run);
    assert_null(run.job);
    run_folder_close(&run);
}

static void broken_folders_are_refused_by_name(void **state)
{
    static const char *const summaries[] = {"",  "{",     "[1, 2]",      "null",
                                            "7", "\"x\"", "{\"a\": 1}}", "{\"a\": \"\xff\"}"};
    char path[RUN_FOLDER_PATH_MAX];
    snprintf(path, sizeof(path), "%s/broken", (const char *)*state);
    for (size_t i = 0; i < sizeof(summaries) / sizeof(summaries[0]); i++) {
        struct run_folder run;
        temp_folder_write(*state, "broken/summary.json", summaries[i], strlen(summaries[i]));
        captured_log_begin();
        enum status status = run_folder_open(path, &run);
        const char *log = captured_log_end();
        assert_int_equal(status, STATUS_MALFORMED);
        assert_non_null(strstr(log, path));
        assert_non_null(strstr(log, "is not a run folder: summary.json: "));
    }
}

static void a_folder_that_is_not_there_is_refused(void **state)
{
    struct run_folder run;
    char path[RUN_FOLDER_PATH_MAX];
    snprintf(path, sizeof(path), "%s/missing", (const char *)*state);
    captured_log_begin();
    enum status status = run_folder_open(path, &run);
    assert_non_null(strstr(captured_log_end(), path));
    assert_int_equal(status, STATUS_MALFORMED);
}

static void a_path_that_is_too_long_is_refused(void **state)
{
    (void)state;
    static char path[RUN_FOLDER_PATH_MAX + 1];
    struct run_folder run;
    memset(path, 'a', sizeof(path) - 1);
    captured_log_begin();
    enum status status = run_folder_open(path, &run);
    assert_non_null(strstr(captured_log_end(), "too long"));
    assert_int_equal(status, STATUS_INVALID);
}

#define FOLDER_TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        FOLDER_TEST(values_are_found_by_keys_with_dots),
        FOLDER_TEST(a_job_that_has_lost_a_server_has_those_that_it_began_with),
        FOLDER_TEST(results_are_those_of_the_last_epoch),
        FOLDER_TEST(what_was_not_evaluated_in_the_end_was_so_before),
        FOLDER_TEST(a_run_without_epochs_has_no_results),
        FOLDER_TEST(people_read_percent_and_round_numbers),
        FOLDER_TEST(accuracies_of_fewer_images_say_so),
        FOLDER_TEST(accuracies_of_an_unknown_test_set_say_nothing),
        FOLDER_TEST(numbers_are_0_where_there_is_none),
        FOLDER_TEST(values_are_cut_to_their_room),
        FOLDER_TEST(labels_say_the_mode_and_the_sizes),
        FOLDER_TEST(only_completed_runs_are_completed),
        FOLDER_TEST(a_run_that_diverged_has_an_outcome_of_its_own),
        FOLDER_TEST(the_job_is_read_if_it_is_there),
        FOLDER_TEST(broken_folders_are_refused_by_name),
        FOLDER_TEST(a_folder_that_is_not_there_is_refused),
        cmocka_unit_test(a_path_that_is_too_long_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
