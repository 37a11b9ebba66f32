/* Costs of several batches: what is refused, and what lies between and beyond. */
#include "deploy/predict/basis/cost_batches.h"
#include "tests/support/common/captured_log.h"
#include "tests/support/deploy/predictions.h"

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

#define FILE_BYTES 2048

static struct costs costs;

/* Two layers with a batch of 32, and what `batches` says. */
static enum status take(const char *batches, uint32_t batch)
{
    char path[] = "/tmp/test-batches-XXXXXX", text[FILE_BYTES];
    int file = mkstemp(path);
    assert_true(file >= 0);
    int size = snprintf(
        text, sizeof(text),
        "{\"batch\": 32, \"optimizer\": \"1 ms\", \"message\": \"1 us\", \"input\": \"32 us\", "
        "\"spread\": {\"distribution\": \"exponential\", \"mean\": \"3 ms\"}, \"layers\": "
        "[{\"parameters\": 10, \"forward\": \"6 ms\", \"backward\": \"12 ms\"}, {\"parameters\": "
        "30, \"forward\": \"4 ms\", \"backward\": \"8 ms\"}], \"batches\": %s}",
        batches);
    assert_int_equal(write(file, text, (size_t)size), size);
    close(file);
    enum status status = cost_batches_take(path, batch, &costs);
    unlink(path);
    return status;
}

static void check_layer(uint32_t index, double forward_ms, double backward_ms)
{
    predictions_check("forward", index, 1e3 * costs.layers[index].forward_s, forward_ms, 1e-9);
    predictions_check("backward", index, 1e3 * costs.layers[index].backward_s, backward_ms, 1e-9);
}

#define SIXTEEN                                                                                   \
    "{\"batch\": 16, \"input\": \"20 us\", \"spread\": {\"distribution\": \"exponential\", "      \
    "\"mean\": "                                                                                  \
    "\"1 ms\"}, \"layers\": [{\"forward\": \"4 ms\", \"backward\": \"8 ms\"}, {\"name\": \"b\", " \
    "\"forward\": \"3 ms\", \"backward\": \"3 ms\"}]}"
#define LARGE "{\"batch\": 64, \"forward\": \"20 ms\", \"backward\": \"30 ms\"}"

static void what_the_file_has_is_taken_as_it_is(void **state)
{
    (void)state;
    assert_int_equal(take("[" LARGE ", " SIXTEEN "]", 0), STATUS_OK);
    assert_int_equal(costs.batch, 32);
    assert_int_equal(costs.line_from, 0);
    check_layer(0, 6, 12);
    assert_int_equal(take("[" LARGE ", " SIXTEEN "]", 16), STATUS_OK);
    check_layer(1, 3, 3);
    predictions_check("input", 16, 1e6 * costs.input_s, 20, 1e-9);
    assert_int_equal(take("[" LARGE "]", 64), STATUS_OK); // shared out as those of 32
    check_layer(0, 12, 18);
    check_layer(1, 8, 12);
    predictions_check("input", 64, 1e6 * costs.input_s, 64, 1e-9);
    predictions_check("spread", 64, 1e3 * costs.spread.mean_s, 3 * 50 / 30.0, 1e-9);
    assert_int_equal(costs.layers[1].parameters, 30);
    predictions_check("optimizer", 64, 1e3 * costs.optimizer_s, 1, 1e-9);
}

static void a_rate_of_one_worker_stands_for_the_time_of_a_step(void **state)
{
    (void)state;
    // 64 images in 67 ms, 1 ms of which is the optimizer. Layers and the spread take 33 ms with 32.
    assert_int_equal(take("[{\"batch\": 64, \"images-per-s\": 955.2238805970149}]", 64), STATUS_OK);
    check_layer(0, 12, 24);
    check_layer(1, 8, 16);
    predictions_check("optimizer", 64, 1e3 * costs.optimizer_s, 1, 1e-9);
    predictions_check("spread", 64, 1e3 * costs.spread.mean_s, 6, 1e-9);
    assert_int_equal(costs.batch, 64);
    assert_int_equal(take("[{\"batch\": 64, \"images-per-s\": 955.2238805970149, \"spread\": "
                          "{\"distribution\": \"exponential\", \"mean\": \"21 ms\"}}]",
                          64),
                     STATUS_OK);
    check_layer(0, 9, 18);
    predictions_check("spread", 64, 1e3 * costs.spread.mean_s, 21, 1e-9);
}

static void between_two_batches_times_lie_on_a_line(void **state)
{
    (void)state;
    assert_int_equal(take("[" LARGE ", " SIXTEEN "]", 24), STATUS_OK);
    assert_int_equal(costs.batch, 24);
    assert_int_equal(costs.line_from, 16);
    assert_int_equal(costs.line_to, 32);
    assert_false(costs_are_extrapolated(&costs));
    check_layer(0, 5, 10);
    check_layer(1, 3.5, 5.5);
    predictions_check("input", 24, 1e6 * costs.input_s, 26, 1e-9);
    predictions_check("spread", 24, 1e3 * costs.spread.mean_s, 2, 1e-9);
    assert_int_equal(take("[" LARGE ", " SIXTEEN "]", 48), STATUS_OK);
    check_layer(0, 9, 15);
}

static void beyond_all_batches_the_line_goes_on_and_warns(void **state)
{
    (void)state;
    captured_log_begin();
    assert_int_equal(take("[" LARGE ", " SIXTEEN "]", 128), STATUS_OK);
    const char *log = captured_log_end();
    assert_non_null(strstr(log,
                           "has no batch as large as 128: times are extrapolated from those of "
                           "32 and 64 images"));
    assert_true(costs_are_extrapolated(&costs));
    check_layer(0, 24, 30);
    captured_log_begin();
    assert_int_equal(take("[" LARGE ", " SIXTEEN "]", 8), STATUS_OK);
    log = captured_log_end();
    assert_non_null(strstr(log, "no batch as small as 8: times are extrapolated"));
    check_layer(0, 3, 6);
    // The line would be below what the images have in proportion: 3 ms for 16, 8 ms for 32.
    predictions_check("backward", 8, 1e3 * costs.layers[1].backward_s, 1.5, 1e-9);
}

static void one_batch_says_nothing_of_others(void **state)
{
    (void)state;
    char path[] = "/tmp/test-batches-XXXXXX";
    int file = mkstemp(path);
    static const char text[] =
        "{\"batch\": 8, \"optimizer\": \"1 ms\", \"message\": \"1 us\", \"layers\": "
        "[{\"parameters\": 10, \"forward\": \"1 ms\", \"backward\": \"1 ms\"}]}";
    assert_int_equal(write(file, text, sizeof(text) - 1), sizeof(text) - 1);
    close(file);
    captured_log_begin();
    assert_int_equal(cost_batches_take(path, 9, &costs), STATUS_INVALID);
    assert_non_null(strstr(captured_log_end(), "times of another batch are not known: calibrate "
                                               "with --batches"));
    unlink(path);
}

static void what_is_wrong_is_refused_by_its_place(void **state)
{
    (void)state;
    static const struct {
        const char *batches, *why;
    } cases[] = {
        {"[]", "batches has to be a list with at least one entry"},
        {"[{\"forward\": \"1 ms\", \"backward\": \"1 ms\"}]", "batches[0].batch is missing"},
        {"[{\"batch\": 1.5, \"forward\": \"1 ms\", \"backward\": \"1 ms\"}]",
         "batches[0].batch has to be a whole number"},
        {"[{\"batch\": 32, \"forward\": \"1 ms\", \"backward\": \"1 ms\"}]",
         "batches[0].batch is that of the file, or of another entry"},
        {"[" LARGE ", " LARGE "]", "batches[1].batch is that of the file, or of another entry"},
        {"[{\"batch\": 64, \"forward\": \"1 ms\"}]", "batches[0].backward is missing"},
        {"[{\"batch\": 64, \"forward\": \"-1 ms\", \"backward\": \"1 ms\"}]",
         "batches[0].forward has to be a time of at least 0"},
        {"[{\"batch\": 64, \"forwards\": \"1 ms\"}]", "batches[0].forwards is not known"},
        {"[{\"batch\": 64, \"layers\": [{\"forward\": \"1 ms\", \"backward\": \"1 ms\"}]}]",
         "batches[0].layers has 1 entries, and layers of the file 2"},
        {"[{\"batch\": 64, \"layers\": [{\"forward\": \"1 ms\", \"backward\": \"1 ms\"}, "
         "{\"forward\": \"1 ms\", \"backward\": 1}]}]",
         "batches[0].layers[1].backward has to be a time"},
        {"[{\"batch\": 64, \"forward\": \"1 ms\", \"layers\": [{\"forward\": \"1 ms\", "
         "\"backward\": \"1 ms\"}]}]",
         "batches[0].layers and forward and backward exclude each other"},
        {"[{\"batch\": 64, \"forward\": \"1 ms\", \"backward\": \"1 ms\", \"spread\": "
         "{\"distribution\": \"normal\"}}]",
         "batches[0].spread.distribution has to be exponential"},
        {"[{\"batch\": 64, \"images-per-s\": 100, \"forward\": \"1 ms\"}]",
         "batches[0].images-per-s excludes forward, backward and layers"},
        {"[{\"batch\": 64, \"images-per-s\": 0}]",
         "batches[0].images-per-s has to be a number from"},
        {"[{\"batch\": 64, \"images-per-s\": \"100\"}]",
         "batches[0].images-per-s has to be a number from"},
        {"[{\"batch\": 64, \"images-per-s\": 64000}]",
         "batches[0].images-per-s leaves a step no time beside optimizer and spread"},
        {"[7]", "batches[0] is no JSON object"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        captured_log_begin();
        enum status status = take(cases[i].batches, 0);
        const char *log = captured_log_end();
        if (status != STATUS_INVALID || strstr(log, cases[i].why) == NULL) {
            fail_msg("%s\nended with %d and\n%s", cases[i].batches, (int)status, log);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_the_file_has_is_taken_as_it_is),
        cmocka_unit_test(a_rate_of_one_worker_stands_for_the_time_of_a_step),
        cmocka_unit_test(between_two_batches_times_lie_on_a_line),
        cmocka_unit_test(beyond_all_batches_the_line_goes_on_and_warns),
        cmocka_unit_test(one_batch_says_nothing_of_others),
        cmocka_unit_test(what_is_wrong_is_refused_by_its_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
