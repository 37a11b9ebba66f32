/* End to end: whole jobs on the CUDA backend over its fake runtime. Updates by the device, by
 * servers, and by both in turn end with the same bits. What is shown is the logic of the host, not
 * what a GPU computes: see tests/worker/device/cuda_fake/stream.h. */
#include "tests/support/programs/programs.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ARGS_MAX 24

struct job {
    const char *runtime; // what FAKE_CUDA says
    const char *args[ARGS_MAX];
};

struct outcome {
    char digest[PROGRAM_DIGEST_BYTES];
    double test_loss; // of the last evaluation
    bool sums_on_devices;
};

static void run(const struct job *job, struct outcome *ret_outcome)
{
    const char *args[ARGS_MAX + 4] = {"--device", "cuda"};
    size_t count = 2;
    for (size_t i = 0; job->args[i] != NULL; i++) {
        args[count++] = job->args[i];
    }
    assert_int_equal(setenv("FAKE_CUDA", job->runtime, 1), 0);
    json_t *summary = programs_run_job(args);
    const json_t *epochs = json_object_get(summary, "epochs");
    const json_t *last = json_array_get(epochs, json_array_size(epochs) - 1);
    assert_true(json_is_real(json_object_get(last, "test_loss")));
    ret_outcome->test_loss = json_real_value(json_object_get(last, "test_loss"));
    snprintf(ret_outcome->digest, sizeof(ret_outcome->digest), "%s",
             json_string_value(json_object_get(summary, "params_digest")));
    const char *transport = json_string_value(json_object_get(summary, "transport"));
    ret_outcome->sums_on_devices = strcmp(transport, "gpu") == 0;
    json_decref(summary);
}

/* Whether a job's devices are to sum: those of processes that carry one rank each. */
static bool is_for_devices(const struct job *job)
{
    bool has_ring = true;
    for (size_t i = 0; job->args[i] != NULL; i++) {
        if (strcmp(job->args[i], "--server-device") == 0) {
            return strcmp(job->args[i + 1], "cuda") == 0;
        }
        has_ring = has_ring && strcmp(job->args[i], "--no-cuda-peers") != 0 &&
                   strcmp(job->args[i], "--processes") != 0 && strncmp(job->args[i], "ps-", 3) != 0;
    }
    return has_ring && strstr(job->runtime, "ipc") != NULL &&
           strstr(job->runtime, "unreachable") == NULL && strstr(job->runtime, "wordless") == NULL;
}

/* All jobs must end with the same parameters, and have evaluated the same; those sum on devices
 * that are to. */
static void check_alike(const struct job *jobs, size_t count)
{
    struct outcome first, other;
    run(&jobs[0], &first);
    assert_int_equal(strlen(first.digest), 64);
    for (size_t i = 1; i < count; i++) {
        run(&jobs[i], &other);
        assert_int_equal(other.sums_on_devices, is_for_devices(&jobs[i]));
        if (strcmp(first.digest, other.digest) != 0 || first.test_loss != other.test_loss) {
            fail_msg("job %zu ends with %.12s, test loss %a; the first with %.12s, %a", i,
                     other.digest, other.test_loss, first.digest, first.test_loss);
        }
    }
}

/* Gradients and parameters that never leave the device, and those that all come and go. */
static void one_worker_ends_where_a_server_does(void **state)
{
    (void)state;
    static const struct job jobs[] = {
        {"eager", {"-n", "1", "--mode", "local", "--global-batch", "12", "--epochs", "2"}},
        {"lazy", {"-n", "1", "--mode", "local", "--global-batch", "12", "--epochs", "2"}},
        {"lazy", {"-n", "1", "--mode", "ring", "--global-batch", "12", "--epochs", "2"}},
        {"lazy", {"-n", "1", "--mode", "ps-sync", "--global-batch", "12", "--epochs", "2"}},
    };
    check_alike(jobs, sizeof(jobs) / sizeof(jobs[0]));
}

static void a_ring_ends_where_servers_do(void **state)
{
    (void)state;
    static const struct job jobs[] = {
        {"lazy",
         {"-n", "2", "--mode", "ring", "--global-batch", "24", "--epochs", "2", "--optimizer",
          "nesterov", "--weight-decay", "0.01"}},
        {"eager",
         {"-n", "2", "--mode", "ring", "--global-batch", "24", "--epochs", "2", "--optimizer",
          "nesterov", "--weight-decay", "0.01", "--transport", "tcp"}},
        {"lazy,pageable",
         {"-n", "2", "--mode", "ps-sync", "--global-batch", "24", "--epochs", "2", "--optimizer",
          "nesterov", "--weight-decay", "0.01", "-s", "2"}},
    };
    check_alike(jobs, sizeof(jobs) / sizeof(jobs[0]));
}

/* Parameters and both states of Adam go from the devices to servers and back. */
static void phases_take_states_from_the_device_and_give_them_back(void **state)
{
    (void)state;
    static const struct job jobs[] = {
        {"lazy",
         {"-n", "2", "--mode", "ring", "--global-batch", "24", "--epochs", "3", "--optimizer",
          "adam"}},
        {"lazy",
         {"-n", "2", "--mode", "ps-sync", "--global-batch", "24", "--epochs", "3", "--optimizer",
          "adam", "--switch", "epoch:1=ring", "--switch", "step:8=ps-sync", "--switch",
          "step:12=ring"}},
        {"eager",
         {"-n", "2", "--mode", "ring", "--global-batch", "24", "--epochs", "3", "--optimizer",
          "adam", "--switch", "step:1=ps-sync;step:2=ring;step:11=ps-sync"}},
    };
    check_alike(jobs, sizeof(jobs) / sizeof(jobs[0]));
}

/* The host makes these updates, and the device takes parameters anew in every step. */
static void local_sgd_ends_alike_in_every_mode(void **state)
{
    (void)state;
    static const struct job jobs[] = {
        {"lazy",
         {"-n", "2", "--mode", "ring", "--global-batch", "24", "--epochs", "2", "--sync-every",
          "2"}},
        {"eager",
         {"-n", "2", "--mode", "ps-sync", "--global-batch", "24", "--epochs", "2", "--sync-every",
          "2"}},
    };
    check_alike(jobs, sizeof(jobs) / sizeof(jobs[0]));
}

/* Buckets of other sizes in the middle of a job: what is captured and copied changes, and what two
 * workers compute does not. */
static void buckets_that_change_take_the_gradients_of_the_same_steps(void **state)
{
    (void)state;
    static const struct job jobs[] = {
        {"lazy", {"-n", "2", "--mode", "ring", "--global-batch", "2", "--epochs", "4"}},
        {"lazy",
         {"-n", "2", "--mode", "ring", "--global-batch", "2", "--epochs", "4", "--transport", "tcp",
          "--bucket-mb", "auto"}},
    };
    check_alike(jobs, sizeof(jobs) / sizeof(jobs[0]));
}

static void buckets_change_alike_where_steps_are_launched_and_servers_sum(void **state)
{
    (void)state;
    static const struct job jobs[] = {
        {"lazy", {"-n", "2", "--mode", "ring", "--global-batch", "2", "--epochs", "4"}},
        {"eager",
         {"-n", "2", "--mode", "ps-sync", "--global-batch", "2", "--epochs", "4", "--bucket-mb",
          "auto"}},
    };
    check_alike(jobs, sizeof(jobs) / sizeof(jobs[0]));
}

/* Its sums go to the host, to all workers and back in the middle of forward and backward. */
static void batch_normalisation_over_all_workers_ends_alike_in_both_designs(void **state)
{
    (void)state;
    static const struct job jobs[] = {
        {"lazy",
         {"-n", "2", "--mode", "ring", "--model", "resnet20", "--image-size", "8", "--global-batch",
          "6", "--steps", "3", "--sync-bn", "--eval", "end"}},
        {"eager",
         {"-n", "2", "--mode", "ps-sync", "--model", "resnet20", "--image-size", "8",
          "--global-batch", "6", "--steps", "3", "--sync-bn", "--eval", "end"}},
    };
    check_alike(jobs, sizeof(jobs) / sizeof(jobs[0]));
}

/* Steps that are replayed, and those that are launched kernel by kernel. Images that are left over
 * make the last batch of each evaluation smaller. */
static void graphs_change_no_bit(void **state)
{
    (void)state;
    static const char *const jobs[][ARGS_MAX] = {
        {"-n", "1", "--mode", "local", "--global-batch", "12", "--epochs", "3"},
        {"-n", "2", "--mode", "ring", "--global-batch", "23", "--epochs", "3"},
        {"-n", "2", "--mode", "ps-sync", "--global-batch", "24", "--epochs", "2", "--eval-every",
         "2"},
        {"-n", "2", "--mode", "ps-ssp:1", "--order", "seeded:round-robin", "--global-batch", "24",
         "--epochs", "2"},
        {"-n", "2", "--mode", "ring", "--global-batch", "24", "--epochs", "2", "--sync-every", "3"},
        {"-n", "2", "--mode", "ring", "--model", "resnet20", "--image-size", "8", "--global-batch",
         "6", "--steps", "3", "--sync-bn", "--eval", "end"},
    };
    for (size_t i = 0; i < sizeof(jobs) / sizeof(jobs[0]); i++) {
        struct job pair[] = {{.runtime = "lazy"}, {.runtime = "eager"}};
        size_t count = 0;
        while (jobs[i][count] != NULL) {
            pair[0].args[count] = pair[1].args[count] = jobs[i][count];
            count++;
        }
        pair[1].args[count] = "--no-cuda-graphs";
        check_alike(pair, 2);
    }
}

/* In each other's memory, where devices reach it; parts of a bucket differ by a value. */
static void sums_on_devices_have_the_bits_of_the_hosts(void **state)
{
    (void)state;
    static const char *const args[] = {
        "--global-batch", "15", "--epochs", "2", "--eval-every", "3", "--optimizer", "adam", NULL};
    static const struct job kinds[] = {
        {"eager", {"-n", "3", "--mode", "ps-sync"}},
        {"eager,ipc", {"-n", "3", "--mode", "ring"}},
        {"lazy,ipc", {"-n", "3", "--mode", "ring"}},
        {"lazy,ipc,pageable", {"-n", "3", "--mode", "ring", "--no-cuda-peers"}},
        {"eager,ipc", {"-n", "3", "--mode", "ring", "--no-cuda-graphs"}},
        {"eager,ipc,uncaptured", {"-n", "3", "--mode", "ring"}},
        {"lazy,ipc", {"-n", "3", "--mode", "ring", "--cuda-sync-check"}},
        {"eager,ipc,unreachable", {"-n", "3", "--mode", "ring"}},
        {"eager,ipc,wordless", {"-n", "3", "--mode", "ring"}},
    };
    struct job jobs[sizeof(kinds) / sizeof(kinds[0])];
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        size_t count = 0;
        jobs[i] = kinds[i];
        while (jobs[i].args[count] != NULL) {
            count++;
        }
        for (size_t k = 0; args[k] != NULL; k++) {
            jobs[i].args[count++] = args[k];
        }
    }
    check_alike(jobs, sizeof(jobs) / sizeof(jobs[0]));
}

/* Sums of normalisations go to the host and back between the buckets. */
static void sums_on_devices_go_on_beside_those_of_normalisations(void **state)
{
    (void)state;
    static const struct job jobs[] = {
        {"eager",
         {"-n", "2", "--mode", "ps-sync", "--model", "resnet20", "--image-size", "8",
          "--global-batch", "6", "--steps", "3", "--sync-bn", "--eval", "end"}},
        {"lazy,ipc",
         {"-n", "2", "--mode", "ring", "--model", "resnet20", "--image-size", "8", "--global-batch",
          "6", "--steps", "3", "--sync-bn", "--eval", "end"}},
    };
    check_alike(jobs, sizeof(jobs) / sizeof(jobs[0]));
}

/* Their gradients and statistics come to the host after each slice. */
static void fewer_processes_than_ranks_end_as_a_process_for_each(void **state)
{
    (void)state;
    static const struct job three[] = {
        {"lazy,ipc", {"-n", "3", "--mode", "ring", "--global-batch", "23", "--epochs", "3"}},
        {"lazy,ipc",
         {"-n", "3", "--mode", "ring", "--global-batch", "23", "--epochs", "3", "--processes",
          "2"}},
        {"lazy",
         {"-n", "3", "--mode", "ring", "--global-batch", "23", "--epochs", "3", "--processes",
          "1"}},
        {"lazy",
         {"-n", "3", "--mode", "ps-sync", "--global-batch", "23", "--epochs", "3", "--processes",
          "2"}},
    };
    static const struct job normalised[] = {
        {"lazy",
         {"-n", "2", "--mode", "ps-sync", "--model", "resnet20", "--image-size", "8",
          "--global-batch", "12", "--epochs", "2"}},
        {"lazy",
         {"-n", "2", "--mode", "ps-sync", "--model", "resnet20", "--image-size", "8",
          "--global-batch", "12", "--epochs", "2", "--processes", "1"}},
    };
    check_alike(three, sizeof(three) / sizeof(three[0]));
    check_alike(normalised, sizeof(normalised) / sizeof(normalised[0]));
}

/* Sums, optimizers, copies of marks and older versions, on servers of the host and of the device:
 * whatever the mode, several shards, and parts of buckets that differ by a value. */
static void servers_on_a_device_have_the_bits_of_the_hosts(void **state)
{
    (void)state;
    static const char *const cases[][ARGS_MAX] = {
        {"-n", "3", "--mode", "ps-sync", "-s", "2", "--optimizer", "adam", "--eval-every", "3"},
        {"-n", "2", "--mode", "ps-sync", "--server-threads", "2", "--weight-decay", "0.01"},
        {"-n", "2", "--mode", "ps-ssp:1", "--order", "seeded:uniform:0..3", "--optimizer",
         "nesterov"},
        {"-n", "2", "--mode", "ps-async", "--order", "seeded:round-robin", "--eval-every", "3"},
    };
    static const char *const runtimes[] = {"eager", "eager,ipc", "lazy,ipc"};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct job jobs[3];
        for (size_t k = 0; k < 3; k++) {
            size_t count = 0;
            jobs[k] = (struct job){.runtime = runtimes[k]};
            for (; cases[i][count] != NULL; count++) {
                jobs[k].args[count] = cases[i][count];
            }
            jobs[k].args[count++] = "--epochs";
            jobs[k].args[count++] = "2";
            jobs[k].args[count++] = "--server-device";
            jobs[k].args[count] = k == 0 ? "host" : "cuda";
        }
        check_alike(jobs, 3);
    }
}

/* What has no bits to compare: races, backup workers and several gradients for an update. */
static void servers_on_a_device_take_gradients_as_they_come(void **state)
{
    (void)state;
    static const struct job jobs[] = {
        {"lazy,ipc", {"-n", "3", "--mode", "ps-sync", "--backup", "1", "--server-device", "cuda"}},
        {"eager,ipc",
         {"-n", "3", "--mode", "ps-async", "--gradients-per-update", "2", "--remedy", "momentum",
          "--server-device", "cuda"}},
    };
    for (size_t i = 0; i < sizeof(jobs) / sizeof(jobs[0]); i++) {
        struct outcome outcome;
        run(&jobs[i], &outcome);
        assert_true(outcome.sums_on_devices && isfinite(outcome.test_loss));
    }
}

/* The device's counts go on where servers have made steps in between. */
static void devices_sum_in_the_phases_of_the_ring(void **state)
{
    (void)state;
    struct outcome plain, switched;
    run(&(const struct job){"lazy",
                            {"-n", "2", "--mode", "ps-sync", "--global-batch", "24", "--epochs",
                             "3", "--optimizer", "adam"}},
        &plain);
    run(&(const struct job){"lazy,ipc",
                            {"-n", "2", "--mode", "ring", "--global-batch", "24", "--epochs", "3",
                             "--optimizer", "adam", "--switch", "step:3=ps-sync;step:7=ring"}},
        &switched);
    assert_string_equal(plain.digest, switched.digest);
}

/* Milliseconds per step of what goes on beside steps. */
static double hidden_ms(const json_t *summary, const char *key)
{
    const json_t *details = json_object_get(summary, "details");
    const json_t *value = json_object_get(json_object_get(details, "ms_per_step"), key);
    assert_true(json_is_real(value));
    return json_real_value(value);
}

/* On the fake a byte takes a nanosecond. Gradients go down in every step, and parameters or mean
 * gradients up; one worker that keeps both has its parameters sent once. */
static void copies_are_counted_for_each_step(void **state)
{
    (void)state;
    static const struct {
        const char *mode, *workers;
        double copies; // of all values, in a step
    } cases[] = {{"ps-sync", "2", 2}, {"ring", "2", 2}, {"local", "1", 0.25}};
    assert_int_equal(setenv("FAKE_CUDA", "lazy", 1), 0);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *const args[] = {
            "--device", "cuda", "--mode",         cases[i].mode, "-n", cases[i].workers,
            "--steps",  "4",    "--global-batch", "8",           NULL};
        json_t *summary = programs_run_job(args);
        const json_t *parameters = json_object_get(summary, "parameters");
        double bytes = (double)json_integer_value(parameters) * sizeof(float);
        double expected_ms = cases[i].copies * bytes / 1e6;
        double copy_ms = hidden_ms(summary, "copy");
        if (fabs(copy_ms - expected_ms) > 1e-5 * expected_ms) {
            fail_msg("%s: %g ms a step instead of %g", cases[i].mode, copy_ms, expected_ms);
        }
        assert_int_equal(hidden_ms(summary, "wire") > 0, strcmp(cases[i].mode, "local") != 0);
        json_decref(summary);
    }
}

static void what_workers_take_of_gpus_is_said_before_the_job(void **state)
{
    (void)state;
    struct program_run run = {.announce_fd = -1};
    char folder[PROGRAM_PATH_BYTES];
    static const char *const args[] = {"run",    "--device", "cuda", "--data", "shapes", "--model",
                                       "lenet5", "--mode",   "ring", "-n",     "2",      "--batch",
                                       "4",      "--steps",  "2",    "--eval", "none",   NULL};
    assert_int_equal(setenv("FAKE_CUDA", "eager", 1), 0);
    programs_make_folder(folder);
    program_start(&run, folder, "deploy/ringside", false, args, NULL);
    assert_int_equal(program_wait(&run), 0);
    const char *line = strstr(program_output(&run), "memory: about ");
    assert_non_null(line);
    assert_non_null(strstr(line, " MiB of its GPU, besides what CUDA takes there"));
    programs_remove_folder(folder);
}

/* Without an argument: jobs for each way that gradients go. With one: the others, which take too
 * long for the sanitizers. */
int main(int argc, char **argv)
{
    (void)argv;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_ring_ends_where_servers_do),
        cmocka_unit_test(batch_normalisation_over_all_workers_ends_alike_in_both_designs),
        cmocka_unit_test(sums_on_devices_have_the_bits_of_the_hosts),
        cmocka_unit_test(servers_on_a_device_take_gradients_as_they_come),
        cmocka_unit_test(local_sgd_ends_alike_in_every_mode),
        cmocka_unit_test(devices_sum_in_the_phases_of_the_ring),
        cmocka_unit_test(what_workers_take_of_gpus_is_said_before_the_job),
    };
    const struct CMUnitTest others[] = {
        cmocka_unit_test(one_worker_ends_where_a_server_does),
        cmocka_unit_test(phases_take_states_from_the_device_and_give_them_back),
        cmocka_unit_test(buckets_that_change_take_the_gradients_of_the_same_steps),
        cmocka_unit_test(buckets_change_alike_where_steps_are_launched_and_servers_sum),
        cmocka_unit_test(graphs_change_no_bit),
        cmocka_unit_test(sums_on_devices_go_on_beside_those_of_normalisations),
        cmocka_unit_test(fewer_processes_than_ranks_end_as_a_process_for_each),
        cmocka_unit_test(servers_on_a_device_have_the_bits_of_the_hosts),
        cmocka_unit_test(copies_are_counted_for_each_step),
    };
    return argc > 1 ? cmocka_run_group_tests(others, NULL, NULL)
                    : cmocka_run_group_tests(tests, NULL, NULL);
}
