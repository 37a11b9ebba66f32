/* End to end: what somebody types who starts ps and workers by hand, and what is said to them. */
#include "common/service/launch_number.h"
#include "tests/support/common/keyed_job.h"
#include "tests/support/programs/programs.h"

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
#include <sys/wait.h>
#include <unistd.h>

#define COMMAND_BYTES 2048

/* The command that a program prints behind these words. */
static void read_command(const struct program_run *run, const char *start,
                         char command[COMMAND_BYTES])
{
    const char *at = program_await_line(run, start);
    snprintf(command, COMMAND_BYTES, "%.*s", (int)strcspn(at, "\n"), at);
}

/* Runs what the shell makes of it, in another folder and without any program on its PATH. */
static int paste(const char *command)
{
    char text[COMMAND_BYTES + 64];
    int result;
    snprintf(text, sizeof(text), "cd / && PATH=/nowhere && exec %s", command);
    pid_t child = fork();
    if (child == 0) {
        execl("/bin/sh", "sh", "-c", text, (char *)NULL);
        _exit(127);
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &result, 0), child);
    return WIFEXITED(result) ? WEXITSTATUS(result) : 128 + WTERMSIG(result);
}

static void the_command_that_ps_prints_can_be_pasted_anywhere(void **state)
{
    (void)state;
    char folder[PROGRAM_PATH_BYTES], place[KEYED_JOB_PATH_BYTES], keys[KEYED_JOB_PATH_BYTES];
    programs_make_folder(folder);
    snprintf(place, sizeof(place), "%s/what's mine", folder);
    assert_int_equal(mkdir(place, 0700), 0);
    keyed_job_make_keys(place, "job.keys", keys);
    const char *const ways[][3] = {{NULL}, {"--keys", keys}, {"--insecure"}};
    for (size_t i = 0; i < 3; i++) {
        struct program_run ps = {.announce_fd = -1};
        char command[COMMAND_BYTES];
        const char *args[PROGRAM_ARGS_MAX] = {
            "--workers",     "1",   "--model", "lenet5", "--data",   "synthetic", "--steps", "2",
            "--limit-train", "120", "--eval",  "none",   "--device", "ref"};
        memcpy(args + 14, ways[i], sizeof(ways[i]));
        program_start(&ps, folder, "ps-server/ps", false, args, NULL);
        read_command(&ps, "waiting for 1 worker: ", command);
        int code = paste(command);
        if (code != 0 || program_wait(&ps) != 0) {
            fail_msg("%d from: %s\n%s", code, command, program_output(&ps));
        }
    }
    programs_remove_folder(folder);
}

/* Long before it gives up. */
static void a_worker_whose_ps_is_gone_says_for_whom_it_waits_and_why(void **state)
{
    (void)state;
    struct program_run ps, worker = {.announce_fd = -1};
    char folder[PROGRAM_PATH_BYTES], endpoint[256];
    programs_make_folder(folder);
    const char *const job[] = {"--workers", "1", "--model", "lenet5", NULL};
    program_start(&ps, folder, "ps-server/ps", true, job, NULL);
    program_read_endpoint(&ps, endpoint, sizeof(endpoint));
    program_kill(&ps, SIGKILL);
    assert_int_equal(program_wait(&ps), 128 + SIGKILL);
    const char *const args[] = {"--server", endpoint, "--stall-warn", "0.2", "--join-timeout",
                                "1.5",      NULL};
    program_start(&worker, folder, "worker/worker", false, args, NULL);
    assert_int_equal(program_wait(&worker), EXIT_CODE_LOST);
    const char *said = strstr(program_output(&worker), " warn worker ");
    assert_non_null(said);
    const char *given_up = strstr(said, " error worker ");
    assert_non_null(given_up);
    const char *const facts[] = {"waiting for the coordinator at ", endpoint, "no answer for 0.",
                                 "gives up after 1.5 s (--join-timeout)",
                                 "nobody listens there: is `ps` running still"};
    for (size_t i = 0; i < sizeof(facts) / sizeof(facts[0]); i++) {
        const char *at = strstr(said, facts[i]);
        assert_non_null(at);
        assert_true(at < given_up);
    }
    programs_remove_folder(folder);
}

/* As where a launcher is killed before it has heard. */
static void a_coordinator_that_cannot_say_where_it_listens_leaves_a_summary(void **state)
{
    (void)state;
    struct program_run ps = {.announce_fd = -1};
    char folder[PROGRAM_PATH_BYTES], out[KEYED_JOB_PATH_BYTES];
    programs_make_folder(folder);
    snprintf(out, sizeof(out), "%s/out", folder);
    const char *const args[] = {"--workers", "1", "--model",       "lenet5", // 999 is not open
                                "--out",     out, "--announce-fd", "999",    NULL};
    program_start(&ps, folder, "ps-server/ps", false, args, NULL);
    assert_int_equal(program_wait(&ps), 1);
    assert_non_null(strstr(program_output(&ps), "cannot announce the endpoint"));
    json_t *summary = programs_read_json(out, "summary.json");
    assert_string_equal(json_string_value(json_object_get(summary, "outcome")), "failed");
    assert_string_equal(json_string_value(json_object_get(summary, "reason")),
                        "the coordinator could not say where it listens");
    json_decref(summary);
    programs_remove_folder(folder);
}

/* A developer exports it for the tests. */
static void every_command_works_where_the_folder_of_images_is_exported(void **state)
{
    (void)state;
    char folder[PROGRAM_PATH_BYTES], out[KEYED_JOB_PATH_BYTES], variable[KEYED_JOB_PATH_BYTES];
    programs_make_folder(folder);
    snprintf(out, sizeof(out), "%s/out", folder);
    snprintf(variable, sizeof(variable), "RINGSIDE_DATA=%s", folder);
    const char *const environment[] = {variable, NULL};
    const char *const data[] = {"shapes", "cifar10"};
    for (size_t i = 0; i < 2; i++) {
        struct program_run run = {.announce_fd = -1};
        const char *const args[] = {"run",           "--out",   out,       "-n",     "1",
                                    "--mode",        "ps-sync", "--model", "lenet5", "--data",
                                    data[i],         "--steps", "2",       "--eval", "none",
                                    "--limit-train", "120",     NULL};
        program_start(&run, folder, "deploy/ringside", false, args, environment);
        int code = program_wait(&run);
        if (code != (i == 0 ? 0 : 1)) {
            fail_msg("exit code %d: %s", code, program_output(&run));
        }
        if (i == 1) { // which are not there
            assert_non_null(strstr(program_output(&run), folder));
            assert_non_null(strstr(program_output(&run), "/cifar10"));
        }
    }
    struct program_run check = {.announce_fd = -1};
    program_start(&check, folder, "deploy/ringside", false,
                  (const char *const[]){"run", "--help", NULL}, environment);
    assert_int_equal(program_wait(&check), 0);
    programs_remove_folder(folder);
}

/* What programs are told by a launcher: the number of a start for its place 1. */
static void set_launch(uint32_t start, const char *endpoint)
{
    char text[LAUNCH_NUMBER_TEXT_BYTES];
    launch_number_write(launch_number_make(start, 1), endpoint, text);
    assert_int_equal(setenv(LAUNCH_NUMBER_VARIABLE, text, 1), 0);
}

/* A job of two ranks and one process, and one more process that joins it. */
static void a_worker_joins_a_job_that_is_under_way(void **state)
{
    (void)state;
    struct program_run ps, first = {.announce_fd = -1}, second = {.announce_fd = -1},
                           third = {.announce_fd = -1};
    char folder[PROGRAM_PATH_BYTES], endpoint[256], out[PROGRAM_PATH_BYTES + 8];
    programs_make_folder(folder);
    snprintf(out, sizeof(out), "%s/run", folder);
    const char *const job[] = {
        "--workers", "2",       "--processes", "1",           "--mode",
        "ring",      "--model", "lenet5",      "--data",      "synthetic",
        "--steps",   "100",     "--device",    "ref",         "--limit-train",
        "120",       "--eval",  "none",        "--straggler", "dist=exponential:mean=40ms,share=1",
        "--out",     out,       NULL};
    program_start(&ps, folder, "ps-server/ps", true, job, NULL);
    program_read_endpoint(&ps, endpoint, sizeof(endpoint));
    const char *const worker[] = {"--server", endpoint, NULL};
    set_launch(1, endpoint);
    program_start(&first, folder, "worker/worker", false, worker, NULL);
    programs_wait_for_file(folder, "run");
    programs_wait_for_file(out, "job.json"); // it trains
    // A shell below a process of another job, and one below a process of this one.
    set_launch(2, "tcp://10.0.0.7:41397");
    program_start(&second, folder, "worker/worker", false, worker, NULL);
    const char *const more[] = {"join", endpoint, NULL};
    const char *const place[] = {"RINGSIDE_RANK=0", NULL};
    set_launch(2, endpoint);
    program_start(&third, folder, "deploy/ringside", false, more, place);
    assert_int_equal(unsetenv(LAUNCH_NUMBER_VARIABLE), 0);
    int codes[] = {program_wait(&second), program_wait(&third)};
    assert_int_equal(program_wait(&first), 0);
    assert_int_equal(program_wait(&ps), 0);
    // One of them gets the place, and the other hears that there is none left.
    assert_true((codes[0] == 0) != (codes[1] == 0));
    const char *refused = program_output(codes[0] == 0 ? &third : &second);
    assert_non_null(strstr(refused, "each of its ranks has a worker"));
    assert_non_null(strstr(refused, "this worker has not joined the job"));
    assert_null(strstr(refused, "peer is gone"));
    assert_null(strstr(refused, "the job ended early")); // it goes on
    char who[64];
    snprintf(who, sizeof(who), ", pid %d): the job has already begun",
             (int)(codes[0] == 0 ? third.pid : second.pid));
    assert_non_null(strstr(program_output(&ps), who));
    json_t *summary = programs_read_json(out, "summary.json");
    assert_int_equal(json_integer_value(json_object_get(summary, "restarts")), 1);
    assert_int_equal(json_integer_value(json_object_get(summary, "workers_lost")), 0);
    json_decref(summary);
    programs_remove_folder(folder);
}

/* The launcher starts one process for two ranks. */
static void the_command_that_a_run_prints_lets_a_worker_join(void **state)
{
    (void)state;
    struct program_run run = {.announce_fd = -1};
    char folder[PROGRAM_PATH_BYTES], out[PROGRAM_PATH_BYTES + 8], command[COMMAND_BYTES];
    programs_make_folder(folder);
    snprintf(out, sizeof(out), "%s/run", folder);
    const char *const args[] = {
        "run",           "-n",          "2",
        "--processes",   "1",           "--mode",
        "ring",          "--model",     "lenet5",
        "--data",        "synthetic",   "--steps",
        "100",           "--device",    "ref",
        "--limit-train", "120",         "--eval",
        "none",          "--straggler", "dist=exponential:mean=40ms,share=1",
        "--out",         out,           NULL};
    program_start(&run, folder, "deploy/ringside", false, args, NULL);
    read_command(&run, "if a place is free, another worker can join: ", command);
    programs_wait_for_file(out, "job.json"); // it trains
    int joined = paste(command);
    int code = program_wait(&run);
    if (joined != 0 || code != 0) {
        fail_msg("%d and %d from: %s\n%s", joined, code, command, program_output(&run));
    }
    json_t *summary = programs_read_json(out, "summary.json");
    assert_int_equal(json_integer_value(json_object_get(summary, "restarts")), 1);
    assert_int_equal(json_integer_value(json_object_get(summary, "workers_lost")), 0);
    json_decref(summary);
    programs_remove_folder(folder);
}

static void a_join_without_a_place_for_it_is_refused(void **state)
{
    (void)state;
    static const char *const refused[][4] = {
        {"join", NULL, NULL, "SERVER comes first"},
        {"join", "--keys", "k", "SERVER comes first"},
        {"join", "hello:world", NULL, "'hello:world', which does not end with a port"},
        {"join", "tcp://hello", NULL, "'tcp://hello', which does not end with a port"},
        {"join", "hello:0", NULL, "'hello:0', which does not end with a port"},
        {"join", "10.0.0.7:65536", NULL, "a port from 1 to 65535"},
        {"join", "10.0.0.7:4000", "--rank=1", "--rank is not for `ringside join`"},
    };
    char folder[PROGRAM_PATH_BYTES];
    programs_make_folder(folder);
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        struct program_run run = {.announce_fd = -1};
        const char *const args[] = {refused[i][0], refused[i][1], refused[i][2], NULL};
        program_start(&run, folder, "deploy/ringside", false, args, NULL);
        assert_int_equal(program_wait(&run), 2);
        assert_non_null(strstr(program_output(&run), refused[i][3]));
    }
    programs_remove_folder(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_command_that_ps_prints_can_be_pasted_anywhere),
        cmocka_unit_test(a_worker_joins_a_job_that_is_under_way),
        cmocka_unit_test(the_command_that_a_run_prints_lets_a_worker_join),
        cmocka_unit_test(a_join_without_a_place_for_it_is_refused),
        cmocka_unit_test(a_coordinator_that_cannot_say_where_it_listens_leaves_a_summary),
        cmocka_unit_test(every_command_works_where_the_folder_of_images_is_exported),
        cmocka_unit_test(a_worker_whose_ps_is_gone_says_for_whom_it_waits_and_why),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
