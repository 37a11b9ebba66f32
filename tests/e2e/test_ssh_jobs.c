/* Jobs through an ssh that is stood in for by a script: it runs here what it should run there. Real
 * ones are in check_hosts. */
#include "tests/support/programs/programs.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

struct ssh_test {
    struct program_run run;
    char folder[PROGRAM_PATH_BYTES], out[PROGRAM_PATH_BYTES + 16], ssh[PROGRAM_PATH_BYTES + 16];
};

/* Leaves the options and the host aside. */
static const char as_ssh[] = "while [ $# -gt 0 ]; do\n"
                             "    case \"$1\" in -T) shift ;; -o) shift 2 ;; *) break ;; esac\n"
                             "done\n"
                             "host=$1; shift\n";

static void write_script(const struct ssh_test *test, const char *end)
{
    FILE *file = fopen(test->ssh, "we");
    assert_non_null(file);
    fprintf(file, "#!/bin/sh\n%s%s\n", as_ssh, end);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(test->ssh, 0700), 0);
}

static int set_up(void **state)
{
    static struct ssh_test test;
    memset(&test, 0, sizeof(test));
    test.run.announce_fd = -1;
    programs_make_folder(test.folder);
    snprintf(test.out, sizeof(test.out), "%s/out", test.folder);
    snprintf(test.ssh, sizeof(test.ssh), "%s/ssh", test.folder);
    write_script(&test, "exec sh -c \"$*\"");
    *state = &test;
    return 0;
}

static int tear_down(void **state)
{
    struct ssh_test *test = *state;
    programs_remove_folder(test->folder);
    return 0;
}

static void start_in(struct ssh_test *test, const char *const *arguments,
                     const char *const *environment)
{
    const char *args[PROGRAM_ARGS_MAX] = {"run",     "--out",          test->out, "--ssh",
                                          test->ssh, "--model",        "lenet5",  "--data",
                                          "shapes",  "--limit-train",  "120",     "--limit-test",
                                          "50",      "--global-batch", "24",      "--threads",
                                          "1",       "--bucket-mb",    "0.05"};
    size_t count = 0;
    while (args[count] != NULL) {
        count++;
    }
    for (size_t i = 0; arguments[i] != NULL; i++) {
        args[count++] = arguments[i];
    }
    program_start(&test->run, test->folder, "deploy/ringside", false, args, environment);
}

static void start(struct ssh_test *test, const char *const *arguments)
{
    start_in(test, arguments, NULL);
}

static void check_said(const struct ssh_test *test, const char *text)
{
    if (strstr(program_output(&test->run), text) == NULL) {
        fail_msg("'%s' is not in: %s", text, program_output(&test->run));
    }
}

static void check_exit(struct ssh_test *test, int expected)
{
    int code = program_wait(&test->run);
    if (code != expected) {
        fail_msg("exit code %d, not %d: %s", code, expected, program_output(&test->run));
    }
}

static void a_job_by_ssh_has_its_run_folder_here_and_the_bits_of_one_host(void **state)
{
    struct ssh_test *test = *state;
    char digest[PROGRAM_DIGEST_BYTES];
    static const char *const there[] = {"-H", "node1:1,node2:2", "--mode", "ps-sync", "--servers",
                                        "2",  "--steps",         "3",      NULL};
    static const char *const here[] = {"-n", "3",       "--mode", "ps-sync",        "--servers",
                                       "2",  "--steps", "3",      "--global-batch", "24",
                                       NULL};
    start(test, there);
    check_exit(test, 0);
    json_t *summary = programs_read_json(test->out, "summary.json");
    assert_int_equal(json_integer_value(json_object_get(summary, "workers")), 3);
    programs_run_digest(here, digest);
    assert_string_equal(json_string_value(json_object_get(summary, "params_digest")), digest);
    json_decref(summary);
    static const char *const names[] = {"details.json", "logs/ps-0.log", "logs/ps-1.log",
                                        "logs/worker-2.log"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char path[2 * PROGRAM_PATH_BYTES];
        snprintf(path, sizeof(path), "%s/%s", test->out, names[i]);
        assert_int_equal(access(path, F_OK), 0);
    }
}

/* Where the checkpoints are is where the coordinator has to be. */
static void a_job_of_one_host_goes_on_with_two_and_the_same_bits(void **state)
{
    struct ssh_test *test = *state;
    char digest[PROGRAM_DIGEST_BYTES];
    static const char *const whole[] = {
        "-n", "3", "--mode", "ring", "--epochs", "2", "--limit-train", "120", "--global-batch",
        "24", NULL};
#define JOB "--mode", "ring", "--checkpoint-every", "epoch"
    static const char *const first[] = {"-n", "3", JOB, "--epochs", "1", NULL};
    const char *const elsewhere[] = {"-H", "node1:1,node2:2", JOB,       "--epochs",
                                     "2",  "--resume",        test->out, NULL};
    const char *const rest[] = {
        "-H",        "node1:1,node2:2", JOB,       "--epochs", "2", "--coordinator",
        "localhost", "--resume",        test->out, NULL};
#undef JOB
    start(test, first);
    check_exit(test, 0);
    start(test, elsewhere);
    check_exit(test, 1);
    check_said(test, "which has the checkpoints, and it is on node1: have the coordinator here");
    start(test, rest);
    check_exit(test, 0);
    programs_run_digest(whole, digest);
    json_t *summary = programs_read_json(test->out, "summary.json");
    assert_string_equal(json_string_value(json_object_get(summary, "params_digest")), digest);
    json_decref(summary);
}

static void hosts_that_cannot_be_are_refused(void **state)
{
    struct ssh_test *test = *state;
    char hostfile[PROGRAM_PATH_BYTES + 16];
    snprintf(hostfile, sizeof(hostfile), "%s/hosts", test->folder);
    FILE *file = fopen(hostfile, "we");
    assert_non_null(file);
    fputs("node1 slots=2\nnode2 gpus=1\n", file);
    assert_int_equal(fclose(file), 0);
    const struct {
        const char *arguments[8], *says;
        int code;
    } cases[] = {
        {{"-H", "node1:1,node2:1", "-n", "3"}, "3 workers are asked for, but the hosts have 2", 2},
        {{"-H", "node1:0"}, "from 1 to", 2},
        {{"-H", "node1", "--hostfile", hostfile}, "give one", 2},
        {{"--hostfile", hostfile}, "/hosts:2: expected HOST", 2},
        {{"-H", "node1", "--port-range", "9"}, "FIRST-LAST", 2},
        {{"-H", "node1", "--network-interface", "10.0.0.0/64"}, "neither an interface", 2},
        {{"-H", "node1", "--bind", "0.0.0.0"}, "--network-interface", 1},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        start(test, cases[i].arguments);
        check_exit(test, cases[i].code);
        check_said(test, cases[i].says);
        assert_int_not_equal(access(test->out, F_OK), 0);
    }
}

static void a_host_that_is_not_reached_is_in_the_table_with_what_to_do(void **state)
{
    struct ssh_test *test = *state;
    static const char *const arguments[] = {"-H", "node1,node2", "--mode", "ring", NULL};
    write_script(test, "if [ $host = node2 ]; then echo 'Connection refused' >&2; exit 255; fi\n"
                       "exec sh -c \"$*\"");
    start(test, arguments);
    check_exit(test, 1);
    check_said(test, "preflight: 1 problem; nothing was started");
    check_said(test, "node2  -     -          -     Connection refused");
    check_said(test, "-> start sshd there; `ssh node2 true` has to work");
    assert_int_not_equal(access(test->out, F_OK), 0);
}

static void an_ssh_that_this_host_lacks_is_named_and_no_other_host_is_blamed(void **state)
{
    struct ssh_test *test = *state;
    static const char *const cases[][8] = {
        {"-H", "localhost,node2", "--mode", "ring", NULL},
        {"-H", "localhost,node2", "--mode", "ring", "--ship", NULL},
    };
    assert_int_equal(unlink(test->ssh), 0);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        start(test, cases[i]);
        check_exit(test, 1);
        check_said(test, "there is no program /");
        check_said(test, "/ssh, and other hosts are reached by it: install it");
        assert_null(strstr(program_output(&test->run), "ringside is not there"));
        assert_int_not_equal(access(test->out, F_OK), 0);
    }
}

static void a_host_that_does_not_answer_whether_it_listens_is_in_the_table(void **state)
{
    struct ssh_test *test = *state;
    static const char *const arguments[] = {"-H", "localhost,node2", "--mode", "ring", NULL};
    write_script(test, "sed -u '/\"is\":\"listen\"/d' | sh -c \"$*\"");
    start(test, arguments);
    check_exit(test, 1);
    check_said(test, "node2");
    check_said(test, "it cannot listen: its agent does not answer");
    assert_int_not_equal(access(test->out, F_OK), 0);
}

static void what_a_shell_prints_before_the_agent_does_no_harm(void **state)
{
    struct ssh_test *test = *state;
    static const char *const arguments[] = {"-H",     "node1,node2", "--steps",        "1",
                                            "--mode", "ring",        "--no-preflight", NULL};
    write_script(test, "echo Welcome to $host; echo '{}'; exec sh -c \"$*\"");
    start(test, arguments);
    check_exit(test, 0);
}

static void options_in_the_environment_are_not_the_agents(void **state)
{
    struct ssh_test *test = *state;
    char config[PROGRAM_PATH_BYTES + 64], path[PROGRAM_PATH_BYTES + 32],
        second[PROGRAM_PATH_BYTES + 32];
    snprintf(path, sizeof(path), "%s/job.ini", test->folder);
    snprintf(second, sizeof(second), "%s/second", test->folder);
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    fputs("steps = 1\n", file);
    assert_int_equal(fclose(file), 0);
    snprintf(config, sizeof(config), "RINGSIDE_CONFIG=%s", path);
    const char *const environment[] = {config, "RINGSIDE_LINK_TIMEOUT=30", NULL};
    // In start files of the shell there.
    write_script(test, "export RINGSIDE_STEPS=1 RINGSIDE_LINK_TIMEOUT=never; exec sh -c \"$*\"");
    static const char *const here[] = {"-n", "1", "--mode", "ring", NULL};
    const char *const there[] = {"-H", "localhost,node2", "--mode", "ring", "--out", second, NULL};
    start_in(test, here, environment);
    check_exit(test, 0);
    start_in(test, there, environment);
    check_exit(test, 0);
}

static void a_host_that_says_what_no_agent_says_is_given_up(void **state)
{
    struct ssh_test *test = *state;
    static const char *const arguments[] = {"-H", "node1,node2", "--mode", "ring", NULL};
    static const char *const junk[] = {
        "echo junk",
        "echo '{\"is\":\"output\",\"id\":-1}'",
        "head -c 300000 /dev/zero | tr '\\0' x",
    };
    for (size_t i = 0; i < sizeof(junk) / sizeof(junk[0]); i++) {
        char script[1024];
        snprintf(script, sizeof(script),
                 "if [ $host = node2 ]; then\n"
                 "    sh -c \"$*\" </dev/null; %s; exec cat >/dev/null\n"
                 "fi\nexec sh -c \"$*\"",
                 junk[i]);
        write_script(test, script);
        start(test, arguments);
        check_exit(test, 1);
        check_said(test, "it sent something that no agent sends");
        assert_int_not_equal(access(test->out, F_OK), 0);
    }
}

static void an_agent_that_dies_fails_the_job_and_names_its_ranks(void **state)
{
    struct ssh_test *test = *state;
    char script[PROGRAM_PATH_BYTES + 128];
    static const char *const arguments[] = {"-H",
                                            "localhost,node2",
                                            "--mode",
                                            "ring",
                                            "--epochs",
                                            "10000",
                                            "--report-every",
                                            "1",
                                            "--eval",
                                            "none",
                                            "--lost-after",
                                            "1",
                                            "--on-loss",
                                            "fail",
                                            NULL};
    // It becomes the agent, by the same process id.
    snprintf(script, sizeof(script), "echo [$$] >'%s/agent'; exec sh -c \"exec $*\"", test->folder);
    write_script(test, script);
    assert_int_equal(mkdir(test->out, 0700), 0); // to watch it
    start(test, arguments);
    programs_wait_for_file(test->out, "metrics.jsonl");
    json_t *pid = programs_read_json(test->folder, "agent");
    assert_int_equal(kill((pid_t)json_integer_value(json_array_get(pid, 0)), SIGKILL), 0);
    json_decref(pid);
    check_exit(test, 1);
    check_said(test, "worker 1 was lost with node2");
}

static void programs_that_were_shipped_in_part_are_shipped_again(void **state)
{
    struct ssh_test *test = *state;
    char home[PROGRAM_PATH_BYTES + 8], script[2 * PROGRAM_PATH_BYTES + 256];
    snprintf(home, sizeof(home), "HOME=%s", test->folder);
    const char *const environment[] = {home, NULL};
    static const char *const arguments[] = {"-H", "localhost,node2", "--ship", "--steps",
                                            "1",  "--mode",          "ring",   NULL};
    // The first time the last file is cut off, as if ssh had been killed.
    snprintf(script, sizeof(script),
             "case $* in *'cat >'*bin/ringside*|*bin/ringside*'cat >'*)\n"
             "    if mkdir '%s/was-cut' 2>/dev/null; then head -c 1000 | sh -c \"$*\"; exit; fi\n"
             "esac\nexec sh -c \"$*\"",
             test->folder);
    write_script(test, script);
    start_in(test, arguments, environment);
    check_exit(test, 1);
    check_said(test, "bin/ringside cannot be copied there");
    start_in(test, arguments, environment);
    check_exit(test, 0);
}

static void a_signal_ends_the_shipping_of_programs(void **state)
{
    struct ssh_test *test = *state;
    char home[PROGRAM_PATH_BYTES + 8], script[3 * PROGRAM_PATH_BYTES + 256];
    snprintf(home, sizeof(home), "HOME=%s", test->folder);
    const char *const environment[] = {home, NULL};
    static const char *const arguments[] = {"-H", "localhost,node2", "--ship", "--mode", "ring",
                                            NULL};
    // Copying does not come to an end.
    snprintf(script, sizeof(script),
             "case $* in *'cat >'*)\n"
             "    echo [$$] >'%s/draft'; mv '%s/draft' '%s/copying'; exec sleep 600\n"
             "esac\nexec sh -c \"$*\"",
             test->folder, test->folder, test->folder);
    write_script(test, script);
    start_in(test, arguments, environment);
    programs_wait_for_file(test->folder, "copying");
    json_t *pid = programs_read_json(test->folder, "copying");
    int copying =
        (int)syscall(SYS_pidfd_open, (pid_t)json_integer_value(json_array_get(pid, 0)), 0);
    assert_true(copying >= 0);
    json_decref(pid);
    program_kill(&test->run, SIGTERM);
    check_exit(test, 130);
    struct pollfd item = {.fd = copying, .events = POLLIN};
    assert_int_equal(poll(&item, 1, 60000), 1); // it has ended
    close(copying);
}

#define SSH_TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SSH_TEST(a_job_by_ssh_has_its_run_folder_here_and_the_bits_of_one_host),
        SSH_TEST(a_job_of_one_host_goes_on_with_two_and_the_same_bits),
        SSH_TEST(hosts_that_cannot_be_are_refused),
        SSH_TEST(a_host_that_is_not_reached_is_in_the_table_with_what_to_do),
        SSH_TEST(an_ssh_that_this_host_lacks_is_named_and_no_other_host_is_blamed),
        SSH_TEST(a_host_that_does_not_answer_whether_it_listens_is_in_the_table),
        SSH_TEST(what_a_shell_prints_before_the_agent_does_no_harm),
        SSH_TEST(options_in_the_environment_are_not_the_agents),
        SSH_TEST(a_host_that_says_what_no_agent_says_is_given_up),
        SSH_TEST(programs_that_were_shipped_in_part_are_shipped_again),
        SSH_TEST(a_signal_ends_the_shipping_of_programs),
        SSH_TEST(an_agent_that_dies_fails_the_job_and_names_its_ranks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
