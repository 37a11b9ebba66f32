/* Tests of spreads: of steps against their draws, and of layers, which are part of those. */
#include "deploy/predict/basis/cost_batches.h"
#include "deploy/predict/basis/spread.h"
#include "tests/support/common/captured_log.h"
#include "tests/support/deploy/predictions.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DRAWS      UINT64_C(200000)
#define FILE_BYTES 2048

static struct costs costs;

/* Costs with two layers, of which `spreads` says the spread each, and `more` whatever else. */
static enum status take(const char *const spreads[2], const char *more, uint32_t batch)
{
    char path[] = "/tmp/test-spread-XXXXXX", text[FILE_BYTES];
    int file = mkstemp(path);
    assert_true(file >= 0);
    int size = snprintf(text, sizeof(text),
                        "{\"batch\": 32, \"optimizer\": \"1 ms\", \"message\": \"1 us\", "
                        "\"layers\": [{\"parameters\": 10, \"forward\": \"6 ms\", \"backward\": "
                        "\"12 ms\"%s}, {\"parameters\": 30, \"forward\": \"4 ms\", \"backward\": "
                        "\"8 ms\"%s}]%s}",
                        spreads[0], spreads[1], more);
    assert_true(size > 0 && (size_t)size < sizeof(text));
    assert_int_equal(write(file, text, (size_t)size), size);
    close(file);
    enum status status = cost_batches_take(path, batch, &costs);
    unlink(path);
    return status;
}

#define EXPONENTIAL(mean)     "{\"distribution\": \"exponential\", \"mean\": \"" mean "\"}"
#define SPREAD(forward, back) ", \"spread\": {\"forward\": " forward ", \"backward\": " back "}"

// Deviations of 3 ms and 4 ms, and of 12 ms.
#define FIRST  SPREAD(EXPONENTIAL("3 ms"), EXPONENTIAL("4 ms"))
#define SECOND ", \"spread\": {\"backward\": " EXPONENTIAL("12 ms") "}"

static const char *const both[2] = {FIRST, SECOND};

static void mean_and_standard_deviation_are_those_of_the_draws(void **state)
{
    (void)state;
    const struct spread spreads[] = {{.kind = SPREAD_EXPONENTIAL, .mean_s = 0.002},
                                     {.kind = SPREAD_UNIFORM, .least_s = 0.001, .most_s = 0.004},
                                     {.kind = SPREAD_PARETO, .least_s = 0.001, .shape = 6},
                                     {.kind = SPREAD_NONE}};
    for (uint32_t k = 0; k < sizeof(spreads) / sizeof(spreads[0]); k++) {
        double sum = 0, squares = 0;
        for (uint64_t i = 0; i < DRAWS; i++) {
            double draw = spread_draw(&spreads[k], 1, 0, i);
            sum += draw / (double)DRAWS;
            squares += draw * draw / (double)DRAWS;
        }
        double deviation_s = sqrt(squares - sum * sum);
        predictions_check("mean", k, spread_mean_s(&spreads[k]), sum, 0.01);
        predictions_check("deviation", k, spread_deviation_s(&spreads[k]), deviation_s, 0.02);
    }
    const struct spread wide = {.kind = SPREAD_PARETO, .least_s = 0.001, .shape = 2};
    assert_true(spread_deviation_s(&wide) == (double)INFINITY);
}

static void layers_deviate_by_the_root_of_the_sum_of_squares(void **state)
{
    (void)state;
    assert_int_equal(take(both, "", 0), STATUS_OK);
    predictions_check("apart", 2, costs_layers_deviation_s(&costs), 13e-3, 1e-9);
    predictions_check("at once", 2, costs_layers_deviation_sum_s(&costs), 19e-3, 1e-9);
    assert_int_equal(costs.spread.kind, SPREAD_NONE); // nothing is drawn for them
    predictions_check("a step", 2, costs_compute_s(&costs), 30e-3, 1e-9);
}

static void layers_without_a_spread_have_none(void **state)
{
    (void)state;
    const char *const none[2] = {"", ", \"spread\": {}"};
    assert_int_equal(take(none, "", 0), STATUS_OK);
    assert_true(costs_layers_deviation_s(&costs) == 0);
    assert_true(costs_layers_deviation_sum_s(&costs) == 0);
}

/* In another batch they grow with the layer's times, unless it has its own. */
static void spreads_of_other_batches_follow_their_times(void **state)
{
    (void)state;
    const char *sums = ", \"batches\": [{\"batch\": 64, \"forward\": \"20 ms\", \"backward\": "
                       "\"60 ms\"}]";
    assert_int_equal(take(both, sums, 64), STATUS_OK);
    predictions_check("forward", 64, costs.layers[0].forward_spread.mean_s, 6e-3, 1e-9);
    predictions_check("backward", 64, costs.layers[0].backward_spread.mean_s, 12e-3, 1e-9);
    assert_int_equal(take(both, sums, 48), STATUS_OK); // on the line between
    predictions_check("forward", 48, costs.layers[0].forward_spread.mean_s, 4.5e-3, 1e-9);
    predictions_check("backward", 48, costs.layers[1].backward_spread.mean_s, 24e-3, 1e-9);

    const char *layers = ", \"batches\": [{\"batch\": 64, \"layers\": [{\"forward\": \"12 ms\", "
                         "\"backward\": \"12 ms\"}, {\"forward\": \"4 ms\", \"backward\": \"8 "
                         "ms\", \"spread\": {\"forward\": " EXPONENTIAL("1 ms") "}}]}]";
    assert_int_equal(take(both, layers, 64), STATUS_OK);
    predictions_check("forward", 0, costs.layers[0].forward_spread.mean_s, 6e-3, 1e-9);
    predictions_check("backward", 0, costs.layers[0].backward_spread.mean_s, 4e-3, 1e-9);
    predictions_check("forward", 1, costs.layers[1].forward_spread.mean_s, 1e-3, 1e-9);
    assert_int_equal(costs.layers[1].backward_spread.kind, SPREAD_NONE);
}

/* Where the file says images/s, times of layers are proportions, and their spreads with them. */
static void a_rate_scales_spreads_with_times(void **state)
{
    (void)state;
    assert_int_equal(take(both, ", \"images-per-s\": 524.5901639344262", 0), STATUS_OK); // 61 ms
    predictions_check("a step", 32, costs_compute_s(&costs), 60e-3, 1e-9);
    predictions_check("apart", 32, costs_layers_deviation_s(&costs), 26e-3, 1e-9);
}

static void spreads_that_cannot_be_are_refused_by_place(void **state)
{
    (void)state;
    static const struct {
        const char *first, *more, *why;
    } cases[] = {
        {", \"spread\": 0.1", "", "layers[0].spread is no JSON object"},
        {", \"spread\": {\"forward\": \"1 ms\"}", "", "layers[0].spread.forward is no JSON object"},
        {", \"spread\": {\"both\": {}}", "", "layers[0].spread.both is not known"},
        {", \"spread\": {\"forward\": {}}", "", "layers[0].spread.forward.distribution is missing"},
        {SPREAD(EXPONENTIAL("-1 ms"), "{}"), "",
         "layers[0].spread.forward.mean has to be a time of at least 0 with its unit"},
        {SPREAD(EXPONENTIAL("nan ms"), "{}"), "",
         "layers[0].spread.forward.mean has to be a time of at least 0 with its unit"},
        {SPREAD(EXPONENTIAL("1 ms"), "{\"distribution\": \"exponential\", \"mean\": 1}"), "",
         "layers[0].spread.backward.mean has to be a time of at least 0 with its unit"},
        {", \"spread\": {\"forward\": NaN}", "", "cannot be read: line 1"},
        {SPREAD(EXPONENTIAL("1 ms"), EXPONENTIAL("3.1 s")), "",
         "layers[0].spread.backward is more than a hundred times what all layers take together; "
         "check its unit"},
        {SPREAD("{\"distribution\": \"pareto\", \"least\": \"1 ms\", \"shape\": 2}",
                EXPONENTIAL("1 ms")),
         "", "layers[0].spread.forward has no standard deviation; give it a shape above 2"},
        {"",
         ", \"batches\": [{\"batch\": 64, \"layers\": [{\"forward\": \"1 ms\", \"backward\": \"1 "
         "ms\"}, {\"forward\": \"1 ms\", \"backward\": \"1 ms\", \"spread\": {\"forward\": "
         "{\"distribution\": \"exponential\", \"mean\": \"1 s\"}}}]}]",
         "batches[0].layers[1].spread.forward is more than a hundred times"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *const spreads[2] = {cases[i].first, ""};
        captured_log_begin();
        enum status status = take(spreads, cases[i].more, 0);
        const char *log = captured_log_end();
        if (status != STATUS_INVALID || strstr(log, cases[i].why) == NULL ||
            strstr(log, "/tmp/test-spread-") == NULL) {
            fail_msg("%s%s ended with %d and\n%s", cases[i].first, cases[i].more, (int)status, log);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mean_and_standard_deviation_are_those_of_the_draws),
        cmocka_unit_test(layers_deviate_by_the_root_of_the_sum_of_squares),
        cmocka_unit_test(layers_without_a_spread_have_none),
        cmocka_unit_test(spreads_of_other_batches_follow_their_times),
        cmocka_unit_test(a_rate_scales_spreads_with_times),
        cmocka_unit_test(spreads_that_cannot_be_are_refused_by_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
