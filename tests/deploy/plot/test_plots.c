/* Tests of plots: what a summary says is never taken for a command. */
#include "deploy/plot/plots.h"
#include "deploy/plot/scaling_plots.h"
#include "tests/support/common/captured_log.h"
#include "tests/support/common/temp_folder.h"
#include "tests/support/deploy/has_gnuplot.h"
#include "tests/support/deploy/sample_runs.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void a_mode_that_reads_like_a_command_is_not_run(void **state)
{
    (void)state;
    char *folder = temp_folder_create();
    char planted[4096];
    snprintf(planted, sizeof(planted), "%s/planted", folder);
    struct run_folder run = {.summary = json_object()};
    snprintf(run.path, sizeof(run.path), "%s", folder);
    snprintf(run.label, sizeof(run.label), "`touch %.90s`\" \\", planted);
    struct run_groups groups;
    json_object_set_new(run.summary, "mode", json_string(run.label));
    assert_int_equal(run_groups_of(&run, 1, &groups), STATUS_OK);
    assert_int_equal(plots_write(folder, &groups), STATUS_OK);
    run_groups_finish(&groups);
    assert_int_not_equal(access(planted, F_OK), 0);
    run_folder_close(&run);
    temp_folder_destroy(folder);
}

/* A job that failed before its first report has no losses, no epochs and no rates. */
static void runs_without_any_number_have_all_their_plots(void **state)
{
    (void)state;
    if (!has_gnuplot()) {
        print_message("skipped: gnuplot is not installed\n");
        skip();
    }
    char *folder = temp_folder_create();
    struct run_folder runs[2] = {{.summary = json_object(), .label = "ring, N = 2"},
                                 {.summary = json_object(), .label = "local, N = 1"}};
    for (size_t i = 0; i < 2; i++) {
        snprintf(runs[i].path, sizeof(runs[i].path), "%s", folder);
    }
    struct run_groups groups;
    assert_int_equal(run_groups_of(runs, 2, &groups), STATUS_OK);
    captured_log_begin();
    enum status status = plots_write(folder, &groups);
    assert_string_equal(captured_log_end(), ""); // gnuplot's warnings are not the user's
    assert_int_equal(status, STATUS_OK);
    for (size_t i = 0; plots[i].name != NULL; i++) {
        char path[4096];
        bool is_there = !scaling_plots_has(&plots[i]); // no design has two numbers of workers
        snprintf(path, sizeof(path), "%s/%s.svg", folder, plots[i].name);
        assert_int_equal(access(path, F_OK) == 0, is_there);
        snprintf(path, sizeof(path), "%s/%s.png", folder, plots[i].name);
        assert_int_equal(access(path, F_OK) == 0, is_there);
    }
    run_groups_finish(&groups);
    run_folder_close(&runs[0]);
    run_folder_close(&runs[1]);
    temp_folder_destroy(folder);
}

/* Ranks that race report steps in turns: their curve must not go back. */
static void a_curve_over_steps_never_goes_back(void **state)
{
    (void)state;
    if (!has_gnuplot()) {
        print_message("skipped: gnuplot is not installed\n");
        skip();
    }
    static const char metrics[] = "{\"rank\": 0, \"step\": 10, \"loss\": 2.0}\n"
                                  "{\"rank\": 0, \"step\": 20, \"loss\": 1.0}\n"
                                  "{\"rank\": 1, \"step\": 10, \"loss\": 1.9}\n"
                                  "{\"rank\": 0, \"step\": 30, \"loss\": 0.8}\n"
                                  "{\"rank\": 1, \"step\": 20, \"loss\": 0.9}\n";
    char *folder = temp_folder_create();
    struct run_folder run = {.summary = json_pack("{s:s}", "mode", "ps-async")};
    struct run_groups groups;
    snprintf(run.path, sizeof(run.path), "%s", folder);
    temp_folder_write(folder, "metrics.jsonl", metrics, sizeof(metrics) - 1);
    assert_int_equal(run_groups_of(&run, 1, &groups), STATUS_OK);
    assert_int_equal(plots_write(folder, &groups), STATUS_OK);
    char *picture = sample_runs_read(folder, "loss-steps.svg");
    const char *plot = strstr(picture, "id=\"gnuplot_plot_1\"");
    assert_non_null(plot);
    const char *at = strstr(plot, "d='M");
    assert_non_null(at);
    double before = 0;
    size_t points = 0;
    for (at += strlen("d='"); *at == 'M' || *at == 'L'; points++) {
        double x = strtod(at + 1, NULL);
        if (*at == 'M') { // behind the line of the legend
            before = 0;
            points = 0;
        }
        assert_true(x > before);
        before = x;
        at += strcspn(at + 1, "ML'") + 1;
    }
    assert_int_equal(points, 3);
    free(picture);
    run_groups_finish(&groups);
    run_folder_close(&run);
    temp_folder_destroy(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_mode_that_reads_like_a_command_is_not_run),
        cmocka_unit_test(runs_without_any_number_have_all_their_plots),
        cmocka_unit_test(a_curve_over_steps_never_goes_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
