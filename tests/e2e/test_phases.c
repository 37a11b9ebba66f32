/* Switching designs, local SGD, backup workers and targets, end to end. */
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

#define ARGS_MAX 24

/* All jobs must end with the same parameters. */
static void check_alike(const char *const (*jobs)[ARGS_MAX], size_t count)
{
    char first[PROGRAM_DIGEST_BYTES], digest[PROGRAM_DIGEST_BYTES];
    programs_run_digest(jobs[0], first);
    for (size_t i = 1; i < count; i++) {
        programs_run_digest(jobs[i], digest);
        if (strcmp(first, digest) != 0) {
            fail_msg("job %zu ends with %.12s, the first with %.12s", i, digest, first);
        }
    }
}

/* Parameters and both states of Adam go from the workers to servers and back. */
static void synchronous_phases_end_where_one_design_does(void **state)
{
    (void)state;
    const char *const jobs[][ARGS_MAX] = {
        {"-n", "3", "--mode", "ring", "--global-batch", "24", "--epochs", "3", "--optimizer",
         "adam", NULL},
        {"-n", "3", "--mode", "ps-sync", "--global-batch", "24", "--epochs", "3", "--optimizer",
         "adam", "--switch", "epoch:1=ring", "--switch", "step:8=ps-sync", "--switch",
         "step:12=ring", "-s", "2", NULL},
        {"-n", "3", "--mode", "ring", "--global-batch", "24", "--epochs", "3", "--optimizer",
         "adam", "--switch", "step:1=ps-sync;step:2=ps-sync;step:14=ring", "--transport", "tcp",
         NULL},
        {"-n", "3", "--mode", "ring", "--global-batch", "24", "--epochs", "3", "--optimizer",
         "adam", "--switch", "step:5=ps-sync;step:9=ring", "--transport", "shm", "-s", "2", NULL},
    };
    check_alike(jobs, sizeof(jobs) / sizeof(jobs[0]));
}

static void seeded_phases_repeat_bit_by_bit(void **state)
{
    (void)state;
    const char *const jobs[][ARGS_MAX] = {
        {"-n", "3", "--mode", "ps-async", "--global-batch", "24", "--epochs", "3", "--order",
         "seeded:uniform:0..4", "--switch", "epoch:1=ring;step:12=ps-async", NULL},
        {"-n", "3", "--mode", "ps-async", "--global-batch", "24", "--epochs", "3", "--order",
         "seeded:uniform:0..4", "--switch", "epoch:1=ring;step:12=ps-async", "-s", "3",
         "--transport", "tcp", NULL},
    };
    check_alike(jobs, sizeof(jobs) / sizeof(jobs[0]));
}

/* From races to a ring and back: all workers agree in the end, or the job fails. */
static void unsynchronised_phases_end_with_everybody_in_the_same_place(void **state)
{
    (void)state;
    const char *const job[] = {"-n",
                               "4",
                               "--mode",
                               "ps-async",
                               "--global-batch",
                               "24",
                               "--epochs",
                               "3",
                               "--switch",
                               "step:4=ring;step:9=ps-ssp:1",
                               "-s",
                               "2",
                               "--backup",
                               "1",
                               "--switch",
                               "step:13=ps-sync",
                               NULL};
    json_t *summary = programs_run_job(job);
    assert_int_equal(json_array_size(json_object_get(summary, "epochs")), 3);
    json_decref(summary);
}

static void local_steps_have_the_same_bits_in_both_designs(void **state)
{
    (void)state;
    const char *const jobs[][ARGS_MAX] = {
        {"-n", "3", "--mode", "ring", "--global-batch", "24", "--steps", "13", "--sync-every", "3",
         NULL},
        {"-n", "3", "--mode", "ps-sync", "--global-batch", "24", "--steps", "13", "--sync-every",
         "3", "-s", "2", NULL},
        {"-n", "3", "--mode", "ps-sync", "--global-batch", "24", "--steps", "13", "--sync-every",
         "3", "--switch", "epoch:1=ring", NULL},
    };
    check_alike(jobs, sizeof(jobs) / sizeof(jobs[0]));
}

static void delays_for_each_worker_repeat_bit_by_bit(void **state)
{
    (void)state;
    const char *const jobs[][ARGS_MAX] = {
        {"-n", "3", "--mode", "ps-async", "--global-batch", "24", "--epochs", "2", "--order",
         "seeded:uniform:0..3", "--delay-model", "per-worker", NULL},
        {"-n", "3", "--mode", "ps-async", "--global-batch", "24", "--epochs", "2", "--order",
         "seeded:uniform:0..3", "--delay-model", "per-worker", "-s", "2", "--transport", "tcp",
         NULL},
    };
    check_alike(jobs, sizeof(jobs) / sizeof(jobs[0]));
}

static void backup_workers_make_every_update_and_drop_what_is_late(void **state)
{
    (void)state;
    const char *const job[] = {
        "-n", "4",        "--mode", "ps-sync",     "--global-batch",   "24", "--steps",
        "20", "--backup", "1",      "--straggler", "rank=2,factor=20", NULL};
    json_t *summary = programs_run_job(job);
    const json_t *staleness = json_object_get(summary, "staleness");
    const json_t *histogram = json_object_get(staleness, "histogram");
    assert_int_equal(json_array_size(histogram), 1);
    assert_true(json_integer_value(json_array_get(histogram, 0)) >= 60); // 20 of 3 each
    const json_t *details = json_object_get(summary, "details");
    assert_true(json_integer_value(json_object_get(details, "late_gradients")) > 0);
    json_decref(summary);
}

/* Everything is above an accuracy of 1 %, so the first evaluation ends the job. */
static void a_target_ends_the_job_at_the_evaluation_that_reaches_it(void **state)
{
    (void)state;
    static const char *const modes[] = {"ring", "ps-sync", "ps-async"};
    for (size_t i = 0; i < 3; i++) {
        const char *const job[] = {
            "-n",       "2", "--mode",       modes[i], "--global-batch",    "24",
            "--epochs", "4", "--eval-every", "3",      "--target-accuracy", "0.01",
            NULL};
        json_t *summary = programs_run_job(job);
        const json_t *details = json_object_get(summary, "details");
        const json_t *target = json_object_get(details, "target");
        const json_t *epochs = json_object_get(details, "evaluations");
        assert_int_equal(json_integer_value(json_object_get(target, "steps")), 3);
        if (i < 2) { // where workers are unsynchronised, one may have made another step
            assert_int_equal(json_integer_value(json_object_get(summary, "steps")), 3);
        }
        assert_true(json_number_value(json_object_get(target, "seconds")) > 0);
        assert_int_equal(json_array_size(epochs), 1);
        assert_int_equal(json_integer_value(json_object_get(json_array_get(epochs, 0), "step")), 3);
        json_decref(summary);
    }
}

static void a_target_that_is_not_reached_says_so(void **state)
{
    (void)state;
    const char *const job[] = {
        "-n", "2", "--mode", "ring", "--global-batch", "24", "--epochs", "2", "--target-accuracy",
        "1",  NULL};
    json_t *summary = programs_run_job(job);
    const json_t *target = json_object_get(json_object_get(summary, "details"), "target");
    assert_true(json_is_null(json_object_get(target, "steps")));
    assert_int_equal(json_array_size(json_object_get(summary, "epochs")), 2);
    json_decref(summary);
}

/* Ten steps, and evaluations every four. */
static void the_end_of_a_job_is_evaluated_whatever_the_period(void **state)
{
    (void)state;
    static const char *const modes[] = {"ring", "ps-async"};
    static const json_int_t steps[] = {4, 8, 10};
    for (size_t i = 0; i < 2; i++) {
        const char *const job[] = {"-n", "2",        "--mode", modes[i],       "--global-batch",
                                   "24", "--epochs", "2",      "--eval-every", "4",
                                   NULL};
        json_t *summary = programs_run_job(job);
        const json_t *evaluations =
            json_object_get(json_object_get(summary, "details"), "evaluations");
        assert_int_equal(json_array_size(evaluations), 3);
        for (size_t k = 0; k < 3; k++) {
            const json_t *evaluation = json_array_get(evaluations, k);
            assert_int_equal(json_integer_value(json_object_get(evaluation, "step")), steps[k]);
            assert_true(json_is_real(json_object_get(evaluation, "test_accuracy")));
        }
        json_decref(summary);
    }
}

/* What details.json says of --bucket-mb auto: its trials, and one of their sizes as the choice. */
static void check_tuned(const json_t *summary)
{
    const json_t *buckets = json_object_get(json_object_get(summary, "details"), "buckets");
    const json_t *trials = json_object_get(buckets, "trials"), *trial;
    double chosen = json_number_value(json_object_get(buckets, "bucket_mb"));
    unsigned match_count = 0;
    size_t i;
    assert_int_equal(json_array_size(trials), 4);
    json_array_foreach(trials, i, trial)
    {
        double size = json_number_value(json_object_get(trial, "bucket_mb"));
        match_count += size <= chosen && size >= chosen;
        assert_true(json_number_value(json_object_get(trial, "ms_per_step")) > 0);
    }
    assert_int_equal(match_count, 1);
}

/* The sum of two has the same bits wherever it is cut into chunks, so whatever was chosen has no
 * say, and all jobs end as one with a size that was given. */
static void tuned_jobs_of_two_workers_end_with_the_bits_of_any_size(void **state)
{
    (void)state;
    static const char *const ways[][8] = {
        {"--mode", "ring", "--transport", "tcp", NULL},
        {"--mode", "ps-sync", "-s", "2", NULL},
        {"--mode", "ps-sync", "-s", "2", "--server-threads", "2", "--transport", "tcp"},
        {"--mode", "ps-sync", "--switch", "step:194=ring", "--transport", "tcp", NULL},
    };
    const char *const given[] = {"-n",           "2",  "--mode", "ring",  "--model", "cnn",
                                 "-b",           "1",  "--lr",   "0.001", "--steps", "200",
                                 "--eval-every", "60", NULL};
    char expected[PROGRAM_DIGEST_BYTES];
    programs_run_digest(given, expected);
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        const char *job[ARGS_MAX] = {"-n",          "2",     "--model", "cnn", "-b",           "1",
                                     "--lr",        "0.001", "--steps", "200", "--eval-every", "60",
                                     "--bucket-mb", "auto"};
        for (size_t k = 0; k < 8 && ways[i][k] != NULL; k++) {
            job[14 + k] = ways[i][k];
        }
        json_t *summary = programs_run_job(job);
        const json_t *evaluations =
            json_object_get(json_object_get(summary, "details"), "evaluations");
        assert_string_equal(json_string_value(json_object_get(summary, "params_digest")), expected);
        assert_int_equal(json_array_size(evaluations), 4); // as without trials
        check_tuned(summary);
        json_decref(summary);
    }
}

/* Three workers: a worker or a shard whose buckets differ from the others' would end elsewhere. */
static void tuned_jobs_end_with_everybody_in_the_same_place(void **state)
{
    (void)state;
    static const char *const ways[][6] = {
        {"--mode", "ring", "--transport", "tcp", "--compress", "int8"},
        {"--mode", "ring", "--transport", "tcp", "--all-reduce", "halving-doubling"},
        {"--mode", "ps-sync", "-s", "2", "--optimizer", "adam"},
        {"--mode", "ps-async", "-s", "2", NULL},
        {"--mode", "ps-ssp:2", "--transport", "tcp", NULL},
        {"--mode", "ps-sync", "--backup", "1", "-s", "2"},
    };
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        const char *job[ARGS_MAX] = {"-n",      "3",   "--global-batch", "6",   "--lr", "0.001",
                                     "--steps", "200", "--bucket-mb",    "auto"};
        for (size_t k = 0; k < 6 && ways[i][k] != NULL; k++) {
            job[10 + k] = ways[i][k];
        }
        json_t *summary = programs_run_job(job);
        check_tuned(summary);
        json_decref(summary);
    }
}

static void local_steps_are_tuned_in_whole_rounds(void **state)
{
    (void)state;
    const char *const job[] = {"-n",      "3",           "--mode",       "ring", "--global-batch",
                               "6",       "--transport", "tcp",          "--lr", "0.001",
                               "--steps", "390",         "--sync-every", "2",    "--bucket-mb",
                               "auto",    NULL};
    json_t *summary = programs_run_job(job);
    check_tuned(summary);
    json_decref(summary);
}

/* What a job prints; `text` is to be in it. */
static void check_prints(const char *const *settings, const char *text)
{
    char folder[PROGRAM_PATH_BYTES], out[PROGRAM_PATH_BYTES + 16];
    struct program_run run = {.announce_fd = -1};
    programs_make_folder(folder);
    snprintf(out, sizeof(out), "%s/out", folder);
    const char *args[ARGS_MAX] = {"run", "--out",         out,   "--model", "lenet5", "-b",
                                  "2",   "--limit-train", "120", "--eval",  "none",   "--bucket-mb",
                                  "auto"};
    for (size_t i = 13; i < ARGS_MAX - 1 && settings[i - 13] != NULL; i++) {
        args[i] = settings[i - 13];
    }
    program_start(&run, folder, "deploy/ringside", false, args, NULL);
    int code = program_wait(&run);
    if (code != 0 || strstr(program_output(&run), text) == NULL) {
        fail_msg("'%s' is not in: %s", text, program_output(&run));
    }
    programs_remove_folder(folder);
}

static void a_job_says_which_buckets_it_goes_on_with_or_why_none_are_tried(void **state)
{
    (void)state;
    check_prints(
        (const char *const[]){"--steps", "200", "--mode", "ring", "--transport", "tcp", NULL},
        " ms a step; continues with ");
    check_prints((const char *const[]){"--steps", "100", "--mode", "ps-sync", NULL},
                 "bucket-mb auto: stays at 1; 100 steps are too few for trials");
    check_prints((const char *const[]){"--steps", "200", "--mode", "ring", NULL},
                 "bucket-mb auto: stays at 1; workers add up gradients in shared memory");
    check_prints((const char *const[]){"--steps", "200", "--mode", "local", NULL},
                 "bucket-mb auto: stays at 1; one worker exchanges nothing");
}

/* The pid of server 1, which in a ring has nothing to do. */
static pid_t idle_server(const char *out)
{
    json_t *job = programs_read_json(out, "job.json");
    const json_t *members = json_object_get(job, "members"), *member;
    size_t i;
    json_int_t pid = 0;
    json_array_foreach(members, i, member)
    {
        const char *role = json_string_value(json_object_get(member, "role"));
        bool is_it = strcmp(role, "server") == 0 &&
                     json_integer_value(json_object_get(member, "index")) == 1;
        pid = is_it ? json_integer_value(json_object_get(member, "pid")) : pid;
    }
    json_decref(job);
    assert_true(pid > 0);
    return (pid_t)pid;
}

/* A worker that has come to its end says so. */
static void check_last_words(const char *out, const char *name)
{
    char path[2 * PROGRAM_PATH_BYTES], text[4096];
    snprintf(path, sizeof(path), "%s/logs/%s", out, name);
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
    fclose(file);
    if (strstr(text, "the job ended early for this worker") == NULL) {
        fail_msg("%s: %s", name, text);
    }
}

/* All workers have passed, and have replaced what they exchanged with; one server never comes. */
static void a_job_that_fails_between_two_phases_ends_in_order(void **state)
{
    (void)state;
    char folder[PROGRAM_PATH_BYTES], out[PROGRAM_PATH_BYTES + 16];
    struct program_run run = {.announce_fd = -1};
    programs_make_folder(folder);
    snprintf(out, sizeof(out), "%s/out", folder);
    assert_int_equal(mkdir(out, 0700), 0); // to watch it
    const char *const args[] = {
        "run",          "--out",  out,           "--model",  "lenet5",
        "--mode",       "ring",   "-s",          "2",        "--steps",
        "400",          "--eval", "none",        "--switch", "step:20=ps-sync",
        "--lost-after", "2",      "--log-level", "info",     "--on-loss",
        "fail",         NULL};
    program_start(&run, folder, "deploy/ringside", false, args, NULL);
    programs_wait_for_file(out, "job.json");
    pid_t server = idle_server(out);
    assert_int_equal(kill(server, SIGSTOP), 0);
    int code = program_wait(&run);
    kill(server, SIGKILL);
    if (code != 1 || strstr(program_output(&run), "server 1") == NULL) {
        fail_msg("%d: %s", code, program_output(&run));
    }
    check_last_words(out, "worker-0.log");
    check_last_words(out, "worker-1.log");
    programs_remove_folder(folder);
}

/* What only the data can tell: it is said before anything begins. */
static void a_switch_at_a_step_that_never_comes_is_refused(void **state)
{
    (void)state;
    char folder[PROGRAM_PATH_BYTES], out[PROGRAM_PATH_BYTES + 16];
    struct program_run run = {.announce_fd = -1};
    programs_make_folder(folder);
    snprintf(out, sizeof(out), "%s/out", folder);
    const char *const args[] = {
        "run", "--out",         out,   "--model",  "lenet5",       "--epochs", "2", "-b",
        "10",  "--limit-train", "100", "--switch", "step:10=ring", NULL};
    program_start(&run, folder, "deploy/ringside", false, args, NULL);
    assert_int_not_equal(program_wait(&run), 0);
    if (strstr(program_output(&run), "never comes: the job has 10 steps, 5 an epoch") == NULL) {
        fail_msg("%s", program_output(&run));
    }
    programs_remove_folder(folder);
}

/* With an argument: what takes too long for the sanitizers. */
int main(int argc, char **argv)
{
    (void)argv;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(synchronous_phases_end_where_one_design_does),
        cmocka_unit_test(seeded_phases_repeat_bit_by_bit),
        cmocka_unit_test(unsynchronised_phases_end_with_everybody_in_the_same_place),
        cmocka_unit_test(local_steps_have_the_same_bits_in_both_designs),
        cmocka_unit_test(delays_for_each_worker_repeat_bit_by_bit),
        cmocka_unit_test(backup_workers_make_every_update_and_drop_what_is_late),
        cmocka_unit_test(a_target_ends_the_job_at_the_evaluation_that_reaches_it),
        cmocka_unit_test(a_target_that_is_not_reached_says_so),
        cmocka_unit_test(the_end_of_a_job_is_evaluated_whatever_the_period),
        cmocka_unit_test(a_job_says_which_buckets_it_goes_on_with_or_why_none_are_tried),
        cmocka_unit_test(a_job_that_fails_between_two_phases_ends_in_order),
        cmocka_unit_test(a_switch_at_a_step_that_never_comes_is_refused),
    };
    const struct CMUnitTest tuning[] = {
        cmocka_unit_test(local_steps_are_tuned_in_whole_rounds),
        cmocka_unit_test(tuned_jobs_of_two_workers_end_with_the_bits_of_any_size),
        cmocka_unit_test(tuned_jobs_end_with_everybody_in_the_same_place),
    };
    return argc > 1 ? cmocka_run_group_tests(tuning, NULL, NULL)
                    : cmocka_run_group_tests(tests, NULL, NULL);
}
