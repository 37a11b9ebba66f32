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
    static const char *const args[] = {"--steps", "100000", "--on-loss", "fail", NULL};
    char folder[PROGRAM_PATH_BYTES];
    programs_make_folder(folder);
    programs_lose_worker(folder, "tests/worker/device/cuda_fake", args, environment);
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

/* What servers have on GPUs goes to a checkpoint and comes back: after the loss of a shard, of the
 * coordinator with its own, and of a worker, for whom the whole job begins again. */
static void servers_on_gpus_go_on_with_the_bits_of_an_undisturbed_job(void **state)
{
    (void)state;
    static const char *const whole[] = {"--checkpoint-every", "3", "--restarts", "1"};
    static const struct {
        size_t recovery_count;
        bool restarts; // and goes on from a checkpoint on the disk
        struct job job;
    } cases[] = {
        {1, false, {"lazy,ipc", {"--on-loss", "redeal", "--fault", "shard=1,step=4,kill"}}},
        {1, true, {"lazy,pageable,ipc", {"--fault", "shard=0,step=5,kill"}}},
        {0, true, {"eager,ipc", {"--fault", "shard=1,step=5,kill"}}},
        {0, true, {"lazy,ipc", {"--fault", "rank=1,step=5,kill"}}},
    };
    const struct job undisturbed = {"lazy", {"-n", "3", "--mode", "ps-sync"}};
    char first[PROGRAM_DIGEST_BYTES], other[PROGRAM_DIGEST_BYTES];
    assert_int_equal(run_with_losses(&undisturbed, first), 0);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct job job = {cases[i].job.runtime,
                          {"-n", "3", "--mode", "ps-sync", "-s", "2", "--server-device", "cuda"}};
        size_t count = 8;
        for (size_t k = 0; cases[i].job.args[k] != NULL; k++) {
            job.args[count++] = cases[i].job.args[k];
        }
        for (size_t k = 0; cases[i].restarts && k < sizeof(whole) / sizeof(whole[0]); k++) {
            job.args[count++] = whole[k];
        }
        assert_int_equal(run_with_losses(&job, other), cases[i].recovery_count);
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
        cmocka_unit_test(servers_on_gpus_go_on_with_the_bits_of_an_undisturbed_job),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
