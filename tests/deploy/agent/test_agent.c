/* Tests of an agent with real processes, in a process of its own. */
#include "common/base/log.h"
#include "deploy/agent/agent.h"
#include "deploy/agent/agent_message.h"
#include "deploy/launch/fetch.h"
#include "deploy/system/line_stream.h"
#include "tests/support/common/patience.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define WAIT_MS_MAX 60000

struct agent_test {
    pid_t pid;
    int to, from; // its input, its output; -1: closed
    struct line_reader reader;
    struct agent_message message; // the last one
};

static void start(struct agent_test *test, uint32_t silence_ms)
{
    int in[2], out[2];
    assert_int_equal(pipe2(in, O_CLOEXEC), 0);
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    *test = (struct agent_test){.to = in[1], .from = out[0]};
    test->pid = fork();
    assert_true(test->pid >= 0);
    if (test->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(in[1]);
        close(out[0]);
        log_init("agent", LOG_ERROR);
        const struct agent_options options = {.input_fd = in[0],
                                              .output_fd = out[1],
                                              .terminal_fd = -1,
                                              .silence_ms = silence_ms,
                                              .lock = ""};
        _exit((int)agent_run(&options));
    }
    close(in[0]);
    close(out[1]);
    assert_int_equal(line_reader_init(&test->reader, test->from, AGENT_LINE_MAX), STATUS_OK);
}

/* The next message. False: the agent has closed its output. */
static bool next(struct agent_test *test)
{
    char *line = NULL, error[256];
    agent_message_finish(&test->message);
    while (line == NULL) {
        assert_int_equal(line_reader_next(&test->reader, false, &line), STATUS_OK);
        if (line != NULL) {
            break;
        }
        struct pollfd item = {.fd = test->from, .events = POLLIN};
        if (!test->reader.is_over) {
            assert_int_equal(poll(&item, 1, patience_ms(WAIT_MS_MAX)), 1);
        }
        if (line_reader_fill(&test->reader) != STATUS_OK &&
            test->reader.begin == test->reader.end) {
            return false;
        }
    }
    if (agent_message_decode(line, &test->message, error, sizeof(error)) != STATUS_OK) {
        fail_msg("%s: %s", line, error);
    }
    return true;
}

static void expect(struct agent_test *test, enum agent_kind kind)
{
    assert_true(next(test));
    assert_string_equal(agent_kind_name(test->message.kind), agent_kind_name(kind));
}

static void expect_output(struct agent_test *test, const char *stream, const char *text)
{
    expect(test, AGENT_OUTPUT);
    assert_string_equal(test->message.stream, stream);
    assert_string_equal(test->message.text, text);
}

static void say_line(const struct agent_test *test, const char *line)
{
    assert_int_equal(write(test->to, line, strlen(line)), strlen(line));
    assert_int_equal(write(test->to, "\n", 1), 1);
}

static void say(const struct agent_test *test, const struct agent_message *message)
{
    char *line = agent_message_encode(message);
    assert_non_null(line);
    say_line(test, line);
    free(line);
}

static void run_script(const struct agent_test *test, uint32_t id, const char *script,
                       const char *input)
{
    const struct agent_message message = {
        .kind = AGENT_START, .id = id, .argv = {"/bin/sh", "-c", script}, .input = input};
    say(test, &message);
}

/* By who has started this test. */
static bool is_core_forbidden(void)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_CORE, &limit) == 0 && limit.rlim_max == 0;
}

static int finish(struct agent_test *test)
{
    int result = 0;
    if (test->to >= 0) {
        close(test->to);
    }
    while (next(test)) {
    }
    assert_int_equal(waitpid(test->pid, &result, 0), test->pid);
    close(test->from);
    line_reader_finish(&test->reader);
    return result;
}

/* The script has the pipe of what it is told as $told. */
static void run_told(struct agent_test *test, uint32_t id, const char *script)
{
    char text[512];
    snprintf(text, sizeof(text), "told=/proc/self/fd/${1#*=}; %s", script);
    const struct agent_message message = {
        .kind = AGENT_START, .id = id, .argv = {"/bin/sh", "-c", text, "sh"}, .is_told = true};
    say(test, &message);
    expect(test, AGENT_STARTED);
}

static void an_agent_says_who_it_is_and_answers_pings(void **state)
{
    (void)state;
    struct agent_test test;
    start(&test, 0);
    expect(&test, AGENT_HELLO);
    assert_string_equal(test.message.version, RINGSIDE_VERSION);
    assert_int_equal(test.message.protocol, AGENT_PROTOCOL);
    assert_true(test.message.cores > 0);
    say(&test, &(struct agent_message){.kind = AGENT_PING, .time_us = 77});
    expect(&test, AGENT_PONG);
    assert_int_equal(test.message.time_us, 77);
    assert_true(test.message.clock_us > 0);
    assert_int_equal(finish(&test), 0);
}

static void a_process_gets_its_input_and_its_lines_come_back_with_its_end(void **state)
{
    (void)state;
    struct agent_test test;
    start(&test, 0);
    expect(&test, AGENT_HELLO);
    run_script(&test, 9, "cat; printf 'no newline' >&2; exit 3", "a secret\n");
    expect(&test, AGENT_STARTED);
    assert_int_equal(test.message.id, 9);
    expect_output(&test, "output", "a secret");
    expect_output(&test, "error", "no newline");
    expect(&test, AGENT_EXITED);
    assert_int_equal(test.message.status, 3 << 8);
    assert_int_equal(finish(&test), 0);
}

/* In its memory, or in that of the process, are keys. */
static void who_got_an_input_dumps_no_core(void **state)
{
    (void)state;
    struct agent_test test;
    start(&test, 0);
    expect(&test, AGENT_HELLO);
    run_script(&test, 1, "set -- $(grep core /proc/self/limits); echo $5; exit 0", "a secret");
    expect(&test, AGENT_STARTED);
    expect_output(&test, "output", is_core_forbidden() ? "0" : "1");
    expect(&test, AGENT_EXITED);
    assert_int_equal(finish(&test), 0);
}

static void what_is_announced_comes_back_apart(void **state)
{
    (void)state;
    struct agent_test test;
    start(&test, 0);
    expect(&test, AGENT_HELLO);
    const struct agent_message message = {
        .kind = AGENT_START,
        .id = 1,
        .argv = {"/bin/sh", "-c", "echo here >/proc/self/fd/${0#*=}"},
        .announces = true,
    };
    say(&test, &message);
    expect(&test, AGENT_STARTED);
    expect_output(&test, "announce", "here");
    expect(&test, AGENT_EXITED);
    assert_int_equal(finish(&test), 0);
}

static void what_is_not_there_has_exited_with_127(void **state)
{
    (void)state;
    struct agent_test test;
    start(&test, 0);
    expect(&test, AGENT_HELLO);
    say(&test, &(struct agent_message){.kind = AGENT_START, .id = 2, .argv = {"/nowhere/x"}});
    expect(&test, AGENT_STARTED);
    expect(&test, AGENT_EXITED);
    assert_int_equal(test.message.status, 127 << 8);
    assert_int_equal(finish(&test), 0);
}

static void commands_that_are_none_are_refused_and_do_no_harm(void **state)
{
    (void)state;
    static const char *const wrong[] = {"", "junk", "{\"is\":\"format\"}", "{\"is\":\"ping\"}",
                                        "{\"is\":\"started\",\"id\":1,\"pid\":1}"};
    struct agent_test test;
    start(&test, 0);
    expect(&test, AGENT_HELLO);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        say_line(&test, wrong[i]);
        expect(&test, AGENT_REFUSED);
    }
    say(&test, &(struct agent_message){.kind = AGENT_SIGNAL, .id = 12345, .signal = 9});
    say(&test, &(struct agent_message){.kind = AGENT_PING});
    expect(&test, AGENT_PONG);
    assert_int_equal(finish(&test), 0);
}

static void a_line_without_end_ends_it(void **state)
{
    (void)state;
    struct agent_test test;
    static char piece[4096];
    memset(piece, 'x', sizeof(piece));
    start(&test, 0);
    expect(&test, AGENT_HELLO);
    signal(SIGPIPE, SIG_IGN);
    for (size_t i = 0; i <= AGENT_LINE_MAX / sizeof(piece); i++) {
        if (write(test.to, piece, sizeof(piece)) < 0) {
            break; // it has ended
        }
    }
    assert_false(next(&test));
    assert_int_equal(finish(&test), 0);
}

/* The process of the last AGENT_STARTED, as a descriptor that tells when it is gone. */
static int open_process(const struct agent_test *test)
{
    int pidfd = (int)syscall(SYS_pidfd_open, (pid_t)test->message.pid, 0);
    assert_true(pidfd >= 0);
    return pidfd;
}

static void expect_gone(int pidfd)
{
    struct pollfd item = {.fd = pidfd, .events = POLLIN};
    assert_int_equal(poll(&item, 1, patience_ms(WAIT_MS_MAX)), 1);
    close(pidfd);
}

static const char for_ever[] = "trap '' TERM INT HUP; while :; do read x; done </dev/zero";

static void the_end_of_its_input_kills_all_that_it_has_started(void **state)
{
    (void)state;
    struct agent_test test;
    start(&test, 0);
    expect(&test, AGENT_HELLO);
    run_script(&test, 1, for_ever, NULL);
    expect(&test, AGENT_STARTED);
    int process = open_process(&test);
    assert_int_equal(finish(&test), 0);
    expect_gone(process);
}

static void silence_kills_all_that_it_has_started(void **state)
{
    (void)state;
    struct agent_test test;
    start(&test, 100);
    expect(&test, AGENT_HELLO);
    run_script(&test, 1, for_ever, NULL);
    expect(&test, AGENT_STARTED);
    int process = open_process(&test);
    while (next(&test)) {
    }
    expect_gone(process);
    assert_int_equal(finish(&test), 0);
}

static void what_it_was_stopped_for_itself_is_no_silence(void **state)
{
    (void)state;
    struct agent_test test;
    start(&test, 6000);
    expect(&test, AGENT_HELLO);
    assert_int_equal(kill(test.pid, SIGSTOP), 0);
    assert_int_equal(poll(NULL, 0, 7000), 0); // for longer than it may hear nothing
    assert_int_equal(kill(test.pid, SIGCONT), 0);
    struct pollfd item = {.fd = test.from, .events = POLLIN};
    assert_int_equal(poll(&item, 1, 1000), 0); // it has not ended
    say(&test, &(struct agent_message){.kind = AGENT_PING, .time_us = 7});
    expect(&test, AGENT_PONG);
    assert_int_equal(finish(&test), 0);
}

static void its_own_death_kills_all_that_it_has_started(void **state)
{
    (void)state;
    struct agent_test test;
    start(&test, 0);
    expect(&test, AGENT_HELLO);
    run_script(&test, 1, for_ever, NULL);
    expect(&test, AGENT_STARTED);
    int process = open_process(&test);
    assert_int_equal(kill(test.pid, SIGKILL), 0);
    expect_gone(process);
    assert_int_equal(finish(&test), SIGKILL);
}

static void hosts_see_whether_they_reach_each_other(void **state)
{
    (void)state;
    struct agent_test test;
    start(&test, 0);
    expect(&test, AGENT_HELLO);
    say(&test, &(struct agent_message){.kind = AGENT_LISTEN, .address = "127.0.0.1", .ports = "*"});
    expect(&test, AGENT_LISTENING);
    uint32_t port = test.message.port;
    assert_true(port > 0);
    struct agent_message ask = {.kind = AGENT_CONNECT,
                                .id = 5,
                                .address = "127.0.0.1",
                                .port = port,
                                .timeout_ms = (uint32_t)patience_ms(WAIT_MS_MAX)};
    say(&test, &ask);
    expect(&test, AGENT_CONNECTED);
    assert_int_equal(test.message.id, 5);
    assert_string_equal(test.message.text, "");
    say(&test, &(struct agent_message){.kind = AGENT_CLOSE});
    say(&test, &ask);
    expect(&test, AGENT_CONNECTED);
    assert_non_null(strstr(test.message.text, "refused"));
    ask.address = "node1";
    say(&test, &ask);
    expect(&test, AGENT_CONNECTED);
    assert_string_not_equal(test.message.text, "");
    say(&test,
        &(struct agent_message){.kind = AGENT_LISTEN, .address = "198.51.100.7", .ports = "*"});
    expect(&test, AGENT_LISTENING);
    assert_int_equal(test.message.port, 0);
    assert_string_not_equal(test.message.text, "");
    assert_int_equal(finish(&test), 0);
}

static void a_folder_comes_back_and_is_gone_with_the_agent(void **state)
{
    (void)state;
    struct agent_test test;
    char folder[512], script[1200];
    start(&test, 0);
    expect(&test, AGENT_HELLO);
    say(&test, &(struct agent_message){.kind = AGENT_FOLDER});
    expect(&test, AGENT_MADE);
    snprintf(folder, sizeof(folder), "%s", test.message.path);
    snprintf(script, sizeof(script), "cd %s; mkdir logs; printf abc >logs/a; : >.summary.reserve",
             folder);
    run_script(&test, 1, script, NULL);
    expect(&test, AGENT_STARTED);
    expect(&test, AGENT_EXITED);
    say(&test, &(struct agent_message){.kind = AGENT_FETCH});
    expect(&test, AGENT_FILE);
    assert_string_equal(test.message.path, "logs/a");
    assert_string_equal(test.message.data, "YWJj");
    assert_int_equal(test.message.offset, 0);
    expect(&test, AGENT_FETCHED);
    assert_string_equal(test.message.text, "");
    assert_int_equal(finish(&test), 0);
    assert_int_not_equal(access(folder, F_OK), 0);
}

static void a_folder_that_was_not_made_cannot_be_fetched(void **state)
{
    (void)state;
    struct agent_test test;
    start(&test, 0);
    expect(&test, AGENT_HELLO);
    say(&test, &(struct agent_message){.kind = AGENT_FETCH});
    expect(&test, AGENT_FETCHED);
    assert_string_not_equal(test.message.text, "");
    assert_int_equal(finish(&test), 0);
}

static void paths_that_lead_out_of_a_folder_are_not_taken(void **state)
{
    (void)state;
    static const char *const wrong[] = {"",    "/etc/passwd", "../x", "a/../x",    "a//b", "a/",
                                        "./x", ".ssh",        "a/.b", "a/b/c/d/e", "a\nb"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        assert_false(fetch_path_is_fine(wrong[i]));
    }
    assert_true(fetch_path_is_fine("summary.json"));
    assert_true(fetch_path_is_fine("a/b/c/d"));
}

static void a_process_hears_what_it_is_told(void **state)
{
    (void)state;
    struct agent_test test;
    start(&test, 0);
    expect(&test, AGENT_HELLO);
    run_told(&test, 3, "read line < $told; echo \"heard $line\"");
    say(&test, &(struct agent_message){.kind = AGENT_TELL, .id = 4, .text = "another"});
    say(&test, &(struct agent_message){.kind = AGENT_TELL, .id = 3, .text = "some news"});
    expect_output(&test, "output", "heard some news");
    expect(&test, AGENT_EXITED);
    finish(&test);
}

static void a_process_that_is_told_has_a_moment_when_the_launcher_goes(void **state)
{
    (void)state;
    struct agent_test test;
    char script[256], line[128] = "", path[] = "/tmp/test-agent-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    start(&test, 0);
    expect(&test, AGENT_HELLO);
    snprintf(script, sizeof(script), "read line < $told; echo \"$line\" > %s", path);
    run_told(&test, 3, script);
    finish(&test);
    assert_true(read(fd, line, sizeof(line) - 1) > 0);
    assert_string_equal(line, "failed the launcher is gone: was it killed?\n");
    close(fd);
    unlink(path);
}

static void a_process_that_is_stopped_is_told_of(void **state)
{
    (void)state;
    struct agent_test test;
    start(&test, 0);
    expect(&test, AGENT_HELLO);
    run_script(&test, 3, "kill -STOP $$", NULL);
    expect(&test, AGENT_STARTED);
    expect(&test, AGENT_STOPPED);
    assert_int_equal(test.message.signal, SIGSTOP);
    say(&test, &(struct agent_message){.kind = AGENT_SIGNAL, .id = 3, .signal = SIGCONT});
    do {
        assert_true(next(&test)); // that it goes on may be overtaken by its end
    } while (test.message.kind == AGENT_STOPPED);
    assert_string_equal(agent_kind_name(test.message.kind), "exited");
    finish(&test);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_process_hears_what_it_is_told),
        cmocka_unit_test(a_process_that_is_told_has_a_moment_when_the_launcher_goes),
        cmocka_unit_test(a_process_that_is_stopped_is_told_of),
        cmocka_unit_test(an_agent_says_who_it_is_and_answers_pings),
        cmocka_unit_test(a_process_gets_its_input_and_its_lines_come_back_with_its_end),
        cmocka_unit_test(who_got_an_input_dumps_no_core),
        cmocka_unit_test(what_is_announced_comes_back_apart),
        cmocka_unit_test(what_is_not_there_has_exited_with_127),
        cmocka_unit_test(commands_that_are_none_are_refused_and_do_no_harm),
        cmocka_unit_test(a_line_without_end_ends_it),
        cmocka_unit_test(the_end_of_its_input_kills_all_that_it_has_started),
        cmocka_unit_test(silence_kills_all_that_it_has_started),
        cmocka_unit_test(what_it_was_stopped_for_itself_is_no_silence),
        cmocka_unit_test(its_own_death_kills_all_that_it_has_started),
        cmocka_unit_test(hosts_see_whether_they_reach_each_other),
        cmocka_unit_test(a_folder_comes_back_and_is_gone_with_the_agent),
        cmocka_unit_test(a_folder_that_was_not_made_cannot_be_fetched),
        cmocka_unit_test(paths_that_lead_out_of_a_folder_are_not_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
