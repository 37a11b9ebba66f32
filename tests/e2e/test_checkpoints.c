/* Tests of checkpoints of jobs: evaluated with the job's own bits, exported, refused by name. */
#include "tests/support/programs/programs.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ARGS_MAX  40
#define PATH_SIZE (PROGRAM_PATH_BYTES + 64)

static const char *const small_lenet[] = {"--workers",
                                          "1",
                                          "--mode",
                                          "local",
                                          "--model",
                                          "lenet5",
                                          "--data",
                                          "shapes",
                                          "--steps",
                                          "12",
                                          "--image-size",
                                          "28",
                                          "--global-batch",
                                          "16",
                                          "--eval",
                                          "end",
                                          "--limit-train",
                                          "120",
                                          "--limit-test",
                                          "100",
                                          "--bucket-mb",
                                          "0.05",
                                          "--threads",
                                          "1",
                                          NULL};
static const char *const small_resnet[] = {"--workers",
                                           "2",
                                           "--mode",
                                           "ring",
                                           "--model",
                                           "resnet20",
                                           "--data",
                                           "shapes",
                                           "--image-size",
                                           "12",
                                           "--global-batch",
                                           "16",
                                           "--steps",
                                           "5",
                                           "--eval",
                                           "end",
                                           "--limit-train",
                                           "120",
                                           "--limit-test",
                                           "75",
                                           "--bucket-mb",
                                           "0.05",
                                           "--threads",
                                           "1",
                                           NULL};

/* Runs a program with two lists of arguments to its end; its exit code and output. */
static int run(const char *path, const char *const *args, const char *const *more,
               char ret_output[PROGRAM_TEXT_BYTES])
{
    const char *all[ARGS_MAX] = {NULL};
    char folder[PROGRAM_PATH_BYTES];
    struct program_run program;
    size_t count = 0;
    for (; args != NULL && *args != NULL; args++) {
        all[count++] = *args;
    }
    for (; more != NULL && *more != NULL; more++) {
        all[count++] = *more;
    }
    programs_make_folder(folder);
    program_start(&program, folder, path, false, all, NULL);
    int code = program_wait(&program);
    snprintf(ret_output, PROGRAM_TEXT_BYTES, "%s", program_output(&program));
    programs_remove_folder(folder);
    return code;
}

/* Trains by plain loops and writes the checkpoint; the digest of its parameters. */
static void make_checkpoint(const char *folder, const char *const *job, const char *more,
                            char ret_digest[PROGRAM_DIGEST_BYTES])
{
    char output[PROGRAM_TEXT_BYTES];
    const char *const args[] = {"--out", folder, more, NULL};
    int code = run("tests/e2e/checkpoint_maker", args, job, output);
    if (code != 0) {
        fail_msg("checkpoint_maker ended with %d: %s", code, output);
    }
    snprintf(ret_digest, PROGRAM_DIGEST_BYTES, "%.*s", (int)strcspn(output, "\n"), output);
}

/* In all digits that a summary has. */
static void check_same_number(const json_t *summary, const json_t *result, const char *key)
{
    char reported[32], evaluated[32];
    const json_t *numbers[] = {json_object_get(summary, key), json_object_get(result, key)};
    assert_true(json_is_real(numbers[0]) && json_is_real(numbers[1]));
    snprintf(reported, sizeof(reported), "%.9g", json_real_value(numbers[0]));
    snprintf(evaluated, sizeof(evaluated), "%.9g", json_real_value(numbers[1]));
    assert_string_equal(reported, evaluated);
}

static void check_same_bits(const char *const *job)
{
    char folder[PROGRAM_PATH_BYTES], digest[PROGRAM_DIGEST_BYTES], output[PROGRAM_TEXT_BYTES];
    programs_make_folder(folder);
    make_checkpoint(folder, job, NULL, digest);
    json_t *summary = programs_run_job(job);
    // It is the checkpoint that the job would have written.
    assert_string_equal(digest, json_string_value(json_object_get(summary, "params_digest")));
    const json_t *epochs = json_object_get(summary, "epochs");
    const json_t *last = json_array_get(epochs, json_array_size(epochs) - 1);
    const char *const args[] = {"evaluate", folder, "--json", NULL};
    assert_int_equal(run("deploy/ringside", args, NULL, output), 0);
    json_t *result = json_loads(output, 0, NULL);
    assert_non_null(result);
    check_same_number(last, result, "test_loss");
    check_same_number(last, result, "test_accuracy");
    json_decref(result);
    json_decref(summary);
    programs_remove_folder(folder);
}

static void a_checkpoint_is_evaluated_with_the_bits_of_its_job(void **state)
{
    (void)state;
    check_same_bits(small_lenet);
}

static void one_of_two_workers_with_batch_norm_is_as_well(void **state)
{
    (void)state;
    check_same_bits(small_resnet);
}

static void other_data_and_another_device_may_be_given(void **state)
{
    (void)state;
    char folder[PROGRAM_PATH_BYTES], digest[PROGRAM_DIGEST_BYTES], output[PROGRAM_TEXT_BYTES];
    programs_make_folder(folder);
    make_checkpoint(folder, small_lenet, NULL, digest);
    static const char *const data[] = {"shapes", "synthetic"};
    for (int i = 0; i < 2; i++) {
        const char *const args[] = {"evaluate", folder, "--data", data[i], "--device", "ref", NULL};
        assert_int_equal(run("deploy/ringside", args, NULL, output), 0);
        assert_non_null(strstr(output, "step 12, test loss"));
        assert_non_null(strstr(output, "(100 images, on ref)"));
    }
    programs_remove_folder(folder);
}

static void check_refused(const char *const *args, int expected_code, const char *reason)
{
    char output[PROGRAM_TEXT_BYTES];
    int code = run("deploy/ringside", args, NULL, output);
    if (code != expected_code || strstr(output, reason) == NULL) {
        fail_msg("expected %d and '%s', got %d: %s", expected_code, reason, code, output);
    }
}

static void bad_input_is_refused_by_name(void **state)
{
    (void)state;
    char folder[PROGRAM_PATH_BYTES], out[PATH_SIZE], digest[PROGRAM_DIGEST_BYTES];
    programs_make_folder(folder);
    snprintf(out, sizeof(out), "%s/missing/model.npz", folder);
    const struct {
        const char *args[8];
        int code;
        const char *reason;
    } before[] = {
        {{"evaluate"}, 2, "it comes first"},
        {{"evaluate", "--device", "ref"}, 2, "it comes first"},
        {{"evaluate", "/nowhere"}, 1, "cannot open the checkpoint /nowhere"},
        {{"evaluate", folder}, 1, "there is no checkpoint in"},
        {{"export", folder}, 2, "--out is missing"},
        {{"export", folder, "--out", out}, 1, "there is no checkpoint in"},
        {{"export", folder, "--out", out, "--format", "onnx"}, 2, "onnx"},
        {{"export", folder, "--out", out, "--names", "jax"}, 2, "jax"},
    };
    for (size_t i = 0; i < sizeof(before) / sizeof(before[0]); i++) {
        check_refused(before[i].args, before[i].code, before[i].reason);
    }
    make_checkpoint(folder, small_lenet, NULL, digest);
    const char *const missing[] = {"export", folder, "--out", out, NULL};
    check_refused(missing, 1, out);
    const char *const device[] = {"evaluate", folder, "--device", "tpu", NULL};
    check_refused(device, 1, "tpu");
    const char *const data[] = {"evaluate", folder, "--data", "mnist", NULL};
    check_refused(data, 1, "mnist");
    programs_remove_folder(folder);
}

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void a_damaged_checkpoint_is_passed_over_with_a_warning(void **state)
{
    (void)state;
    char folder[PROGRAM_PATH_BYTES], path[PATH_SIZE], digest[PROGRAM_DIGEST_BYTES];
    char output[PROGRAM_TEXT_BYTES];
    programs_make_folder(folder);
    make_checkpoint(folder, small_lenet, NULL, digest);
    snprintf(path, sizeof(path), "%s/step-000000000100", folder);
    assert_int_equal(mkdir(path, 0700), 0);
    snprintf(path, sizeof(path), "%s/step-000000000100/manifest.jsonl", folder);
    write_file(path, "{}\n");
    const char *const args[] = {"evaluate", folder, NULL};
    assert_int_equal(run("deploy/ringside", args, NULL, output), 0);
    assert_non_null(strstr(output, "step-000000000100 is passed over"));
    assert_non_null(strstr(output, "step 12, test loss"));
    programs_remove_folder(folder);
}

static uint64_t size_of(const char *path)
{
    struct stat facts;
    assert_int_equal(stat(path, &facts), 0);
    return (uint64_t)facts.st_size;
}

static void read_all(const char *path, unsigned char *ret_bytes, uint64_t size)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fread(ret_bytes, 1, size, file), size);
    fclose(file);
}

static void write_program(const char *folder, const char *name, const char *script)
{
    char path[PATH_SIZE];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    fprintf(file, "#!/bin/sh\n%s\n", script);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(path, 0700), 0);
}

/* A job that goes on removes its older checkpoints. Here the worker's program does: the first time
 * it gives what it is to read the name of one that a newer one replaces. */
static void a_checkpoint_that_is_removed_while_it_is_read_is_looked_for_again(void **state)
{
    (void)state;
    char folder[PROGRAM_PATH_BYTES], digest[PROGRAM_DIGEST_BYTES], libexec[PATH_SIZE];
    char script[2 * PROGRAM_PATH_BYTES];
    struct program_run program;
    programs_make_folder(folder);
    make_checkpoint(folder, small_lenet, NULL, digest);
    write_program(folder, "ps", "exit 1");
    snprintf(script, sizeof(script),
             "case $2 in *.old) ;; *) mv \"$2\" \"$2.old\" ;; esac\n"
             "exec '%s/worker/worker' \"$@\"",
             getenv("RINGSIDE_TEST_BUILD"));
    write_program(folder, "worker", script);
    snprintf(libexec, sizeof(libexec), "RINGSIDE_LIBEXEC=%s", folder);
    const char *const args[] = {"evaluate", folder, NULL}, *const variables[] = {libexec, NULL};
    program_start(&program, folder, "deploy/ringside", false, args, variables);
    int code = program_wait(&program);
    const char *output = program_output(&program);
    if (code != 0 || strstr(output, "step 12, test loss") == NULL ||
        strstr(output, "was removed while it was read; looking for a newer one") == NULL ||
        strstr(output, " error ") != NULL) { // the worker's, which nobody has to mend
        fail_msg("%d: %s", code, output);
    }
    programs_remove_folder(folder);
}

/* A checkpoint that does not describe its model is described by a worker, with the same result. The
 * name of the file says which kind it is. */
static void an_export_does_not_depend_on_who_describes_the_model(void **state)
{
    (void)state;
    char folders[2][PROGRAM_PATH_BYTES], out[2][PATH_SIZE], digest[PROGRAM_DIGEST_BYTES];
    char output[PROGRAM_TEXT_BYTES];
    for (int i = 0; i < 2; i++) {
        programs_make_folder(folders[i]);
        make_checkpoint(folders[i], small_resnet, i == 0 ? NULL : "--vague", digest);
        snprintf(out[i], sizeof(out[i]), "%s/model.safetensors", folders[i]);
        const char *const args[] = {
            "export", folders[i], "--out", out[i], i == 0 ? "--format" : NULL, "safetensors", NULL};
        assert_int_equal(run("deploy/ringside", args, NULL, output), 0);
        assert_non_null(strstr(output, "of resnet20 at step 5, as torch"));
    }
    uint64_t size = size_of(out[0]);
    unsigned char *bytes = malloc(2 * size);
    assert_non_null(bytes);
    assert_int_equal(size_of(out[1]), size);
    read_all(out[0], bytes, size);
    read_all(out[1], bytes + size, size);
    assert_memory_equal(bytes, bytes + size, size);
    free(bytes);
    programs_remove_folder(folders[0]);
    programs_remove_folder(folders[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_checkpoint_is_evaluated_with_the_bits_of_its_job),
        cmocka_unit_test(one_of_two_workers_with_batch_norm_is_as_well),
        cmocka_unit_test(other_data_and_another_device_may_be_given),
        cmocka_unit_test(bad_input_is_refused_by_name),
        cmocka_unit_test(a_damaged_checkpoint_is_passed_over_with_a_warning),
        cmocka_unit_test(a_checkpoint_that_is_removed_while_it_is_read_is_looked_for_again),
        cmocka_unit_test(an_export_does_not_depend_on_who_describes_the_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
