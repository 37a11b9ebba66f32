/* End to end: `ps` and `worker` as processes, small jobs on drawn images. */
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
#include <unistd.h>

#define WORKERS_MAX 9
#define SERVERS_MAX 3

/* A job of one mode, with its processes. */
struct job_run {
    char folder[PROGRAM_PATH_BYTES], out[PROGRAM_PATH_BYTES + 16], endpoint[256];
    struct program_run ps[SERVERS_MAX], workers[WORKERS_MAX];
    unsigned worker_count, server_count;
    const char *const *environment; // of all of them
};

// tcp takes keys, which test_security.c has.
static const char *const insecure[] = {"RINGSIDE_INSECURE=true", NULL};

struct job_case {
    const char *mode, *transport;
    unsigned workers, servers;
    const char *all_reduce;  // NULL: auto
    unsigned server_threads; // 0: one
    unsigned connections;    // 0: one
};

static void start_ps(struct job_run *run, const struct job_case *job, const char *const *more)
{
    char workers[16], servers[16], threads[16], connections[16];
    const char *args[PROGRAM_ARGS_MAX] = {"--server-threads",
                                          threads,
                                          "--mode",
                                          job->mode,
                                          "--workers",
                                          workers,
                                          "--servers",
                                          servers,
                                          "--transport",
                                          job->transport,
                                          "--model",
                                          "lenet5",
                                          "--data",
                                          "shapes",
                                          "--global-batch",
                                          "24",
                                          "--steps",
                                          "6",
                                          "--threads",
                                          "1",
                                          "--limit-test",
                                          "50",
                                          "--report-every",
                                          "2",
                                          "--eval",
                                          "end",
                                          "--out",
                                          run->out,
                                          "--bucket-mb",
                                          "0.05",
                                          "--all-reduce",
                                          job->all_reduce != NULL ? job->all_reduce : "auto",
                                          "--connections",
                                          connections};
    size_t count = 0;
    while (args[count] != NULL) {
        count++;
    }
    for (size_t i = 0; more != NULL && more[i] != NULL; i++) {
        args[count++] = more[i];
    }
    snprintf(workers, sizeof(workers), "%u", job->workers);
    snprintf(servers, sizeof(servers), "%u", job->servers);
    snprintf(connections, sizeof(connections), "%u", job->connections > 0 ? job->connections : 1);
    snprintf(threads, sizeof(threads), "%u", job->server_threads > 0 ? job->server_threads : 1);
    program_start(&run->ps[0], run->folder, "ps-server/ps", true, args, run->environment);
    program_read_endpoint(&run->ps[0], run->endpoint, sizeof(run->endpoint));
}

static void start_worker(struct job_run *run, unsigned index, const char *const *more)
{
    char rank[16];
    const char *args[PROGRAM_ARGS_MAX] = {"--server", run->endpoint, "--rank", rank};
    snprintf(rank, sizeof(rank), "%u", index);
    for (size_t i = 0; more != NULL && more[i] != NULL; i++) {
        args[4 + i] = more[i];
    }
    program_start(&run->workers[index], run->folder, "worker/worker", false, args,
                  run->environment);
}

static void open_job(struct job_run *run, const struct job_case *job, const char *const *more)
{
    memset(run, 0, sizeof(*run));
    programs_make_folder(run->folder);
    snprintf(run->out, sizeof(run->out), "%s/out", run->folder);
    run->environment = strcmp(job->transport, "tcp") == 0 ? insecure : NULL;
    run->worker_count = strcmp(job->mode, "local") == 0 ? 1 : job->workers;
    run->server_count = strncmp(job->mode, "ps", 2) == 0 ? job->servers : 1;
    start_ps(run, job, more);
    for (unsigned i = 1; i < run->server_count; i++) {
        char index[16];
        const char *args[] = {"--shard-index", index, "--server", run->endpoint, NULL};
        snprintf(index, sizeof(index), "%u", i);
        program_start(&run->ps[i], run->folder, "ps-server/ps", false, args, run->environment);
    }
}

/* Waits for everybody; all must have succeeded. Writes the digest of the parameters. */
static void finish_job(struct job_run *run, char ret_digest[80])
{
    for (unsigned i = 0; i < run->worker_count; i++) {
        if (program_wait(&run->workers[i]) != 0) {
            fail_msg("worker %u: %s", i, program_output(&run->workers[i]));
        }
    }
    for (unsigned i = 0; i < run->server_count; i++) {
        if (program_wait(&run->ps[i]) != 0) {
            fail_msg("ps %u: %s", i, program_output(&run->ps[i]));
        }
    }
    json_t *summary = programs_read_json(run->out, "summary.json");
    assert_string_equal(json_string_value(json_object_get(summary, "outcome")), "completed");
    assert_int_equal(json_integer_value(json_object_get(summary, "steps")), 6);
    snprintf(ret_digest, 80, "%s", json_string_value(json_object_get(summary, "params_digest")));
    assert_int_equal(strlen(ret_digest), 64);
    json_decref(summary);
    programs_remove_folder(run->folder);
}

static void run_job(const struct job_case *job, char ret_digest[80])
{
    struct job_run run;
    open_job(&run, job, NULL);
    for (unsigned i = 0; i < run.worker_count; i++) {
        start_worker(&run, i, NULL);
    }
    finish_job(&run, ret_digest);
}

/* In every way, or by every algorithm. */
static void compare_designs(unsigned workers, bool is_thorough)
{
    const struct job_case cases[] = {
        {"ring", "tcp", workers, 0},
        {"ring", "shm", workers, 0},
        {"ring", "tcp", workers, 0, "ring"},
        {"ring", "tcp", workers, 0, "direct"},
        {"ring", "tcp", workers, 0, "halving-doubling"},
        {"ps-sync", "auto", workers, 3},
        {"ring", "ipc", workers, 0},
        {"ring", "shm", workers, 0, "ring"},
        {"ring", "shm", workers, 0, "halving-doubling"},
        {"ps-sync", "tcp", workers, 1},
        {"ps-sync", "ipc", workers, 2},
        {"ps-sync", "shm", workers, 2},
        {"ps-sync", "tcp", workers, 2, NULL, 3},
        {"ps-sync", "tcp", workers, 2, NULL, 0, 4},
        {"ring", "tcp", workers, 0, "ring", 0, 3},
        {"ring", "tcp", workers, 0, "halving-doubling", 0, 8},
    };
    size_t case_count = is_thorough ? sizeof(cases) / sizeof(cases[0]) : 6;
    char first[80];
    run_job(&cases[0], first);
    for (size_t k = 1; k < case_count; k++) {
        char digest[80];
        run_job(&cases[k], digest);
        if (strcmp(first, digest) != 0) {
            fail_msg("N = %u: %s over %s with %u servers ends with %.12s, ring with %.12s", workers,
                     cases[k].mode, cases[k].transport, cases[k].servers, digest, first);
        }
    }
}

static void ring_and_any_number_of_servers_end_with_the_same_bits(void **state)
{
    (void)state;
    compare_designs(3, true);
}

static void so_they_do_with_any_number_of_workers(void **state)
{
    (void)state;
    const unsigned counts[] = {1, 2, 4, 5, 6, 7, 8, 9};
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        compare_designs(counts[i], counts[i] <= 2 || counts[i] == 8);
    }
}

static void one_worker_in_every_mode_is_local(void **state)
{
    (void)state;
    const struct job_case cases[] = {
        {"local", "auto", 1, 0}, {"ring", "auto", 1, 0}, {"ps-sync", "auto", 1, 2}};
    char first[80], digest[80];
    run_job(&cases[0], first);
    for (size_t i = 1; i < 3; i++) {
        run_job(&cases[i], digest);
        assert_string_equal(first, digest);
    }
}

static void workers_without_ranks_are_given_them(void **state)
{
    (void)state;
    struct job_run run;
    char digest[80];
    open_job(&run, &(struct job_case){"ring", "auto", 3, 0}, NULL);
    for (unsigned i = 0; i < 3; i++) {
        const char *args[] = {"--server", run.endpoint, NULL};
        program_start(&run.workers[i], run.folder, "worker/worker", false, args, NULL);
    }
    finish_job(&run, digest);
}

/* Kills what still runs, and cleans up. */
static void abandon(struct job_run *run)
{
    for (unsigned i = 0; i < run->worker_count; i++) {
        if (run->workers[i].pid > 0) {
            program_kill(&run->workers[i], SIGKILL);
            program_wait(&run->workers[i]);
        }
    }
    programs_remove_folder(run->folder);
}

/* The job must fail and say so: exit code 1, and `reason` in summary.json and in the output. */
static void expect_failure(struct job_run *run, const char *reason)
{
    if (program_wait(&run->ps[0]) != EXIT_CODE_LOST) {
        fail_msg("ps did not fail: %s", program_output(&run->ps[0]));
    }
    json_t *summary = programs_read_json(run->out, "summary.json");
    assert_string_equal(json_string_value(json_object_get(summary, "outcome")), "failed");
    const char *found = json_string_value(json_object_get(summary, "reason"));
    if (strstr(found, reason) == NULL || strstr(program_output(&run->ps[0]), reason) == NULL) {
        fail_msg("'%s' is not in '%s', or not in: %s", reason, found, program_output(&run->ps[0]));
    }
    json_decref(summary);
}

static void a_worker_that_is_killed_in_training_is_named(void **state)
{
    (void)state;
    struct job_run run;
    const char *const more[] = {"--steps", "1000000", "--lost-after", "1", "--on-loss",
                                "fail",    NULL};
    open_job(&run, &(struct job_case){"ring", "auto", 2, 0}, more);
    start_worker(&run, 0, NULL);
    start_worker(&run, 1, NULL);
    // The first line of metrics says that training is under way.
    programs_wait_for_file(run.out, "metrics.jsonl");
    program_kill(&run.workers[1], SIGKILL);
    program_wait(&run.workers[1]);
    run.workers[1].pid = 0;
    expect_failure(&run, "worker 1 (host ");
    assert_int_equal(program_wait(&run.workers[0]), EXIT_CODE_LOST);
    run.workers[0].pid = 0;
    abandon(&run);
}

static void a_worker_that_never_comes_is_named(void **state)
{
    (void)state;
    struct job_run run;
    const char *const more[] = {"--start-timeout", "1", NULL};
    open_job(&run, &(struct job_case){"ring", "auto", 2, 0}, more);
    start_worker(&run, 0, NULL);
    expect_failure(&run, "only 1 of 2 workers have joined");
    abandon(&run);
}

static void a_signal_to_the_coordinator_ends_everybody_with_a_summary(void **state)
{
    (void)state;
    static const struct {
        int number;
        const char *reason;
    } cases[] = {{SIGINT, "the coordinator was interrupted by SIGINT"},
                 {SIGHUP, "the coordinator was interrupted by SIGHUP"}};
    const char *const more[] = {"--steps", "1000000", NULL};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct job_run run;
        open_job(&run, &(struct job_case){"ps-sync", "auto", 2, 1}, more);
        start_worker(&run, 0, NULL);
        start_worker(&run, 1, NULL);
        programs_wait_for_file(run.out, "metrics.jsonl");
        program_kill(&run.ps[0], cases[i].number);
        assert_int_equal(program_wait(&run.ps[0]), 130);
        assert_non_null(strstr(program_output(&run.ps[0]), "interrupted: "));
        assert_int_equal(program_wait(&run.workers[0]), 130);
        assert_int_equal(program_wait(&run.workers[1]), 130);
        run.workers[0].pid = run.workers[1].pid = 0;
        json_t *summary = programs_read_json(run.out, "summary.json");
        assert_string_equal(json_string_value(json_object_get(summary, "outcome")), "failed");
        assert_string_equal(json_string_value(json_object_get(summary, "reason")), cases[i].reason);
        assert_true(json_is_null(json_object_get(summary, "params_digest")));
        json_decref(summary);
        abandon(&run);
    }
}

static void a_taken_rank_is_refused_and_the_job_goes_on(void **state)
{
    (void)state;
    struct job_run run;
    char digest[80];
    open_job(&run, &(struct job_case){"ring", "auto", 2, 0}, NULL);
    start_worker(&run, 0, NULL);
    struct program_run second = {.announce_fd = -1};
    const char *const args[] = {"--server", run.endpoint, "--rank", "7", NULL};
    program_start(&second, run.folder, "worker/worker", false, args, NULL);
    assert_int_equal(program_wait(&second), 1);
    assert_non_null(strstr(program_output(&second), "there is no such rank"));
    assert_null(strstr(program_output(&second), "this job has"));
    assert_non_null(
        strstr(program_output(&run.ps[0]), "worker 7 asked to join, but this job has 2"));
    start_worker(&run, 1, NULL);
    finish_job(&run, digest);
}

static void a_worker_with_other_data_is_refused_by_name(void **state)
{
    (void)state;
    struct job_run run;
    const char *const other[] = {"--data", "synthetic", NULL};
    const char *const more[] = {"--limit-train", "0", "--limit-test", "0", NULL};
    open_job(&run, &(struct job_case){"ring", "auto", 2, 0}, more);
    start_worker(&run, 0, NULL);
    start_worker(&run, 1, other);
    if (program_wait(&run.ps[0]) == 0) {
        fail_msg("data that differ were accepted: %s", program_output(&run.ps[0]));
    }
    abandon(&run);
}

static void two_sources_of_the_rank_that_contradict_are_refused(void **state)
{
    (void)state;
    struct program_run run = {.announce_fd = -1};
    char folder[PROGRAM_PATH_BYTES];
    programs_make_folder(folder);
    const char *const args[] = {"--server", "tcp://127.0.0.1:1", "--rank", "1", NULL};
    const char *const environment[] = {"SLURM_PROCID=2", NULL};
    program_start(&run, folder, "worker/worker", false, args, environment);
    assert_int_equal(program_wait(&run), 2);
    assert_non_null(strstr(program_output(&run), "--rank says 1 but SLURM_PROCID says 2"));
    programs_remove_folder(folder);
}

static void a_port_in_use_is_named_with_the_option_that_changes_it(void **state)
{
    (void)state;
    struct job_run run;
    open_job(&run, &(struct job_case){"ring", "tcp", 2, 0}, NULL);
    struct program_run second = {.announce_fd = -1};
    const char *port = strrchr(run.endpoint, ':') + 1;
    const char *const args[] = {"--port", port, NULL};
    program_start(&second, run.folder, "ps-server/ps", false, args, insecure);
    assert_int_equal(program_wait(&second), 1);
    assert_non_null(strstr(program_output(&second), port));
    assert_non_null(strstr(program_output(&second), "--port"));
    program_kill(&run.ps[0], SIGINT);
    assert_int_equal(program_wait(&run.ps[0]), 130);
    abandon(&run);
}

static void by_hand_and_without_keys_members_meet_by_ipc_alone(void **state)
{
    (void)state;
    struct job_run run;
    char digest[80], expected[80];
    const char *const more[] = {"--log-level", "info", NULL};
    run_job(&(struct job_case){"ps-sync", "tcp", 2, 1}, expected);
    open_job(&run, &(struct job_case){"ps-sync", "auto", 2, 1}, more);
    assert_memory_equal(run.endpoint, "ipc:///proc/", strlen("ipc:///proc/"));
    start_worker(&run, 0, NULL);
    start_worker(&run, 1, NULL);
    programs_wait_for_file(run.out, "job.json"); // by then everybody listens
    const char *log = program_output(&run.ps[0]);
    assert_non_null(strstr(log, "listening at "));
    assert_null(strstr(log, "tcp://"));
    finish_job(&run, digest);
    assert_string_equal(digest, expected);
}

static void a_shard_waits_for_its_coordinator_as_long_as_it_is_told(void **state)
{
    (void)state;
    struct program_run run = {.announce_fd = -1};
    char folder[PROGRAM_PATH_BYTES];
    programs_make_folder(folder);
    const char *const args[] = {"--shard-index",  "1",   "--server", "ipc://@ringside-nobody",
                                "--join-timeout", "0.1", NULL};
    program_start(&run, folder, "ps-server/ps", false, args, NULL);
    assert_int_equal(program_wait(&run), EXIT_CODE_LOST);
    assert_non_null(
        strstr(program_output(&run),
               "within 0.1 s: nobody listens there: is `ps` running still, on this host and "
               "as this user?"));
    programs_remove_folder(folder);
}

static void bad_options_exit_with_2_and_write_nothing(void **state)
{
    (void)state;
    const char *const cases[][4] = {
        {"--wrokers", "2", "did you mean --workers?", NULL},
        {"--mode", "rnig", "did you mean ring?", NULL},
        {"--model", "lenet", "did you mean lenet5?", NULL},
        {"--data", "cifar", "did you mean cifar10?", NULL},
        {"--workers", "0", "from 1 to", NULL},
        {"--optimizer", "adma", "did you mean adam?", NULL},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct program_run run = {.announce_fd = -1};
        char folder[PROGRAM_PATH_BYTES], out[PROGRAM_PATH_BYTES + 8];
        programs_make_folder(folder);
        snprintf(out, sizeof(out), "%s/out", folder);
        const char *const args[] = {cases[i][0], cases[i][1], "--out", out, NULL};
        program_start(&run, folder, "ps-server/ps", false, args, NULL);
        assert_int_equal(program_wait(&run), 2);
        if (strstr(program_output(&run), cases[i][2]) == NULL) {
            fail_msg("'%s' is not in: %s", cases[i][2], program_output(&run));
        }
        assert_int_not_equal(access(out, F_OK), 0);
        programs_remove_folder(folder);
    }
}

/* With an argument: what takes too long for the sanitizers. */
int main(int argc, char **argv)
{
    (void)argv;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ring_and_any_number_of_servers_end_with_the_same_bits),
        cmocka_unit_test(one_worker_in_every_mode_is_local),
        cmocka_unit_test(workers_without_ranks_are_given_them),
        cmocka_unit_test(a_worker_that_is_killed_in_training_is_named),
        cmocka_unit_test(a_worker_that_never_comes_is_named),
        cmocka_unit_test(a_signal_to_the_coordinator_ends_everybody_with_a_summary),
        cmocka_unit_test(a_taken_rank_is_refused_and_the_job_goes_on),
        cmocka_unit_test(a_worker_with_other_data_is_refused_by_name),
        cmocka_unit_test(two_sources_of_the_rank_that_contradict_are_refused),
        cmocka_unit_test(a_port_in_use_is_named_with_the_option_that_changes_it),
        cmocka_unit_test(by_hand_and_without_keys_members_meet_by_ipc_alone),
        cmocka_unit_test(a_shard_waits_for_its_coordinator_as_long_as_it_is_told),
        cmocka_unit_test(bad_options_exit_with_2_and_write_nothing),
    };
    const struct CMUnitTest counts[] = {
        cmocka_unit_test(so_they_do_with_any_number_of_workers),
    };
    return argc > 1 ? cmocka_run_group_tests(counts, NULL, NULL)
                    : cmocka_run_group_tests(tests, NULL, NULL);
}
