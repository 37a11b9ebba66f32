/* Training of real images to the accuracy that docs/BENCHMARKS.md states. Minutes: part of
 * tests/run --all.
 */
#include "tests/support/programs/programs.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Runs one job on RINGSIDE_DATA/FOLDER, and returns its last test accuracy; writes its digest. */
static double accuracy_of(const char *dataset, const char *folder, const char *const *settings,
                          char ret_digest[80])
{
    const char *base = getenv("RINGSIDE_DATA");
    char data[PROGRAM_PATH_BYTES], out[PROGRAM_PATH_BYTES + 8], work[PROGRAM_PATH_BYTES];
    const char *args[PROGRAM_ARGS_MAX] = {"run", "--data", data, "--out", out};
    struct program_run run;
    if (base == NULL) {
        print_message("# skipped: RINGSIDE_DATA does not say where %s is\n", folder);
        skip();
    }
    programs_make_folder(work);
    snprintf(data, sizeof(data), "%s:%s/%s", dataset, base, folder);
    snprintf(out, sizeof(out), "%s/run", work);
    for (size_t i = 0; settings[i] != NULL; i++) {
        args[5 + i] = settings[i];
    }
    program_start(&run, work, "deploy/ringside", false, args, NULL);
    if (program_wait_for(&run, 1800000) != 0) {
        fail_msg("the job failed: %s", program_output(&run));
    }
    json_t *summary = programs_read_json(out, "summary.json");
    json_t *epochs = json_object_get(summary, "epochs");
    json_t *last = json_array_get(epochs, json_array_size(epochs) - 1);
    double accuracy = json_number_value(json_object_get(last, "test_accuracy"));
    snprintf(ret_digest, 80, "%s", json_string_value(json_object_get(summary, "params_digest")));
    json_decref(summary);
    programs_remove_folder(work);
    return accuracy;
}

static void cnn_on_cifar10_reaches_60_percent_in_3_epochs(void **state)
{
    (void)state;
    const char *const settings[] = {
        "-n",       "4",     "--mode",         "ring", "--model",     "cnn",
        "--epochs", "3",     "--global-batch", "128",  "--optimizer", "adam",
        "--lr",     "0.001", "--seed",         "1",    NULL};
    char digest[80];
    assert_true(accuracy_of("cifar10", "cifar10", settings, digest) >= 0.60);
}

static void lenet5_on_fashion_mnist_reaches_88_percent_in_both_designs(void **state)
{
    (void)state;
    const char *settings[] = {"-n",          "2",        "--mode", "ring",           "--model",
                              "lenet5",      "--epochs", "5",      "--global-batch", "64",
                              "--optimizer", "momentum", "--lr",   "0.01",           "--seed",
                              "1",           NULL};
    char ring[80], server[80];
    assert_true(accuracy_of("fashion-mnist", "fashion-mnist", settings, ring) >= 0.885);
    settings[3] = "ps-sync";
    assert_true(accuracy_of("fashion-mnist", "fashion-mnist", settings, server) >= 0.885);
    assert_string_equal(ring, server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cnn_on_cifar10_reaches_60_percent_in_3_epochs),
        cmocka_unit_test(lenet5_on_fashion_mnist_reaches_88_percent_in_both_designs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
