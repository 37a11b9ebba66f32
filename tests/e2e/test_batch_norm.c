/* Jobs with batch normalisation, end to end: bits, statistics, the batch of all workers. */
#include "tests/support/programs/programs.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <math.h>
#include <string.h>

#define ARGS_MAX 32

static void it_has_the_same_bits_in_both_designs(void **state)
{
    (void)state;
    static const char *const jobs[][ARGS_MAX] = {
        {"-n", "3", "--mode", "ring", "--model", "resnet20", "--data", "shapes", "--image-size",
         "12", "--global-batch", "12", "--steps", "4", NULL},
        {"-n", "3", "--mode", "ps-sync", "-s", "2", "--model", "resnet20", "--data", "shapes",
         "--image-size", "12", "--global-batch", "12", "--steps", "4", NULL},
        {"-n", "3", "--mode", "ring", "--model", "resnet20", "--data", "shapes", "--image-size",
         "12", "--global-batch", "12", "--steps", "4", "--switch", "step:2=ps-sync", NULL},
    };
    char first[PROGRAM_DIGEST_BYTES], digest[PROGRAM_DIGEST_BYTES];
    programs_run_digest(jobs[0], first);
    for (size_t i = 1; i < sizeof(jobs) / sizeof(jobs[0]); i++) {
        programs_run_digest(jobs[i], digest);
        assert_string_equal(digest, first);
    }
}

/* Training and test loss of two steps, and what the summary says of the model. */
static double losses_of(const char *workers, const char *sync, double *ret_test_loss)
{
    const char *const job[] = {
        "-n",      workers,  "--mode",       "ring",  "--model",        "resnet20",
        "--data",  "shapes", "--image-size", "12",    "--global-batch", "12",
        "--steps", "2",      "--lr",         "0.001", "--eval",         "end",
        sync,      NULL};
    json_t *summary = programs_run_job(job);
    json_t *epoch = json_array_get(json_object_get(summary, "epochs"), 0);
    double loss = json_real_value(json_object_get(epoch, "train_loss"));
    *ret_test_loss = json_real_value(json_object_get(epoch, "test_loss"));
    assert_int_equal(json_integer_value(json_object_get(summary, "parameters")), 269722);
    json_decref(summary);
    return loss;
}

static void with_sync_bn_several_workers_train_as_one(void **state)
{
    (void)state;
    double alone_test, together_test, apart_test;
    double alone = losses_of("1", "--sync-bn", &alone_test);
    double together = losses_of("3", "--sync-bn", &together_test);
    double apart = losses_of("3", NULL, &apart_test);
    assert_true(fabs(together / alone - 1) < 1e-5);
    assert_true(fabs(together_test / alone_test - 1) < 1e-4);
    assert_true(fabs(apart / alone - 1) > 1e-3);
}

static void unsynchronised_workers_evaluate_with_their_own(void **state)
{
    (void)state;
    const char *const job[] = {"-n",
                               "2",
                               "--mode",
                               "ps-async",
                               "--model",
                               "resnet20",
                               "--data",
                               "shapes",
                               "--image-size",
                               "8",
                               "--global-batch",
                               "8",
                               "--steps",
                               "6",
                               "--eval",
                               "end",
                               NULL};
    json_t *summary = programs_run_job(job);
    json_t *epochs = json_object_get(summary, "epochs");
    json_t *last = json_array_get(epochs, json_array_size(epochs) - 1);
    assert_true(json_is_real(json_object_get(last, "test_loss")));
    json_decref(summary);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_has_the_same_bits_in_both_designs),
        cmocka_unit_test(with_sync_bn_several_workers_train_as_one),
        cmocka_unit_test(unsynchronised_workers_evaluate_with_their_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
