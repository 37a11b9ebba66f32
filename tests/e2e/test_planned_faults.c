/* End to end: --fault kills and stops the process that it names, and no other. */
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

#define KILLED(fault) " was killed by signal 9, as planned (--fault " fault ")"

/* What jobs here have in common, and how long most of them are. */
#define SMALL \
    "--workers", "3", "--batch", "4", "--data", "synthetic", "--device", "ref", "--eval", "end"
#define COMMON SMALL, "--steps", "6"

/* A job with its run folder, which is a new one unless it is resumed. */
struct fault_job {
    struct program_run run;
    char folder[PROGRAM_PATH_BYTES], out[PROGRAM_PATH_BYTES + 16];
};

static void open_job(struct fault_job *job)
{
    *job = (struct fault_job){.run = {.announce_fd = -1}};
    programs_make_folder(job->folder);
    snprintf(job->out, sizeof(job->out), "%s/out", job->folder);
}

/* Its summary, which the caller owns. */
static json_t *run(struct fault_job *job, const char *const *args, int expected)
{
    // As programs_run_job has them: the bits are compared.
    const char *all[PROGRAM_ARGS_MAX] = {"run", "--model",       "lenet5", "--threads",
                                         "1",   "--limit-train", "120",    "--limit-test",
                                         "50",  "--bucket-mb",   "0.05"};
    size_t count = 11;
    for (size_t i = 0; args[i] != NULL; i++) {
        all[count++] = args[i];
    }
    program_start(&job->run, job->folder, "deploy/ringside", false, all, NULL);
    int code = program_wait(&job->run);
    if (code != expected) {
        fail_msg("%d: %s", code, program_output(&job->run));
    }
    return programs_read_json(job->out, "summary.json");
}

static void check_text(json_t *summary, const char *key, const char *expected)
{
    assert_string_equal(json_string_value(json_object_get(summary, key)), expected);
}

/* A job that a fault ends: the reason in its summary. */
static void run_and_fail(const char *const *args, char *ret_reason, size_t reason_size)
{
    struct fault_job job;
    const char *all[PROGRAM_ARGS_MAX] = {"--out", job.out};
    open_job(&job);
    for (size_t i = 0; args[i] != NULL; i++) {
        all[2 + i] = args[i];
    }
    json_t *summary = run(&job, all, 1);
    check_text(summary, "outcome", "failed");
    snprintf(ret_reason, reason_size, "%s", json_string_value(json_object_get(summary, "reason")));
    json_decref(summary);
    programs_remove_folder(job.folder);
}

static void a_killed_worker_ends_the_job_and_is_named(void **state)
{
    (void)state;
    static const char *const modes[] = {"ring", "ps-sync"};
    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        char reason[512];
        const char *const args[] = {
            COMMON, "--mode", modes[i], "--fault", "rank=1,step=3,kill", "--on-loss", "fail", NULL};
        run_and_fail(args, reason, sizeof(reason));
        assert_string_equal(reason, "worker 1" KILLED("rank=1,step=3,kill"));
    }
}

static void the_process_that_carries_the_rank_is_killed(void **state)
{
    (void)state;
    char reason[512];
    const char *const args[] = {
        COMMON,      "--mode", "ring", "--processes", "2", "--fault", "rank=1,step=3,kill",
        "--on-loss", "fail",   NULL};
    run_and_fail(args, reason, sizeof(reason));
    assert_string_equal(reason, "worker 0" KILLED("rank=1,step=3,kill: it carried rank 1"));
}

static void a_killed_server_ends_the_job_and_is_named(void **state)
{
    (void)state;
    static const char *const ends[][3] = {
        {"ps-sync", "shard=1,step=3,kill", "server 1" KILLED("shard=1,step=3,kill")},
        {"ps-async", "shard=1,step=3,kill", "server 1" KILLED("shard=1,step=3,kill")},
        {"ps-sync", "shard=0,step=3,kill",
         "the coordinator" KILLED("shard=0,step=3,kill")}, // which is server 0
    };
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        char reason[512];
        const char *const args[] = {COMMON,    "--servers", "2",         "--mode", ends[i][0],
                                    "--fault", ends[i][1],  "--on-loss", "fail",   NULL};
        run_and_fail(args, reason, sizeof(reason));
        assert_string_equal(reason, ends[i][2]);
    }
}

static void the_others_go_on_with_the_bits_of_an_undisturbed_job(void **state)
{
    (void)state;
    static const char *const jobs[][7] = {
        {"ring", "rank=1,step=3,kill"},
        {"ring", "rank=0,step=1,kill", "--transport", "tcp", "--all-reduce", "ring"},
        {"ring", "rank=2,step=5,kill;rank=0,step=5,kill"},
        {"ps-sync", "rank=1,step=3,kill"},
        {"ps-sync", "shard=1,step=3,kill", "--servers", "2"},
        {"ps-sync", "shard=1,step=3,kill;rank=0,step=5,kill", "--servers", "3", "--transport",
         "tcp"},
    };
    char undisturbed[PROGRAM_DIGEST_BYTES];
    const char *const plain[] = {COMMON, "--mode", "ring", NULL};
    programs_run_digest(plain, undisturbed);
    for (size_t i = 0; i < sizeof(jobs) / sizeof(jobs[0]); i++) {
        const char *const *more = jobs[i];
        const char *const args[] = {COMMON,  "--mode", more[0], "--on-loss", "redeal", "--fault",
                                    more[1], more[2],  more[3], more[4],     more[5],  NULL};
        json_t *summary = programs_run_job(args);
        check_text(summary, "params_digest", undisturbed);
        const json_t *recoveries =
            json_object_get(json_object_get(summary, "details"), "recoveries");
        assert_int_equal(json_array_size(recoveries), strchr(more[1], ';') != NULL ? 2 : 1);
        json_decref(summary);
    }
}

static void too_few_workers_fail_the_job(void **state)
{
    (void)state;
    char reason[512];
    const char *const args[] = {
        COMMON,          "--mode", "ring",    "--on-loss",          "redeal",
        "--min-workers", "3",      "--fault", "rank=1,step=3,kill", NULL};
    run_and_fail(args, reason, sizeof(reason));
    assert_non_null(strstr(reason, "2 worker processes are left, and --min-workers is 3"));
}

/* Its workers give the coordinator up, whose own server is cut off: nobody trains again. */
static void a_job_that_cannot_go_on_is_described_as_it_began(void **state)
{
    (void)state;
    struct fault_job job;
    open_job(&job);
    const char *const args[] = {COMMON,        "--mode",  "ps-async",
                                "--transport", "ipc",     "--lost-after",
                                "1",           "--fault", "shard=0,step=3,partition=60s",
                                "--outlast",   "0",       "--out",
                                job.out,       NULL};
    json_decref(run(&job, args, 1));
    json_t *described = programs_read_json(job.out, "job.json");
    const json_t *options = json_object_get(described, "options");
    assert_int_equal(json_integer_value(json_object_get(options, "processes")), 0);
    assert_int_equal(json_array_size(json_object_get(described, "members")), 4);
    json_decref(described);
    programs_remove_folder(job.folder);
}

static void a_worker_that_is_started_again_takes_its_ranks_back(void **state)
{
    (void)state;
    struct fault_job job;
    char undisturbed[PROGRAM_DIGEST_BYTES];
    open_job(&job);
    const char *const plain[] = {COMMON, "--steps", "80", "--mode", "ps-sync", NULL};
    programs_run_digest(plain, undisturbed);
    // Slow enough for it to come back before the end.
    const char *const args[] = {COMMON,
                                "--steps",
                                "80",
                                "--mode",
                                "ps-sync",
                                "--fault",
                                "rank=1,step=3,kill",
                                "--restarts",
                                "1",
                                "--straggler",
                                "dist=exponential:mean=50ms,share=1",
                                "--out",
                                job.out,
                                NULL};
    json_t *summary = run(&job, args, 0);
    check_text(summary, "params_digest", undisturbed);
    assert_int_equal(json_integer_value(json_object_get(summary, "workers_lost")), 1);
    assert_int_equal(json_integer_value(json_object_get(summary, "restarts")), 2);
    json_decref(summary);
    programs_remove_folder(job.folder);
}

// So many that newcomers of steps 50 and 70 find some left on a machine that is busy.
#define JOINED_STEPS      140
#define JOINED_STEPS_TEXT "140"

/* A step that was too near for somebody is named anew. */
static void check_recovery(const json_t *recovery, const char *reason, int processes, int step)
{
    assert_string_equal(json_string_value(json_object_get(recovery, "reason")), reason);
    assert_int_equal(json_integer_value(json_object_get(recovery, "processes")), processes);
    assert_in_range(json_integer_value(json_object_get(recovery, "begin_step")), step,
                    JOINED_STEPS - 1);
}

/* Newcomers have places in the order in which they first asked, which need not be that of the
 * losses. One that is not there when its turn comes gets its place with the next one, or later. */
static void check_losses_and_arrivals(const json_t *all)
{
    const json_t *first = json_array_get(all, 2);
    const char *reason = json_string_value(json_object_get(first, "reason"));
    bool is_second = reason != NULL && strcmp(reason, "worker 2 has come") == 0;
    check_recovery(json_array_get(all, 0), "worker 1" KILLED("rank=1,step=3,kill"), 2, 0);
    check_recovery(json_array_get(all, 1), "worker 2" KILLED("rank=2,step=9,kill"), 1, 0);
    if (json_array_size(all) == 3) {
        check_recovery(first, "2 workers have come", 3, 70);
        return;
    }
    static const char *const reasons[] = {"worker 1 has come", "worker 2 has come"};
    check_recovery(first, reasons[is_second ? 1 : 0], 2, 50);
    check_recovery(json_array_get(all, 3), reasons[is_second ? 0 : 1], 3, 70);
}

static void workers_join_after_the_steps_that_are_named(void **state)
{
    (void)state;
    static const char *const modes[] = {"ring", "ps-sync"};
    char undisturbed[PROGRAM_DIGEST_BYTES];
    const char *const plain[] = {COMMON, "--steps", JOINED_STEPS_TEXT, "--mode", "ring", NULL};
    const char *const faults = "rank=1,step=3,kill;rank=2,step=9,kill;"
                               "after=step:50,join;after=step:70,join";
    programs_run_digest(plain, undisturbed);
    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        const char *const args[] = {COMMON,   "--steps",     JOINED_STEPS_TEXT,
                                    "--mode", modes[i],      "--fault",
                                    faults,   "--straggler", "dist=exponential:mean=30ms,share=1",
                                    NULL};
        json_t *summary = programs_run_job(args);
        check_text(summary, "params_digest", undisturbed);
        assert_int_equal(json_integer_value(json_object_get(summary, "workers_lost")), 2);
        check_losses_and_arrivals(
            json_object_get(json_object_get(summary, "details"), "recoveries"));
        json_decref(summary);
    }
}

static void who_stands_still_changes_no_bit(void **state)
{
    (void)state;
    static const char *const stops[][2] = {
        {"ring", "rank=1,step=3,stop=1s"},
        {"ps-sync", "rank=1,step=3,stop=1s"},
        {"ps-sync", "shard=0,step=3,stop=1s"},
    };
    char undisturbed[PROGRAM_DIGEST_BYTES], stopped[PROGRAM_DIGEST_BYTES];
    const char *const plain[] = {COMMON, "--mode", "ring", NULL};
    programs_run_digest(plain, undisturbed);
    for (size_t i = 0; i < sizeof(stops) / sizeof(stops[0]); i++) {
        const char *const args[] = {COMMON, "--mode", stops[i][0], "--fault", stops[i][1], NULL};
        programs_run_digest(args, stopped);
        assert_string_equal(stopped, undisturbed);
    }
}

static void who_is_cut_off_for_a_time_changes_no_bit(void **state)
{
    (void)state;
    static const char *const cuts[][3] = {
        {"ring", "rank=1,step=3,partition=1s", "tcp"},
        {"ps-sync", "rank=1,step=3,partition=1s", "ipc"},
        {"ps-sync", "shard=0,step=3,partition=1s", "tcp"},
    };
    char undisturbed[PROGRAM_DIGEST_BYTES];
    const char *const plain[] = {COMMON, "--mode", "ring", NULL};
    programs_run_digest(plain, undisturbed);
    for (size_t i = 0; i < sizeof(cuts) / sizeof(cuts[0]); i++) {
        const char *const args[] = {COMMON,     "--mode",      cuts[i][0], "--fault",
                                    cuts[i][1], "--transport", cuts[i][2], NULL};
        json_t *summary = programs_run_job(args);
        check_text(summary, "params_digest", undisturbed);
        // Nobody could go on without it.
        assert_true(json_number_value(json_object_get(summary, "seconds")) >= 1);
        json_decref(summary);
    }
}

/* It is given up after a second, and asks to come back when it goes on. */
static void who_was_lost_while_it_stood_still_joins_again(void **state)
{
    (void)state;
    char undisturbed[PROGRAM_DIGEST_BYTES];
    const char *const plain[] = {COMMON, "--steps", "80", "--mode", "ring", NULL};
    programs_run_digest(plain, undisturbed);
    const char *const args[] = {COMMON,
                                "--steps",
                                "80",
                                "--mode",
                                "ring",
                                "--fault",
                                "rank=1,step=3,stop=2s",
                                "--lost-after",
                                "1",
                                "--straggler",
                                "dist=exponential:mean=50ms,share=1",
                                NULL};
    json_t *summary = programs_run_job(args);
    check_text(summary, "params_digest", undisturbed);
    assert_int_equal(json_integer_value(json_object_get(summary, "workers_lost")), 1);
    assert_int_equal(json_integer_value(json_object_get(summary, "restarts")), 2);
    json_decref(summary);
}

/* An epoch has ten steps, and the checkpoint is of the first one. */
static void a_resumed_job_meets_the_faults_behind_its_checkpoint(void **state)
{
    (void)state;
    static const char *const modes[][2] = {
        {"ring", "rank=1,step=2,kill;rank=1,step=10,kill;rank=1,step=11,stop=0.2s"},
        {"ps-sync", "shard=0,step=2,kill;shard=0,step=10,kill;shard=0,step=11,stop=0.2s"},
    };
    const char *const whole[] = {SMALL, "--mode", "ring", "--epochs", "2", NULL};
    char undisturbed[PROGRAM_DIGEST_BYTES];
    programs_run_digest(whole, undisturbed);
    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        struct fault_job job;
        open_job(&job);
        const char *const half[] = {SMALL,   "--mode",   modes[i][0], "--checkpoint-every",
                                    "epoch", "--epochs", "1",         "--out",
                                    job.out, NULL};
        json_decref(run(&job, half, 0));
        const char *const rest[] = {SMALL,      "--mode", modes[i][0], "--fault", modes[i][1],
                                    "--epochs", "2",      "--resume",  job.out,   NULL};
        json_t *summary = run(&job, rest, 0);
        check_text(summary, "params_digest", undisturbed);
        assert_non_null(strstr(program_output(&job.run), "was stopped by SIGSTOP"));
        json_decref(summary);
        programs_remove_folder(job.folder);
    }
}

/* Both losses come behind the only checkpoint, which is of the first epoch. */
static void a_job_that_is_resumed_twice_counts_all_its_losses(void **state)
{
    (void)state;
    static const char *const faults[] = {"none", "rank=1,step=12,kill", "rank=2,step=13,kill"};
    struct fault_job job;
    open_job(&job);
    for (int time = 0; time < 3; time++) {
        const char *const goes[] = {"--out", "--resume"}, *const epochs[] = {"1", "2"};
        const char *const args[] = {
            SMALL,   "--mode",    "ring", "--epochs", epochs[time > 0], "--checkpoint-every",
            "epoch", "--on-loss", "fail", "--fault",  faults[time],     goes[time > 0],
            job.out, NULL};
        json_t *summary = run(&job, args, time > 0);
        assert_int_equal(json_integer_value(json_object_get(summary, "workers_lost")), time);
        assert_int_equal(json_integer_value(json_object_get(summary, "restarts")), time);
        json_decref(summary);
    }
    programs_remove_folder(job.folder);
}

/* One server with two shards: each is struck at its own clock. */
static void every_shard_of_a_server_may_be_named(void **state)
{
    (void)state;
    const char *const args[] = {COMMON,
                                "--mode",
                                "ps-sync",
                                "--server-threads",
                                "2",
                                "--fault",
                                "shard=1,step=2,stop=0.1s",
                                "--fault",
                                "shard=0,step=6,stop=0.1s",
                                NULL};
    const char *const plain[] = {COMMON, "--mode", "ps-sync", NULL};
    char undisturbed[PROGRAM_DIGEST_BYTES], stopped[PROGRAM_DIGEST_BYTES];
    programs_run_digest(plain, undisturbed);
    programs_run_digest(args, stopped);
    assert_string_equal(stopped, undisturbed);
}

static void compare_says_what_a_fault_has_cost(void **state)
{
    (void)state;
    struct fault_job job;
    open_job(&job);
    const char *const args[] = {"compare", "--model",
                                "lenet5",  "--threads",
                                "1",       "--limit-train",
                                "120",     "--limit-test",
                                "50",      COMMON,
                                "--modes", "local,ring",
                                "--fault", "rank=1,step=3,kill",
                                "--out",   job.out,
                                NULL};
    program_start(&job.run, job.folder, "deploy/ringside", false, args, NULL);
    assert_int_equal(program_wait(&job.run), 0);
    // Two jobs with three workers, and local, which has no rank 1: one with the fault, one without.
    const char *output = program_output(&job.run);
    assert_non_null(strstr(output, "[3/3]"));
    const char *costs = strstr(output, "faults and losses:");
    assert_non_null(costs);
    const char *row = strstr(costs, "ring, N = 3, faults       1 ");
    assert_non_null(row);
    assert_non_null(strstr(row, " same"));
    assert_null(strstr(costs, "local"));
    programs_remove_folder(job.folder);
}

/* Beside the run without the fault that the grid has as well. */
static void a_sweep_says_what_a_fault_has_cost(void **state)
{
    (void)state;
    struct fault_job job;
    open_job(&job);
    const char *const args[] = {"sweep",  "--model",
                                "lenet5", "--threads",
                                "1",      "--limit-train",
                                "120",    "--limit-test",
                                "50",     COMMON,
                                "--mode", "ring",
                                "--grid", "fault=none|rank=1,step=3,kill",
                                "--out",  job.out,
                                NULL};
    program_start(&job.run, job.folder, "deploy/ringside", false, args, NULL);
    assert_int_equal(program_wait(&job.run), 0);
    const char *costs = strstr(program_output(&job.run), "faults and losses:\n");
    assert_non_null(costs);
    const char *row = strstr(costs, "worker 1 killed at step 3  1 ");
    assert_non_null(row);
    assert_non_null(strstr(row, " same"));
    programs_remove_folder(job.folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_killed_worker_ends_the_job_and_is_named),
        cmocka_unit_test(the_process_that_carries_the_rank_is_killed),
        cmocka_unit_test(a_killed_server_ends_the_job_and_is_named),
        cmocka_unit_test(the_others_go_on_with_the_bits_of_an_undisturbed_job),
        cmocka_unit_test(too_few_workers_fail_the_job),
        cmocka_unit_test(a_job_that_cannot_go_on_is_described_as_it_began),
        cmocka_unit_test(a_worker_that_is_started_again_takes_its_ranks_back),
        cmocka_unit_test(workers_join_after_the_steps_that_are_named),
        cmocka_unit_test(who_stands_still_changes_no_bit),
        cmocka_unit_test(who_is_cut_off_for_a_time_changes_no_bit),
        cmocka_unit_test(who_was_lost_while_it_stood_still_joins_again),
        cmocka_unit_test(a_resumed_job_meets_the_faults_behind_its_checkpoint),
        cmocka_unit_test(a_job_that_is_resumed_twice_counts_all_its_losses),
        cmocka_unit_test(every_shard_of_a_server_may_be_named),
        cmocka_unit_test(compare_says_what_a_fault_has_cost),
        cmocka_unit_test(a_sweep_says_what_a_fault_has_cost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
