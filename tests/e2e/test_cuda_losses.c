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

/* A job whose servers keep parameters on a GPU, and what is lost of it. */
static size_t run_with_gpu_servers(const char *mode, const struct job *of,
                                   char ret_digest[PROGRAM_DIGEST_BYTES])
{
    struct job job = {of->runtime,
                      {"-n", "3", "--mode", mode, "-s", "2", "--server-device", "cuda"}};
    size_t count = 8;
    for (size_t i = 0; of->args[i] != NULL; i++) {
        job.args[count++] = of->args[i];
    }
    return run_with_losses(&job, ret_digest);
}

/* What servers have on GPUs goes to a checkpoint and comes back: after the loss of a shard, of the
 * coordinator with its own, and of a worker whose rank nobody may carry, for whom the whole job
 * begins again. */
static void servers_on_gpus_go_on_with_the_bits_of_an_undisturbed_job(void **state)
{
    (void)state;
    static const struct {
        size_t recovery_count;
        struct job job;
    } cases[] = {
        {1, {"lazy,ipc", {"--fault", "shard=1,step=4,kill"}}},
        {1,
         {"lazy,pageable,ipc",
          {"--fault", "shard=0,step=5,kill", "--checkpoint-every", "3", "--restarts", "1"}}},
        {0,
         {"eager,ipc",
          {"--fault", "shard=1,step=5,kill", "--checkpoint-every", "3", "--restarts", "1",
           "--on-loss", "fail"}}},
        {0,
         {"lazy,ipc",
          {"--fault", "rank=1,step=5,kill", "--checkpoint-every", "3", "--restarts", "1",
           "--on-loss", "fail"}}},
    };
    const struct job undisturbed = {"lazy", {"-n", "3", "--mode", "ps-sync"}};
    char first[PROGRAM_DIGEST_BYTES], other[PROGRAM_DIGEST_BYTES];
    assert_int_equal(run_with_losses(&undisturbed, first), 0);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(run_with_gpu_servers("ps-sync", &cases[i].job, other),
                         cases[i].recovery_count);
        if (strcmp(first, other) != 0) {
            fail_msg("job %zu ends with %.12s, the undisturbed one with %.12s", i, other, first);
        }
    }
}

/* Who carries a lost worker's rank keeps its gradients on the GPU, where servers take them; where
 * ranks take turns, each has its own push. */
static void others_carry_a_lost_rank_where_servers_are_on_gpus(void **state)
{
    (void)state;
    static const struct {
        size_t recovery_count;
        bool races; // so there are no bits to compare
        const char *mode, *order;
        struct job job;
    } cases[] = {
        {1, false, "ps-sync", "free", {"lazy,ipc", {"--fault", "rank=1,step=4,kill"}}},
        {2,
         false,
         "ps-sync",
         "free",
         {"eager,ipc", {"--fault", "rank=0,step=3,kill;rank=2,step=6,kill"}}},
        {0, false, "ps-sync", "free", {"lazy,ipc", {"--processes", "2"}}},
        {1,
         false,
         "ps-async",
         "seeded:constant:2",
         {"lazy,ipc", {"--fault", "rank=1,step=4,kill"}}},
        {1, true, "ps-async", "free", {"lazy,ipc", {"--fault", "rank=1,step=4,kill"}}},
        {1,
         false,
         "ps-ssp:2",
         "seeded:uniform:0..2",
         {"lazy,pageable,ipc", {"--fault", "rank=2,step=4,kill"}}},
    };
    char first[PROGRAM_DIGEST_BYTES], other[PROGRAM_DIGEST_BYTES];
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *order = cases[i].order;
        struct job job = cases[i].job;
        size_t count = 0;
        while (job.args[count] != NULL) {
            count++;
        }
        job.args[count++] = "--order";
        job.args[count] = order;
        if (i == 0 || strcmp(cases[i].mode, cases[i - 1].mode) != 0) {
            const struct job undisturbed = {"lazy",
                                            {"-n", "3", "--mode", cases[i].mode, "--order", order}};
            assert_int_equal(run_with_losses(&undisturbed, first), 0);
        }
        assert_int_equal(run_with_gpu_servers(cases[i].mode, &job, other), cases[i].recovery_count);
        if (strcmp(first, other) != 0 && !cases[i].races) {
            fail_msg("job %zu ends with %.12s, the undisturbed one with %.12s", i, other, first);
        }
    }
}

int main(int argc, char **argv)
{
    (void)argv;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_is_left_by_a_killed_worker_ends),
        cmocka_unit_test(who_is_left_goes_on_with_the_bits_of_an_undisturbed_job),
        cmocka_unit_test(servers_on_gpus_go_on_with_the_bits_of_an_undisturbed_job),
    };
    const struct CMUnitTest carried[] = {
        cmocka_unit_test(others_carry_a_lost_rank_where_servers_are_on_gpus),
    };
    return argc > 1 ? cmocka_run_group_tests(carried, NULL, NULL)
                    : cmocka_run_group_tests(tests, NULL, NULL);
}
