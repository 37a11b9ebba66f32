/* End to end: jobs whose gradients NCCL adds up, on the fake runtime of CUDA and a fake NCCL
 * (tests/worker/device/cuda_fake). They train, all ranks end with the same bits, and whoever looks
 * is told that these are NCCL's. What cannot be is refused by name, and a lost worker ends the job.
 */
#include "tests/support/programs/programs.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ARGS_MAX     32
#define PROGRAMS     "tests/worker/device/cuda_fake"
#define FAR_TOO_MANY "100000" // steps

/* A job of GPUs with the arguments behind those, in the order of our sums or NCCL's. */
static json_t *run(const char *runtime, bool has_nccl, const char *const *args)
{
    const char *all[ARGS_MAX] = {"--device", "cuda"};
    size_t count = 2;
    for (size_t i = 0; args[i] != NULL; i++) {
        all[count++] = args[i];
    }
    if (has_nccl) {
        all[count++] = "--all-reduce";
        all[count++] = "nccl";
    }
    assert_int_equal(setenv("FAKE_CUDA", runtime, 1), 0);
    return programs_run_job(all);
}

static const char *text_of(const json_t *summary, const char *key)
{
    const char *text = json_string_value(json_object_get(summary, key));
    return text != NULL ? text : "";
}

static double test_loss_of(const json_t *summary)
{
    const json_t *epochs = json_object_get(summary, "epochs");
    const json_t *last = json_array_get(epochs, json_array_size(epochs) - 1);
    return json_real_value(json_object_get(last, "test_loss"));
}

/* The coordinator has compared the digests of all ranks, and fails a job in which they differ. */
static void a_job_trains_by_nccl_and_says_whose_bits_it_has(void **state)
{
    (void)state;
    static const char *const args[] = {
        "-n", "3",           "--mode", "ring", "--epochs", "2", "--global-batch",
        "15", "--optimizer", "adam",   NULL};
    json_t *ours = run("lazy", false, args);
    assert_string_equal(text_of(ours, "bits_of"), "ringside");
    const char *const runtimes[] = {"eager,gpus=4", "lazy,gpus=3", "eager,gpus=4,pageable"};
    char first[PROGRAM_DIGEST_BYTES] = "";
    for (size_t i = 0; i < sizeof(runtimes) / sizeof(runtimes[0]); i++) {
        json_t *summary = run(runtimes[i], true, args);
        const char *digest = text_of(summary, "params_digest");
        assert_string_equal(text_of(summary, "bits_of"), "nccl");
        assert_string_equal(text_of(summary, "transport"), "nccl");
        const json_t *details = json_object_get(summary, "details");
        assert_string_equal(text_of(details, "all_reduce"), "nccl 2.27.7");
        assert_string_equal(text_of(details, "bytes_per_step"), "modelled");
        assert_int_equal(strlen(digest), 64);
        assert_string_not_equal(digest, text_of(ours, "params_digest"));
        assert_true(fabs(test_loss_of(summary) - test_loss_of(ours)) < 1e-3);
        if (i > 0) {
            assert_string_equal(digest, first);
        }
        snprintf(first, sizeof(first), "%s", digest);
        json_decref(summary);
    }
    json_decref(ours);
}

/* The communicator outlives its phase, and takes buckets of other sizes in the next one. */
static void phases_go_on_with_nccl_after_servers(void **state)
{
    (void)state;
    static const char *const switched[] = {
        "-n",          "2",        "--mode", "ring",     "--global-batch",
        "24",          "--epochs", "3",      "--switch", "step:3=ps-sync;step:7=ring",
        "--optimizer", "adam",     NULL};
    static const char *const tuned[] = {"-n", "2",        "--mode", "ring",        "--global-batch",
                                        "2",  "--epochs", "4",      "--bucket-mb", "auto",
                                        NULL};
    json_t *summary = run("lazy,gpus=2", true, switched);
    assert_non_null(strstr(text_of(summary, "transport"), "nccl"));
    json_decref(summary);
    summary = run("eager,gpus=2", true, tuned);
    assert_string_equal(text_of(summary, "transport"), "nccl");
    json_decref(summary);
}

/* What is in a file, if there is one. */
static void add_file(FILE *to, const char *path)
{
    char text[4096];
    FILE *from = fopen(path, "re");
    if (from == NULL) {
        return;
    }
    for (size_t size; (size = fread(text, 1, sizeof(text), from)) > 0;) {
        fwrite(text, 1, size, to);
    }
    fclose(from);
}

/* Runs a job that fails: what it, and the logs of its workers, say. The caller frees it. */
static char *run_failing(const char *environment, const char *const *args)
{
    char folder[PROGRAM_PATH_BYTES], out[PROGRAM_PATH_BYTES + 16], log[PROGRAM_PATH_BYTES + 64];
    struct program_run run = {.announce_fd = -1};
    programs_make_folder(folder);
    snprintf(out, sizeof(out), "%s/out", folder);
    const char *all[ARGS_MAX] = {"run",    "--out",        out,      "--model", "lenet5",
                                 "--data", "shapes",       "--mode", "ring",    "--global-batch",
                                 "8",      "--all-reduce", "nccl"};
    size_t count = 13;
    for (size_t i = 0; args[i] != NULL; i++) {
        all[count++] = args[i];
    }
    const char *const added[] = {environment, NULL};
    program_start(&run, folder, "deploy/ringside", false, all, added);
    assert_int_not_equal(program_wait(&run), 0);
    char *said = NULL;
    size_t size = 0;
    FILE *all_said = open_memstream(&said, &size);
    assert_non_null(all_said);
    fputs(program_output(&run), all_said);
    for (int rank = 0; rank < 2; rank++) {
        snprintf(log, sizeof(log), "%s/logs/worker-%d.log", out, rank);
        add_file(all_said, log);
    }
    assert_int_equal(fclose(all_said), 0);
    programs_remove_folder(folder);
    return said;
}

static void expect_refusal(const char *environment, const char *const *args, const char *sentence)
{
    char *said = run_failing(environment, args);
    if (strstr(said, sentence) == NULL) {
        fail_msg("\"%s\" is not in:\n%s", sentence, said);
    }
    free(said);
}

static void what_nccl_cannot_do_is_refused_by_name(void **state)
{
    (void)state;
    static const char *const two[] = {"-n", "2", "--device", "cuda", NULL};
    static const char *const host[] = {"-n", "2", "--device", "ref", NULL};
    static const char *const coded[] = {"-n", "2", "--device", "cuda", "--compress", "fp16", NULL};
    static const char *const ps[] = {"-n", "2", "--device", "cuda", "--mode", "ps-sync", NULL};
    assert_int_equal(setenv("FAKE_CUDA", "eager,gpus=2", 1), 0);
    expect_refusal("FAKE_NCCL=old", two, "libnccl.so.2 is version 2.8.4, and 2.14.0 is the least");
    expect_refusal("FAKE_CUDA=eager,gpus=1", two, "it is on the same GPU as worker");
    expect_refusal("FAKE_NCCL=", host, "--all-reduce nccl needs workers on GPUs: --device cuda");
    expect_refusal("FAKE_NCCL=", coded, "--compress none");
    expect_refusal("FAKE_NCCL=", ps, "--all-reduce would do nothing here: it needs mode ring");
}

static void a_check_of_the_machine_names_its_nccl(void **state)
{
    (void)state;
    char folder[PROGRAM_PATH_BYTES];
    struct program_run run = {.announce_fd = -1};
    static const char *const args[] = {"check", NULL};
    programs_make_folder(folder);
    program_start(&run, folder, "deploy/ringside", false, args, NULL);
    assert_int_equal(program_wait(&run), 0);
    if (strstr(program_output(&run), ", NCCL 2.27.7") == NULL) {
        fail_msg("%s", program_output(&run));
    }
    programs_remove_folder(folder);
}

/* Whatever this machine has: what is found first is no library. */
static void a_library_that_is_missing_is_asked_for(void **state)
{
    (void)state;
    static const char *const two[] = {"-n", "2", "--device", "cuda", NULL};
    char folder[PROGRAM_PATH_BYTES], path[PROGRAM_PATH_BYTES + 32];
    char environment[PROGRAM_PATH_BYTES + 32];
    programs_make_folder(folder);
    snprintf(path, sizeof(path), "%s/libnccl.so.2", folder);
    snprintf(environment, sizeof(environment), "LD_LIBRARY_PATH=%s", folder);
    int file = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    assert_true(file >= 0);
    close(file);
    assert_int_equal(setenv("FAKE_CUDA", "eager,gpus=2", 1), 0);
    expect_refusal(environment, two, "pip install nvidia-nccl-cu13");
    programs_remove_folder(folder);
}

static void a_failure_that_nccl_notices_ends_the_job_with_its_words(void **state)
{
    (void)state;
    static const char *const two[] = {"-n", "2", "--device", "cuda", "--steps", FAR_TOO_MANY, NULL};
    assert_int_equal(setenv("FAKE_CUDA", "eager,gpus=2", 1), 0);
    expect_refusal("FAKE_NCCL=failing", two,
                   "NCCL cannot add up gradients: remote process exited or there was a network "
                   "error");
}

/* A worker whose communicator waits for one that is there, but does not come. */
static void who_never_joins_ends_the_job_at_its_deadline(void **state)
{
    (void)state;
    static const char *const two[] = {
        "-n", "2", "--device", "cuda", "--stall-warn", "0.5", "--stall-fail", "2", NULL};
    assert_int_equal(setenv("FAKE_CUDA", "eager,gpus=2", 1), 0);
    expect_refusal("FAKE_NCCL=absent", two, "has been at step 0 for 2 s (--stall-fail)");
}

/* Its communicator, and the stream of its GPU, wait for one that is gone: with and without a wait
 * of the host for them. */
static void who_is_left_by_a_killed_worker_ends(void **state)
{
    (void)state;
    static const char *const runtimes[] = {"FAKE_CUDA=eager,gpus=2", "FAKE_CUDA=lazy,gpus=2"};
    static const char *const args[] = {"--steps", FAR_TOO_MANY, "--all-reduce", "nccl", NULL};
    for (size_t k = 0; k < 2; k++) {
        const char *const environment[] = {runtimes[k], NULL};
        char folder[PROGRAM_PATH_BYTES], out[PROGRAM_PATH_BYTES + 16];
        programs_make_folder(folder);
        snprintf(out, sizeof(out), "%s/out", folder);
        const char *output = programs_lose_worker(folder, PROGRAMS, args, environment);
        assert_non_null(strstr(output, "all-reduce: nccl 2.27.7, in its own order of summation: "
                                       "the bits are NCCL's"));
        json_t *job = programs_read_json(out, "job.json");
        assert_string_equal(text_of(job, "bits_of"), "nccl");
        json_decref(job);
        programs_remove_folder(folder);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_trains_by_nccl_and_says_whose_bits_it_has),
        cmocka_unit_test(phases_go_on_with_nccl_after_servers),
        cmocka_unit_test(what_nccl_cannot_do_is_refused_by_name),
        cmocka_unit_test(a_check_of_the_machine_names_its_nccl),
        cmocka_unit_test(a_library_that_is_missing_is_asked_for),
        cmocka_unit_test(a_failure_that_nccl_notices_ends_the_job_with_its_words),
        cmocka_unit_test(who_never_joins_ends_the_job_at_its_deadline),
        cmocka_unit_test(who_is_left_by_a_killed_worker_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
