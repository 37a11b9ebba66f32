/* Tests of plots: what a summary says is never taken for a command. */
#include "deploy/report/plots.h"
#include "tests/support/common/captured_log.h"
#include "tests/support/common/temp_folder.h"
#include "tests/support/deploy/has_gnuplot.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
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
    assert_int_equal(plots_write(folder, &run, 1), STATUS_OK);
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
    captured_log_begin();
    enum status status = plots_write(folder, runs, 2);
    assert_string_equal(captured_log_end(), ""); // gnuplot's warnings are not the user's
    assert_int_equal(status, STATUS_OK);
    for (size_t i = 0; plots[i].name != NULL; i++) {
        char path[4096];
        snprintf(path, sizeof(path), "%s/%s.svg", folder, plots[i].name);
        assert_int_equal(access(path, F_OK), 0);
        snprintf(path, sizeof(path), "%s/%s.png", folder, plots[i].name);
        assert_int_equal(access(path, F_OK), 0);
    }
    run_folder_close(&runs[0]);
    run_folder_close(&runs[1]);
    temp_folder_destroy(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_mode_that_reads_like_a_command_is_not_run),
        cmocka_unit_test(runs_without_any_number_have_all_their_plots),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
