/* Tests of children that are run to their end, with real ones. */
#include "deploy/system/process_run.h"

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
#include <unistd.h>

/* The exit code, or -1 if the shell was killed. */
static int run_script(const char *script, const char *input, char *ret_output, size_t output_size)
{
    const char *const argv[] = {"/bin/sh", "-c", script, NULL};
    const struct process_run_options options = {.argv = argv, .input = input};
    int code = -1;
    enum status status = process_run(&options, ret_output, output_size, &code);
    assert_true(status == STATUS_OK || status == STATUS_IO);
    return status == STATUS_OK ? code : -1;
}

static void a_run_takes_input_and_gives_output(void **state)
{
    (void)state;
    char output[64];
    assert_int_equal(run_script("read line; echo \"got $line\"", "this\n", output, sizeof(output)),
                     0);
    assert_string_equal(output, "got this\n");
    assert_int_equal(run_script("cat; exit 9", "", output, sizeof(output)), 9);
    assert_string_equal(output, "");
}

static void a_run_that_is_killed_is_an_error(void **state)
{
    (void)state;
    char output[64];
    assert_int_equal(run_script("echo before; kill -KILL $$", "", output, sizeof(output)), -1);
    assert_string_equal(output, "before\n");
}

static void a_run_of_nothing_gives_127(void **state)
{
    (void)state;
    char output[64];
    const char *const argv[] = {"/nowhere/at/all", NULL};
    const struct process_run_options options = {.argv = argv, .input = "some input"};
    int code = 0;
    assert_int_equal(process_run(&options, output, sizeof(output), &code), STATUS_OK);
    assert_int_equal(code, 127);
    assert_string_equal(output, "");
}

static void output_beyond_its_room_is_cut_and_the_child_still_ends(void **state)
{
    (void)state;
    // More than a pipe holds: a child whose output nobody reads would never end.
    static const char script[] = "head -c 1000000 /dev/zero | tr '\\0' x; exit 4";
    char output[100];
    memset(output, '#', sizeof(output));
    assert_int_equal(run_script(script, "", output, 50), 4);
    assert_int_equal(strlen(output), 49);
    assert_int_equal(strspn(output, "x"), 49);
    assert_int_equal(output[50], '#');
    char *all = malloc(1000001);
    assert_non_null(all);
    assert_int_equal(run_script(script, "", all, 1000001), 4);
    assert_int_equal(strlen(all), 1000000);
    free(all);
}

static void a_run_that_does_not_read_its_input_is_no_harm(void **state)
{
    (void)state;
    static char input[60000];
    char output[64];
    memset(input, 'x', sizeof(input) - 1);
    assert_int_equal(run_script("exec <&-; echo closed", input, output, sizeof(output)), 0);
    assert_string_equal(output, "closed\n");
}

static void a_run_has_none_of_our_variables(void **state)
{
    (void)state;
    char output[256];
    setenv("RINGSIDE_DATA", "x", 1);
    setenv("RINGSIDE_CACHE", "kept", 1);
    setenv("RINGSIDES", "kept", 1);
    int code = run_script("env | LC_ALL=C sort | grep '^RINGSIDE'", "", output, sizeof(output));
    unsetenv("RINGSIDE_DATA");
    unsetenv("RINGSIDE_CACHE");
    unsetenv("RINGSIDES");
    assert_int_equal(code, 0);
    assert_string_equal(output, "RINGSIDES=kept\nRINGSIDE_CACHE=kept\nRINGSIDE_LAUNCHER=none\n");
}

static void errors_go_with_the_output_if_asked(void **state)
{
    (void)state;
    char output[64];
    const char *const argv[] = {"/bin/sh", "-c", "echo one; echo two >&2", NULL};
    const struct process_run_options options = {.argv = argv, .input = "", .takes_errors = true};
    int code = -1;
    assert_int_equal(process_run(&options, output, sizeof(output), &code), STATUS_OK);
    assert_string_equal(output, "one\ntwo\n");
}

/* The deadline is the test's oracle, not its clock: without it the run would never end. */
static void a_run_that_hangs_is_ended_at_its_deadline(void **state)
{
    (void)state;
    static const char *const scripts[] = {"while :; do read line < /dev/tty || :; done",
                                          "exec >&-; kill -STOP $$"};
    for (size_t i = 0; i < 2; i++) {
        char output[64];
        const char *const argv[] = {"/bin/sh", "-c", scripts[i], NULL};
        const struct process_run_options options = {
            .argv = argv, .input = "", .timeout_ms = 50, .takes_errors = true};
        int code = -1;
        assert_int_equal(process_run(&options, output, sizeof(output), &code), STATUS_TIMED_OUT);
    }
}

static void a_signal_that_is_blocked_ends_a_run(void **state)
{
    (void)state;
    static const int signals[] = {SIGINT, SIGTERM};
    sigset_t blocked, before;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGINT);
    sigaddset(&blocked, SIGTERM);
    sigprocmask(SIG_BLOCK, &blocked, &before);
    for (size_t i = 0; i < 2; i++) {
        char script[64], output[64];
        snprintf(script, sizeof(script), "kill -%d %ld; kill -STOP $$", signals[i], (long)getpid());
        const char *const argv[] = {"/bin/sh", "-c", script, NULL};
        const struct process_run_options options = {.argv = argv, .input = ""};
        int code = -1;
        assert_int_equal(process_run(&options, output, sizeof(output), &code), STATUS_INTERRUPTED);
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_takes_input_and_gives_output),
        cmocka_unit_test(a_run_that_is_killed_is_an_error),
        cmocka_unit_test(a_run_of_nothing_gives_127),
        cmocka_unit_test(output_beyond_its_room_is_cut_and_the_child_still_ends),
        cmocka_unit_test(a_run_that_does_not_read_its_input_is_no_harm),
        cmocka_unit_test(a_run_has_none_of_our_variables),
        cmocka_unit_test(errors_go_with_the_output_if_asked),
        cmocka_unit_test(a_run_that_hangs_is_ended_at_its_deadline),
        cmocka_unit_test(a_signal_that_is_blocked_ends_a_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
