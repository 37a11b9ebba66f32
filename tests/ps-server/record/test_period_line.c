/* Tests of the line of a period. */
#include "common/job/job.h"
#include "ps-server/record/period_line.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <math.h>
#include <stdio.h>

static void check(const struct job *job, struct results_period period, const char *expected)
{
    char line[PERIOD_LINE_BYTES];
    const struct coordinator coordinator = {
        .job = job,
        .train_samples = 100,
        .results = {.periods = &period, .period_count = 1, .worker_count = 2},
    };
    period_line_format(&coordinator, 0, line);
    assert_string_equal(line, expected);
}

static void a_line_has_losses_accuracy_and_speed(void **state)
{
    (void)state;
    const struct job job = {.model = "lenet5", .global_batch = 10, .epochs = 1, .workers = 2};
    struct results_period period = {.report_count = 2,
                                    .images = 100,
                                    .loss_sum = 50,
                                    .total_ns_max = 2000000000,
                                    .test_images = 10,
                                    .test_correct = 9,
                                    .test_loss_sum = 1};
    check(
        &job, period,
        "epoch 1: train loss 0.5000, test loss 0.1000, test accuracy 90.00 %, 50 images/s, 2.0 s");
    period.test_images = 0;
    check(&job, period, "epoch 1: train loss 0.5000, 50 images/s, 2.0 s");
}

static void of_a_program_it_has_what_was_told(void **state)
{
    (void)state;
    const struct job job = {.model = JOB_EXTERNAL_PREFIX "train.py", .workers = 2};
    struct results_period period = {.step = 40,
                                    .report_count = 1,
                                    .total_ns_max = 2000000000,
                                    .test_images = 10,
                                    .test_correct = 9,
                                    .test_loss_sum = (double)NAN};
    check(&job, period, "step 40: test accuracy 90.00 %, 2.0 s");
    period.images = 10;
    period.loss_sum = 5;
    check(&job, period, "step 40: train loss 0.5000, test accuracy 90.00 %, 10 images/s, 2.0 s");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_has_losses_accuracy_and_speed),
        cmocka_unit_test(of_a_program_it_has_what_was_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
