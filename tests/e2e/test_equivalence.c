/* End to end: N workers on slices of a batch train what one worker does on the whole of it. */
#include "tests/support/programs/programs.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <math.h>
#include <stdio.h>

/* What a job ends with. */
struct result {
    double train_loss, test_loss, test_accuracy;
};

/* 100 steps from the same seed. The rate is low on purpose: sums of other parts round otherwise,
 * and now and then an activation near 0 changes sides; a high rate makes much of that. */
static struct result train(const char *mode, const char *workers, const char *rate)
{
    struct program_run run = {.announce_fd = -1};
    char folder[PROGRAM_PATH_BYTES], out[PROGRAM_PATH_BYTES + 16];
    programs_make_folder(folder);
    snprintf(out, sizeof(out), "%s/out", folder);
    const char *const args[] = {"run", "--mode",  mode,     "-n",        workers, "--lr",
                                rate,  "--model", "lenet5", "--steps",   "100",   "--global-batch",
                                "64",  "--seed",  "2",      "--threads", "1",     "--eval",
                                "end", "--out",   out,      NULL};
    program_start(&run, folder, "deploy/ringside", false, args, NULL);
    if (program_wait(&run) != 0) {
        fail_msg("%s, N = %s: %s", mode, workers, program_output(&run));
    }
    json_t *summary = programs_read_json(out, "summary.json");
    const json_t *epochs = json_object_get(summary, "epochs");
    const json_t *epoch = json_array_get(epochs, json_array_size(epochs) - 1);
    assert_true(json_is_real(json_object_get(epoch, "test_accuracy")));
    struct result result = {
        .train_loss = json_real_value(json_object_get(epoch, "train_loss")),
        .test_loss = json_real_value(json_object_get(epoch, "test_loss")),
        .test_accuracy = json_real_value(json_object_get(epoch, "test_accuracy")),
    };
    json_decref(summary);
    programs_remove_folder(folder);
    return result;
}

static bool is_near(const struct result *a, const struct result *b)
{
    return fabs(a->train_loss / b->train_loss - 1) <= 1e-4 &&
           fabs(a->test_loss - b->test_loss) <= 1e-3 &&
           fabs(a->test_accuracy - b->test_accuracy) <= 1e-3;
}

static void workers_on_slices_end_where_one_on_the_whole_batch_does(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"ps-sync", "2"}, {"ring", "2"}, {"ps-sync", "4"}, {"ring", "4"}};
    struct result local = train("local", "1", "0.0005");
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct result other = train(cases[i][0], cases[i][1], "0.0005");
        if (!is_near(&other, &local)) {
            fail_msg("%s, N = %s: train loss %.9g, test loss %.9g, accuracy %.9g; local: %.9g, "
                     "%.9g, %.9g",
                     cases[i][0], cases[i][1], other.train_loss, other.test_loss,
                     other.test_accuracy, local.train_loss, local.test_loss, local.test_accuracy);
        }
    }
}

/* Gradients that were summed where they should be averaged are a rate that is too high. */
static void the_comparison_would_see_gradients_that_are_twice_too_large(void **state)
{
    (void)state;
    struct result right = train("local", "1", "0.0005"), wrong = train("local", "1", "0.001");
    assert_false(is_near(&wrong, &right));
    assert_true(fabs(wrong.train_loss / right.train_loss - 1) > 1e-3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(workers_on_slices_end_where_one_on_the_whole_batch_does),
        cmocka_unit_test(the_comparison_would_see_gradients_that_are_twice_too_large),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
