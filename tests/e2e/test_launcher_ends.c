/* The launcher's bad moments: what hangs before the job, and a coordinator that is killed. Its
 * programs are stood in for by scripts, which RINGSIDE_LIBEXEC lets it find. */
#include "tests/support/programs.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct launcher_test {
    struct program_run run;
    char folder[PROGRAM_PATH_BYTES], libexec[PROGRAM_PATH_BYTES + 32];
    char out[PROGRAM_PATH_BYTES + 16];
};

static int set_up(void **state)
{
    static struct launcher_test test;
    memset(&test, 0, sizeof(test));
    test.run.announce_fd = -1;
    programs_make_folder(test.folder);
    snprintf(test.out, sizeof(test.out), "%s/out", test.folder);
    snprintf(test.libexec, sizeof(test.libexec), "RINGSIDE_LIBEXEC=%s", test.folder);
    *state = &test;
    return 0;
}

static int tear_down(void **state)
{
    struct launcher_test *test = *state;
    programs_remove_folder(test->folder);
    return 0;
}

/* A script in the place of a program. %1$s is the test's folder, %2$s the build's. */
static void stand_in(const struct launcher_test *test, const char *name, const char *script)
{
    char path[2 * PROGRAM_PATH_BYTES];
    snprintf(path, sizeof(path), "%s/%s", test->folder, name);
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    fprintf(file, "#!/bin/sh\nfolder='%s'\nbuild='%s'\n%s\n", test->folder,
            getenv("RINGSIDE_TEST_BUILD"), script);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(path, 0700), 0);
}

static void start(struct launcher_test *test, const char *const *arguments)
{
    const char *args[PROGRAM_ARGS_MAX] = {"run", "--out", test->out};
    size_t count = 3;
    for (size_t i = 0; arguments[i] != NULL; i++) {
        args[count++] = arguments[i];
    }
    const char *const environment[] = {test->libexec, NULL};
    program_start(&test->run, test->folder, "deploy/ringside", false, args, environment);
}

static const char whole_worker[] = "exec \"$build/worker/worker\" \"$@\"";
static const char whole_ps[] = "exec \"$build/ps-server/ps\" \"$@\"";
// Says that it is there, and stops itself.
static const char hanging[] = ": > \"$folder/started\"; kill -STOP $$";

static void an_interrupt_during_the_trial_exits_with_130_and_writes_nothing(void **state)
{
    struct launcher_test *test = *state;
    static const char *const arguments[] = {"--steps", "1", NULL};
    stand_in(test, "ps", whole_ps);
    stand_in(test, "worker", hanging);
    start(test, arguments);
    programs_wait_for_file(test->folder, "started");
    program_kill(&test->run, SIGINT);
    assert_int_equal(program_wait(&test->run), 130);
    assert_string_equal(program_output(&test->run), "");
    assert_int_not_equal(access(test->out, F_OK), 0);
}

static void a_trial_that_hangs_is_ended_and_named(void **state)
{
    struct launcher_test *test = *state;
    static const char *const arguments[] = {"--steps", "1", "--start-timeout", "0.2", NULL};
    stand_in(test, "ps", whole_ps);
    stand_in(test, "worker", hanging);
    start(test, arguments);
    assert_int_equal(program_wait(&test->run), 1);
    assert_non_null(strstr(program_output(&test->run), "--start-timeout"));
    assert_int_not_equal(access(test->out, F_OK), 0);
}

static void an_interrupt_before_the_coordinator_listens_exits_with_130(void **state)
{
    struct launcher_test *test = *state;
    static const char *const arguments[] = {"--steps", "1", NULL};
    stand_in(test, "ps", hanging);
    stand_in(test, "worker", whole_worker);
    start(test, arguments);
    programs_wait_for_file(test->folder, "started");
    program_kill(&test->run, SIGTERM);
    assert_int_equal(program_wait(&test->run), 130);
}

static void a_coordinator_that_is_killed_leaves_a_whole_summary(void **state)
{
    struct launcher_test *test = *state;
    static const char *const arguments[] = {
        "-n", "2",      "--mode", "ring", "--model", "lenet5", "--epochs", "1000", "--report-every",
        "1",  "--eval", "none",   NULL};
    stand_in(test, "ps", "echo [$$] > \"$folder/pid\"; exec \"$build/ps-server/ps\" \"$@\"");
    stand_in(test, "worker", whole_worker);
    assert_int_equal(mkdir(test->out, 0700), 0); // to watch it
    start(test, arguments);
    programs_wait_for_file(test->out, "metrics.jsonl");
    json_t *pid = programs_read_json(test->folder, "pid");
    assert_int_equal(kill((pid_t)json_integer_value(json_array_get(pid, 0)), SIGKILL), 0);
    json_decref(pid);
    assert_int_equal(program_wait(&test->run), 1);
    json_t *summary = programs_read_json(test->out, "summary.json");
    assert_int_equal(json_object_size(summary), 26); // test_ringside.c has their names
    assert_string_equal(json_string_value(json_object_get(summary, "outcome")), "failed");
    assert_non_null(
        strstr(json_string_value(json_object_get(summary, "reason")), "killed by signal 9"));
    assert_true(json_is_integer(json_object_get(summary, "steps")));
    assert_int_equal(json_integer_value(json_object_get(summary, "parameters")), 83126);
    json_decref(summary);
    char reserve[2 * PROGRAM_PATH_BYTES];
    snprintf(reserve, sizeof(reserve), "%s/.summary.reserve", test->out);
    assert_int_not_equal(access(reserve, F_OK), 0);
}

#define LAUNCHER_TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        LAUNCHER_TEST(an_interrupt_during_the_trial_exits_with_130_and_writes_nothing),
        LAUNCHER_TEST(a_trial_that_hangs_is_ended_and_named),
        LAUNCHER_TEST(an_interrupt_before_the_coordinator_listens_exits_with_130),
        LAUNCHER_TEST(a_coordinator_that_is_killed_leaves_a_whole_summary),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
