/* End to end: jobs on the CUDA backend, over its fake runtime, that lose processes. */
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

#define ARGS_MAX 24

struct job {
    const char *runtime; // what FAKE_CUDA says
    const char *args[ARGS_MAX];
};

/* Its device's streams wait for one that nobody continues. */
static void who_is_left_by_a_killed_worker_ends(void **state)
{
    (void)state;
    static const char *const environment[] = {"FAKE_CUDA=eager,ipc", NULL};
    static const char programs[] = "tests/worker/device/cuda_fake";
    char folder[PROGRAM_PATH_BYTES], out[PROGRAM_PATH_BYTES + 16], endpoint[256];
    char ps_path[64], worker_path[64];
    struct program_run ps, workers[2];
    programs_make_folder(folder);
    snprintf(out, sizeof(out), "%s/out", folder);
    snprintf(ps_path, sizeof(ps_path), "%s/ps", programs);
    snprintf(worker_path, sizeof(worker_path), "%s/worker", programs);
    const char *const args[] = {"--mode",
                                "ring",
                                "--workers",
                                "2",
                                "--model",
                                "lenet5",
                                "--data",
                                "shapes",
                                "--device",
                                "cuda",
                                "--global-batch",
                                "8",
                                "--steps",
                                "100000",
                                "--report-every",
                                "2",
                                "--eval",
                                "end",
                                "--out",
                                out,
                                "--on-loss",
                                "fail",
                                NULL};
    program_start(&ps, folder, ps_path, true, args, NULL);
    program_read_endpoint(&ps, endpoint, sizeof(endpoint));
    for (int i = 0; i < 2; i++) {
        const char *const worker[] = {"--server", endpoint, "--rank", i == 0 ? "0" : "1", NULL};
        program_start(&workers[i], folder, worker_path, false, worker, environment);
    }
    programs_wait_for_file(out, "metrics.jsonl"); // training is under way
    program_kill(&workers[1], SIGKILL);
    assert_int_equal(program_wait(&workers[1]), 128 + SIGKILL);
    assert_int_not_equal(program_wait(&workers[0]), 0);
    assert_int_not_equal(program_wait(&ps), 0);
    assert_non_null(strstr(program_output(&ps), "worker 1 "));
    programs_remove_folder(folder);
}

/* The digest of a job in which processes may be lost, and how often it went on without them. */
static size_t run_with_losses(const struct job *job, char ret_digest[PROGRAM_DIGEST_BYTES])
{
    const char *args[ARGS_MAX + 16] = {"--device",       "cuda", "--steps", "8",
                                       "--global-batch", "24",   "--eval",  "end",
                                       "--optimizer",    "adam"};
    size_t count = 10;
    for (size_t i = 0; job->args[i] != NULL; i++) {
        args[count++] = job->args[i];
    }
    assert_int_equal(setenv("FAKE_CUDA", job->runtime, 1), 0);
    json_t *summary = programs_run_job(args);
    const json_t *details = json_object_get(summary, "details");
    size_t recovery_count = json_array_size(json_object_get(details, "recoveries"));
    snprintf(ret_digest, PROGRAM_DIGEST_BYTES, "%s",
             json_string_value(json_object_get(summary, "params_digest")));
    json_decref(summary);
    return recovery_count;
}

/* Their devices stay open, and get new programs: with parameters and states of the optimizer from a
 * copy, other slices, other peers in the memory of the same devices, and launches to capture anew.
 */
static void who_is_left_goes_on_with_the_bits_of_an_undisturbed_job(void **state)
{
    (void)state;
    static const struct {
        size_t recovery_count;
        struct job job;
    } cases[] = {
        {1, {"lazy", {"-n", "3", "--mode", "ring", "--fault", "rank=1,step=4,kill"}}},
        {1, {"lazy,ipc", {"-n", "3", "--mode", "ring", "--fault", "rank=1,step=4,kill"}}},
        {2,
         {"eager,ipc",
          {"-n", "3", "--mode", "ring", "--fault", "rank=0,step=3,kill;rank=2,step=6,kill"}}},
        {1, {"lazy", {"-n", "3", "--mode", "ps-sync", "--fault", "rank=1,step=4,kill"}}},
        {1,
         {"lazy,pageable",
          {"-n", "3", "--mode", "ps-sync", "-s", "2", "--fault", "shard=1,step=4,kill"}}},
    };
    const struct job undisturbed = {"lazy", {"-n", "3", "--mode", "ps-sync"}};
    char first[PROGRAM_DIGEST_BYTES], other[PROGRAM_DIGEST_BYTES];
    assert_int_equal(run_with_losses(&undisturbed, first), 0);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(run_with_losses(&cases[i].job, other), cases[i].recovery_count);
        if (strcmp(first, other) != 0) {
            fail_msg("job %zu ends with %.12s, the undisturbed one with %.12s", i, other, first);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_is_left_by_a_killed_worker_ends),
        cmocka_unit_test(who_is_left_goes_on_with_the_bits_of_an_undisturbed_job),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
