/* ringside sweep end to end: a whole one, one that goes on, and one that is another. */
#include "tests/support/programs/programs.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A sweep of two modes with two seeds each. */
static int run_sweep(struct command_test *test, const char *steps)
{
    const char *const args[] = {"sweep",        "--out",  test->out, "--grid", "mode=ring,ps-async",
                                "--repeat",     "2",      "--model", "lenet5", "--steps",
                                steps,          "--eval", "end",     "-n",     "2",
                                "--limit-test", "50",     NULL};
    program_start(&test->run, test->folder, "deploy/ringside", false, args, NULL);
    return program_wait(&test->run);
}

static void check_said(const struct command_test *test, const char *text)
{
    if (strstr(program_output(&test->run), text) == NULL) {
        fail_msg("'%s' is not in: %s", text, program_output(&test->run));
    }
}

static void path_in(const struct command_test *test, const char *name, char *ret_path, size_t size)
{
    snprintf(ret_path, size, "%s/%s", test->out, name);
}

static void a_sweep_runs_every_combination_and_goes_on_where_it_stopped(void **state)
{
    struct command_test *test = *state;
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
    struct command_test *test = *state;
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

/* With the second rate every loss is infinite: that is what was asked, and is not asked again. */
static void a_run_that_diverges_is_a_result(void **state)
{
    struct command_test *test = *state;
    const char *const args[] = {"sweep",   "--out",  test->out,       "--grid", "lr=0.01,1000",
                                "--mode",  "ring",   "--model",       "lenet5", "--steps",
                                "20",      "--eval", "none",          "-n",     "2",
                                "--batch", "4",      "--limit-train", "120",    "--limit-test",
                                "50",      NULL};
    for (size_t i = 0; i < 2; i++) {
        program_start(&test->run, test->folder, "deploy/ringside", false, args, NULL);
        assert_int_equal(program_wait(&test->run), 0);
        check_said(test, i == 0 ? "lr=1000 seed 1: diverged at step" : "2 of 2 runs are there");
        check_said(test, "1 at step");
    }
}

static void the_folder_of_another_sweep_is_left_alone(void **state)
{
    struct command_test *test = *state;
    assert_int_equal(run_sweep(test, "1"), 0);
    assert_int_equal(run_sweep(test, "2"), 1);
    check_said(test, "holds another sweep");
}

/* Batch normalisation over all workers is not for a model without any. */
static void every_combination_is_tried_before_the_first_one_runs(void **state)
{
    struct command_test *test = *state;
    const char *const args[] = {"sweep",  "--out",  test->out, "--grid", "sync-bn=false,true",
                                "--mode", "ring",   "--model", "lenet5", "--steps",
                                "1",      "--eval", "none",    NULL};
    program_start(&test->run, test->folder, "deploy/ringside", false, args, NULL);
    assert_int_equal(program_wait(&test->run), 1);
    check_said(test, "--sync-bn is for models with batch normalisation");
    assert_int_not_equal(access(test->out, F_OK), 0);
}

/* The first one is stopped in the middle of a job that would take very long. */
static void a_second_sweep_with_the_same_folder_is_refused_and_told_who_has_it(void **state)
{
    struct command_test *test = *state;
    struct program_run first = {.announce_fd = -1};
    char path[2 * PROGRAM_PATH_BYTES], holder[64];
    const char *const args[] = {"sweep",  "--out",   test->out, "--grid", "mode=local", "--model",
                                "lenet5", "--steps", "100000",  "--eval", "none",       NULL};
    assert_int_equal(mkdir(test->out, 0700), 0); // to watch it
    program_start(&first, test->folder, "deploy/ringside", false, args, NULL);
    programs_wait_for_file(test->out, "sweep.txt");
    program_start(&test->run, test->folder, "deploy/ringside", false, args, NULL);
    assert_int_equal(program_wait(&test->run), 1);
    snprintf(holder, sizeof(holder), "pid %ld, since", (long)first.pid);
    check_said(test, "is in use by another ringside");
    check_said(test, holder);
    program_kill(&first, SIGTERM);
    assert_int_equal(program_wait(&first), 130);
    path_in(test, ".ringside.lock", path, sizeof(path));
    assert_int_not_equal(access(path, F_OK), 0);
}

#define SWEEP_TEST(function) \
    cmocka_unit_test_setup_teardown(function, command_test_set_up, command_test_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SWEEP_TEST(a_sweep_runs_every_combination_and_goes_on_where_it_stopped),
        SWEEP_TEST(a_report_of_its_folder_is_what_it_ended_with),
        SWEEP_TEST(every_combination_is_tried_before_the_first_one_runs),
        SWEEP_TEST(a_second_sweep_with_the_same_folder_is_refused_and_told_who_has_it),
        SWEEP_TEST(a_run_that_diverges_is_a_result),
        SWEEP_TEST(the_folder_of_another_sweep_is_left_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
