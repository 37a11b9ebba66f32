/* Tests of child processes, with real ones. */
#include "deploy/system/process.h"
#include "tests/support/common/captured_log.h"
#include "tests/support/common/patience.h"
#include "tests/support/common/temp_folder.h"
#include "tests/support/deploy/sample_runs.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define WAIT_MS_MAX 60000
#define CHILD_FD    9 // which every shell can redirect

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

#define KILLED "was killed by signal 9 (killed; is memory short, or has somebody killed it?)"

/* Waits for their ends. */
static void end_all(struct process *processes, unsigned count)
{
    process_end_all(processes, count, (unsigned)patience_ms(WAIT_MS_MAX));
}

/* Starts a shell with the script; FOLDER/log has what it writes. */
static void start(const char *folder, const char *script, struct process *ret_process)
{
    char log[PROCESS_PATH_MAX];
    const char *const argv[] = {"/bin/sh", "-c", script, NULL};
    snprintf(log, sizeof(log), "%s/log", folder);
    assert_int_equal(
        process_start(ret_process, "child", &(struct process_options){.argv = argv, .log = log}),
        STATUS_OK);
}

/* The same, with a connection: the script has it as descriptor 9, the test has ours. */
static int start_connected(const char *folder, const char *script, struct process *ret_process)
{
    char log[PROCESS_PATH_MAX];
    const char *const argv[] = {"/bin/sh", "-c", script, NULL};
    const int fd = CHILD_FD;
    int ends[2];
    snprintf(log, sizeof(log), "%s/log", folder);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    assert_int_equal(dup3(ends[1], CHILD_FD, O_CLOEXEC), CHILD_FD);
    close(ends[1]);
    assert_int_equal(
        process_start(ret_process, "child",
                      &(struct process_options){
                          .argv = argv, .log = log, .extra_fds = &fd, .extra_count = 1}),
        STATUS_OK);
    close(CHILD_FD);
    return ends[0];
}

/* Waits for the line that a connected child says when it is where the test wants it. */
static void wait_until_ready(int fd)
{
    char text[16] = "";
    struct pollfd item = {.fd = fd, .events = POLLIN};
    assert_int_equal(poll(&item, 1, patience_ms(WAIT_MS_MAX)), 1);
    assert_true(read(fd, text, sizeof(text) - 1) > 0);
    assert_string_equal(text, "ready\n");
}

static void check_end(const struct process *process, const char *expected)
{
    char text[128];
    assert_true(process->is_over);
    process_describe_end(process->result, text, sizeof(text));
    assert_string_equal(text, expected);
}

static void exit_codes_are_described(void **state)
{
    static const char *const scripts[] = {"exit 0", "exit 3", "exit 130"};
    static const char *const expected[] = {"ended with exit code 0", "ended with exit code 3",
                                           "ended with exit code 130"};
    struct process processes[3];
    for (size_t i = 0; i < 3; i++) {
        start(*state, scripts[i], &processes[i]);
        assert_string_equal(processes[i].name, "child");
    }
    end_all(processes, 3);
    for (size_t i = 0; i < 3; i++) {
        check_end(&processes[i], expected[i]);
    }
}

static void a_kill_by_signal_is_described(void **state)
{
    struct process process;
    int fd = start_connected(*state, "echo ready >&9; read line <&9", &process);
    wait_until_ready(fd);
    process_reap(&process, 1);
    assert_false(process.is_over);
    process_signal(&process, SIGKILL);
    end_all(&process, 1);
    check_end(&process, KILLED);
    close(fd);
}

static void signals_are_described_with_what_usually_sends_them(void **state)
{
    (void)state;
    static const struct {
        int result;
        const char *text;
    } cases[] = {
        {SIGBUS, "was killed by signal 7 (bus error; was a data file truncated?)"},
        {SIGSEGV, "was killed by signal 11 (segmentation fault)"},
        {SIGABRT | 0x80, "was killed by signal 6 (aborted; its log says why)"}, // with a core dump
        {60, "was killed by signal 60"},
        {3 << 8, "ended with exit code 3"},
    };
    char text[128];
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        process_describe_end(cases[i].result, text, sizeof(text));
        assert_string_equal(text, cases[i].text);
    }
    process_name_signal(SIGHUP, text, sizeof(text));
    assert_string_equal(text, "SIGHUP");
}

static void a_stop_is_told_once_and_so_is_going_on(void **state)
{
    struct process process;
    siginfo_t info;
    int number = -1;
    int fd = start_connected(*state, "echo ready >&9; read line <&9", &process);
    wait_until_ready(fd);
    assert_false(process_take_stop(&process, &number));
    process_signal(&process, SIGSTOP);
    assert_int_equal(waitid(P_PID, (id_t)process.pid, &info, WSTOPPED | WNOWAIT), 0);
    assert_true(process_take_stop(&process, &number));
    assert_int_equal(number, SIGSTOP);
    assert_false(process_take_stop(&process, &number));
    process_signal(&process, SIGCONT);
    assert_int_equal(waitid(P_PID, (id_t)process.pid, &info, WCONTINUED | WNOWAIT), 0);
    assert_true(process_take_stop(&process, &number));
    assert_int_equal(number, 0);
    close(fd);
    end_all(&process, 1);
}

static void a_hangup_that_is_ignored_ends_nothing(void **state)
{
    (void)state;
    sigset_t set;
    process_ending_signals(&set);
    assert_int_equal(sigismember(&set, SIGHUP), 1);
    assert_ptr_not_equal(signal(SIGHUP, SIG_IGN), SIG_ERR); // as nohup does
    process_ending_signals(&set);
    assert_ptr_not_equal(signal(SIGHUP, SIG_DFL), SIG_ERR);
    assert_int_equal(sigismember(&set, SIGHUP), 0);
    assert_int_equal(sigismember(&set, SIGINT), 1);
    assert_int_equal(sigismember(&set, SIGTERM), 1);
}

static void a_program_that_is_not_there_ends_with_127(void **state)
{
    char log[PROCESS_PATH_MAX];
    struct process process;
    const char *const argv[] = {"/nowhere/at/all", NULL};
    snprintf(log, sizeof(log), "%s/log", (const char *)*state);
    assert_int_equal(
        process_start(&process, "child", &(struct process_options){.argv = argv, .log = log}),
        STATUS_OK);
    end_all(&process, 1);
    check_end(&process, "ended with exit code 127");
}

static void what_a_child_writes_is_in_its_log(void **state)
{
    struct process process;
    start(*state, "echo first; echo second >&2", &process);
    end_all(&process, 1);
    start(*state, "cat; echo third", &process); // its standard input is empty
    end_all(&process, 1);
    char *text = sample_runs_read(*state, "log");
    assert_string_equal(text, "first\nsecond\nthird\n");
    free(text);
}

static void a_log_that_cannot_be_written_is_named(void **state)
{
    char log[PROCESS_PATH_MAX];
    struct process process = {.pid = 0};
    const char *const argv[] = {"/bin/true", NULL};
    snprintf(log, sizeof(log), "%s/missing/log", (const char *)*state);
    captured_log_begin();
    enum status status =
        process_start(&process, "child", &(struct process_options){.argv = argv, .log = log});
    assert_non_null(strstr(captured_log_end(), log));
    assert_int_equal(status, STATUS_IO);
    assert_int_equal(process.pid, 0);
}

static void who_ignores_sigterm_is_killed(void **state)
{
    struct process processes[2];
    int fd =
        start_connected(*state, "trap '' TERM INT; echo ready >&9; read line <&9", &processes[0]);
    start(*state, "exit 5", &processes[1]);
    wait_until_ready(fd);
    process_signal(&processes[0], SIGTERM);
    process_signal(&processes[0], SIGINT);
    process_end_all(processes, 2, 20);
    check_end(&processes[0], KILLED);
    assert_true(processes[1].is_over);
    // Nobody is left, not even as a zombie.
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
    close(fd);
}

/* The pid of a child's child, which it says; and a descriptor that tells when it is gone. */
static int open_grandchild(int fd)
{
    char text[32] = "";
    struct pollfd item = {.fd = fd, .events = POLLIN};
    assert_int_equal(poll(&item, 1, patience_ms(WAIT_MS_MAX)), 1);
    assert_true(read(fd, text, sizeof(text) - 1) > 0);
    int pidfd = (int)syscall(SYS_pidfd_open, (pid_t)strtol(text, NULL, 10), 0);
    assert_true(pidfd >= 0);
    return pidfd;
}

static void who_is_killed_is_killed_with_its_children(void **state)
{
    struct process process;
    // The grandchild reads from us for ever; its parent waits for it.
    int fd = start_connected(*state, "cat <&9 & echo $! >&9; wait", &process);
    struct pollfd grandchild = {.fd = open_grandchild(fd), .events = POLLIN};
    process_end_all(&process, 1, 0);
    check_end(&process, KILLED);
    assert_int_equal(poll(&grandchild, 1, patience_ms(WAIT_MS_MAX)), 1);
    close(grandchild.fd);
    close(fd);
}

/* How a process ends that leaves a child behind; whether that is killed. */
static void check_rest(const char *folder, const char *end, bool is_killed)
{
    struct process process;
    char script[128];
    snprintf(script, sizeof(script), "sleep 1000 9<&- & echo $! >&9; read line <&9; %s", end);
    int fd = start_connected(folder, script, &process);
    struct pollfd grandchild = {.fd = open_grandchild(fd), .events = POLLIN};
    assert_int_equal(write(fd, "go\n", 3), 3);
    end_all(&process, 1);
    assert_int_equal(poll(&grandchild, 1, is_killed ? patience_ms(WAIT_MS_MAX) : 0), is_killed);
    (void)syscall(SYS_pidfd_send_signal, grandchild.fd, SIGKILL, NULL, 0);
    close(grandchild.fd);
    close(fd);
}

static void what_a_failed_process_leaves_behind_is_killed(void **state)
{
    check_rest(*state, "exit 3", true);
    check_rest(*state, "kill -TERM $$", true);
    check_rest(*state, "exit 0", false);
}

static void who_ends_on_sigterm_is_not_killed(void **state)
{
    struct process process;
    int fd = start_connected(*state, "trap 'exit 7' TERM; echo ready >&9; read line <&9", &process);
    wait_until_ready(fd);
    process_signal(&process, SIGTERM);
    // Some shells finish their read first. Others are gone by now.
    (void)send(fd, "go\n", 3, MSG_NOSIGNAL);
    end_all(&process, 1);
    check_end(&process, "ended with exit code 7");
    close(fd);
}

static void who_was_not_started_is_left_alone(void **state)
{
    (void)state;
    struct process processes[2] = {0};
    process_signal(&processes[0], SIGKILL);
    process_reap(processes, 2);
    end_all(processes, 2);
    assert_false(processes[0].is_over);
}

static void a_child_is_in_a_group_of_its_own(void **state)
{
    struct process process;
    int fd = start_connected(*state, "echo ready >&9; read line <&9", &process);
    wait_until_ready(fd);
    assert_int_equal(getpgid(process.pid), process.pid);
    close(fd);
    end_all(&process, 1);
}

static void a_child_gets_no_signal_that_we_block(void **state)
{
    struct process process;
    sigset_t set, before;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    assert_int_equal(sigprocmask(SIG_BLOCK, &set, &before), 0);
    int fd = start_connected(*state, "echo ready >&9; read line <&9", &process);
    wait_until_ready(fd);
    process_signal(&process, SIGTERM);
    end_all(&process, 1);
    assert_int_equal(sigprocmask(SIG_SETMASK, &before, NULL), 0);
    check_end(&process, "was killed by signal 15 (terminated)");
    close(fd);
}

/* In a process that then dies: starts a child and says its pid. */
static void become_launcher(const char *folder, int fd)
{
    struct process process;
    close(start_connected(folder, "kill -STOP $$", &process));
    (void)!write(fd, &process.pid, sizeof(process.pid));
    raise(SIGKILL);
}

static void children_die_with_their_launcher(void **state)
{
    int ends[2];
    pid_t child = 0;
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    pid_t launcher = fork();
    if (launcher == 0) {
        become_launcher(*state, ends[1]);
    }
    close(ends[1]);
    assert_int_equal(read(ends[0], &child, sizeof(child)), sizeof(child));
    close(ends[0]);
    int pidfd = (int)syscall(SYS_pidfd_open, child, 0);
    if (pidfd >= 0) { // otherwise it is gone already
        struct pollfd item = {.fd = pidfd, .events = POLLIN};
        assert_int_equal(poll(&item, 1, patience_ms(WAIT_MS_MAX)), 1);
        close(pidfd);
    } else {
        assert_int_equal(errno, ESRCH);
    }
    assert_int_equal(waitpid(launcher, NULL, 0), launcher);
}

static void our_variables_are_dropped_and_given_ones_are_set(void **state)
{
    char log[PROCESS_PATH_MAX];
    struct process process;
    const char *const argv[] = {"/bin/sh", "-c",
                                "env | LC_ALL=C sort | grep -E '^(RINGSIDE|OTHER|GIVEN)'", NULL};
    const char *const given[] = {"GIVEN=1", NULL};
    setenv("RINGSIDE_DATA", "x", 1);
    setenv("RINGSIDE_MODE", "ring", 1);
    setenv("RINGSIDE_CACHE", "kept", 1);
    setenv("RINGSIDES", "kept", 1);
    setenv("OTHER", "kept", 1);
    snprintf(log, sizeof(log), "%s/log", (const char *)*state);
    assert_int_equal(
        process_start(&process, "child",
                      &(struct process_options){.argv = argv, .environment = given, .log = log}),
        STATUS_OK);
    end_all(&process, 1);
    unsetenv("RINGSIDE_DATA");
    unsetenv("RINGSIDE_MODE");
    unsetenv("RINGSIDE_CACHE");
    unsetenv("RINGSIDES");
    unsetenv("OTHER");
    char *text = sample_runs_read(*state, "log");
    assert_string_equal(text, "GIVEN=1\nOTHER=kept\nRINGSIDES=kept\nRINGSIDE_CACHE=kept\n"
                              "RINGSIDE_LAUNCHER=none\n");
    free(text);
}

#define PROCESS_TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

static void a_process_that_nobody_waited_for_is_ending(void **state)
{
    (void)state;
    siginfo_t info;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        _exit(0);
    }
    assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
    assert_true(process_is_ending(pid));
    assert_false(process_is_held(pid));
    assert_false(process_is_ending(getpid()));
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_false(process_is_ending(pid) || process_is_held(pid)); // it is gone
}

static void *stay(void *data)
{
    while (pause() != 0) {
    }
    return data;
}

/* A thread that stays when the main one has ended stands in for one that the kernel keeps. */
static void a_process_whose_threads_stay_is_held(void **state)
{
    (void)state;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, stay, NULL) == 0) {
            syscall(SYS_exit, 0); // of this thread alone
        }
        _exit(1);
    }
    while (!process_is_ending(pid)) {
        sched_yield();
    }
    assert_true(process_is_held(pid));
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_false(process_is_held(pid));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PROCESS_TEST(exit_codes_are_described),
        PROCESS_TEST(a_kill_by_signal_is_described),
        PROCESS_TEST(signals_are_described_with_what_usually_sends_them),
        PROCESS_TEST(a_stop_is_told_once_and_so_is_going_on),
        PROCESS_TEST(a_hangup_that_is_ignored_ends_nothing),
        PROCESS_TEST(a_program_that_is_not_there_ends_with_127),
        PROCESS_TEST(what_a_child_writes_is_in_its_log),
        PROCESS_TEST(a_log_that_cannot_be_written_is_named),
        PROCESS_TEST(who_ignores_sigterm_is_killed),
        PROCESS_TEST(who_is_killed_is_killed_with_its_children),
        PROCESS_TEST(what_a_failed_process_leaves_behind_is_killed),
        PROCESS_TEST(who_ends_on_sigterm_is_not_killed),
        cmocka_unit_test(who_was_not_started_is_left_alone),
        PROCESS_TEST(a_child_is_in_a_group_of_its_own),
        PROCESS_TEST(a_child_gets_no_signal_that_we_block),
        PROCESS_TEST(children_die_with_their_launcher),
        PROCESS_TEST(our_variables_are_dropped_and_given_ones_are_set),
        cmocka_unit_test(a_process_that_nobody_waited_for_is_ending),
        cmocka_unit_test(a_process_whose_threads_stay_is_held),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
