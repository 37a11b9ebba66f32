/* Tests of what a process does to itself, on processes that are there for it. */
#include "common/base/fault.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* A process that a fault strikes, and that ends with 7 after it. */
static pid_t start_struck(enum fault_kind kind, double seconds)
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        _exit(fault_strike(kind, seconds) == STATUS_OK ? 7 : 1);
    }
    return pid;
}

static void a_kill_is_one_by_the_signal_that_nothing_catches(void **state)
{
    (void)state;
    int result;
    pid_t pid = start_struck(FAULT_KILL, 0);
    assert_int_equal(waitpid(pid, &result, 0), pid);
    assert_true(WIFSIGNALED(result));
    assert_int_equal(WTERMSIG(result), SIGKILL);
}

static void a_stop_ends_by_itself_and_the_process_goes_on(void **state)
{
    (void)state;
    int result;
    pid_t pid = start_struck(FAULT_STOP, 0.05);
    assert_int_equal(waitpid(pid, &result, WUNTRACED), pid);
    assert_true(WIFSTOPPED(result));
    assert_int_equal(WSTOPSIG(result), SIGSTOP);
    assert_int_equal(waitpid(pid, &result, 0), pid);
    assert_true(WIFEXITED(result));
    assert_int_equal(WEXITSTATUS(result), 7);
}

/* Whoever holds the write end of the pipe is alive: a read ends when nobody does. */
static void who_would_continue_a_process_dies_with_it(void **state)
{
    (void)state;
    int pipe_fds[2], result;
    char byte;
    assert_int_equal(pipe(pipe_fds), 0);
    pid_t pid = start_struck(FAULT_STOP, 3600);
    assert_int_equal(close(pipe_fds[1]), 0);
    assert_int_equal(waitpid(pid, &result, WUNTRACED), pid);
    assert_true(WIFSTOPPED(result));
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, &result, 0), pid);
    assert_true(WIFSIGNALED(result));
    assert_int_equal(read(pipe_fds[0], &byte, 1), 0);
    close(pipe_fds[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_kill_is_one_by_the_signal_that_nothing_catches),
        cmocka_unit_test(a_stop_ends_by_itself_and_the_process_goes_on),
        cmocka_unit_test(who_would_continue_a_process_dies_with_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
