/* Tests of plots: what a summary says is never taken for a command. */
#include "deploy/plots.h"
#include "tests/support/temp_folder.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_mode_that_reads_like_a_command_is_not_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
