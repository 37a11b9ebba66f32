/* ringside sweep end to end: a whole one, one that goes on, and one that is another. */
#include "tests/support/programs.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct sweep_test {
    struct program_run run;
    char folder[PROGRAM_PATH_BYTES], out[PROGRAM_PATH_BYTES + 16];
};

static int set_up(void **state)
{
    static struct sweep_test test;
    memset(&test, 0, sizeof(test));
    test.run.announce_fd = -1;
    programs_make_folder(test.folder);
    snprintf(test.out, sizeof(test.out), "%s/out", test.folder);
    *state = &test;
    return 0;
}

static int tear_down(void **state)
{
    struct sweep_test *test = *state;
    programs_remove_folder(test->folder);
    return 0;
}

/* A sweep of two modes with two seeds each. */
static int run_sweep(struct sweep_test *test, const char *steps)
{
    const char *const args[] = {"sweep",        "--out",  test->out, "--grid", "mode=ring,ps-async",
                                "--repeat",     "2",      "--model", "lenet5", "--steps",
                                steps,          "--eval", "end",     "-n",     "2",
                                "--limit-test", "50",     NULL};
    program_start(&test->run, test->folder, "deploy/ringside", false, args, NULL);
    return program_wait(&test->run);
}

static void check_said(const struct sweep_test *test, const char *text)
{
    if (strstr(program_output(&test->run), text) == NULL) {
        fail_msg("'%s' is not in: %s", text, program_output(&test->run));
    }
}

static void path_in(const struct sweep_test *test, const char *name, char *ret_path, size_t size)
{
    snprintf(ret_path, size, "%s/%s", test->out, name);
}

static void a_sweep_runs_every_combination_and_goes_on_where_it_stopped(void **state)
{
    struct sweep_test *test = *state;
    char path[2 * PROGRAM_PATH_BYTES];
    struct stat before, after;
    assert_int_equal(run_sweep(test, "2"), 0);
    check_said(test, "[4/4] mode=ps-async seed 2");
    path_in(test, "sweep.csv", path, sizeof(path));
    assert_int_equal(access(path, F_OK), 0);
    path_in(test, "sweep.md", path, sizeof(path));
    assert_int_equal(access(path, F_OK), 0);
    path_in(test, "report.html", path, sizeof(path));
    assert_int_equal(access(path, F_OK), 0);

    path_in(test, "0003-ps-async-seed1/summary.json", path, sizeof(path));
    assert_int_equal(unlink(path), 0);
    path_in(test, "0001-ring-seed1/summary.json", path, sizeof(path));
    assert_int_equal(stat(path, &before), 0);
    assert_int_equal(run_sweep(test, "2"), 0);
    check_said(test, "3 of 4 runs are there already");
    check_said(test, "[3/4] mode=ps-async seed 1");
    assert_int_equal(stat(path, &after), 0);
    assert_int_equal(before.st_ino, after.st_ino);
    path_in(test, "0003-ps-async-seed1/summary.json", path, sizeof(path));
    assert_int_equal(access(path, F_OK), 0);
}

static void a_report_of_its_folder_is_what_it_ended_with(void **state)
{
    struct sweep_test *test = *state;
    char path[2 * PROGRAM_PATH_BYTES];
    assert_int_equal(run_sweep(test, "2"), 0);
    path_in(test, "report.html", path, sizeof(path));
    assert_int_equal(unlink(path), 0);
    const char *const args[] = {"report", test->out, NULL};
    program_start(&test->run, test->folder, "deploy/ringside", false, args, NULL);
    assert_int_equal(program_wait(&test->run), 0);
    check_said(test, "mode=ps-async     2       0");
    assert_int_equal(access(path, F_OK), 0);
}

static void the_folder_of_another_sweep_is_left_alone(void **state)
{
    struct sweep_test *test = *state;
    assert_int_equal(run_sweep(test, "1"), 0);
    assert_int_equal(run_sweep(test, "2"), 1);
    check_said(test, "holds another sweep");
}

#define SWEEP_TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SWEEP_TEST(a_sweep_runs_every_combination_and_goes_on_where_it_stopped),
        SWEEP_TEST(a_report_of_its_folder_is_what_it_ended_with),
        SWEEP_TEST(the_folder_of_another_sweep_is_left_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
