/* Tests of the spreads of layers, from runs in which it is known which layer takes how long. */
#include "deploy/calibrate/calibration.h"
#include "deploy/calibrate/calibration_files.h"
#include "deploy/calibrate/calibration_layers.h"
#include "deploy/predict/basis/cost_batches.h"
#include "tests/support/common/temp_folder.h"
#include "tests/support/deploy/traced_run.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h> // needs the four above
// clang-format on
#include <math.h>
#include <stdio.h>
#include <string.h>

static struct calibration_run run; // large, as the others
static struct calibration calibration;
static struct costs costs;

static const struct model_layers model = {
    {{"conv2d 1", 100000}, {"linear 2", 30000}}, .count = 2, .parameters = 130000};

static const struct traced_story plain = {"local",      "lenet5", 1,     0,
                                          TRACED_STEPS, true,     false, "\"seed\": 1"};

static void check_near(double value, double expected, double tolerance)
{
    if (!(fabs(value - expected) <= tolerance * fabs(expected))) {
        fail_msg("%.9g instead of %.9g", value, expected);
    }
}

/* The costs of a run, as predict reads them. */
static void calibrate(const struct traced_story *story)
{
    const struct calibration_known known = {.nic = 0};
    struct calibration_run *list[] = {&run};
    char path[600], *folder = traced_run_write(story);
    assert_int_equal(calibration_run_read(folder, &run), STATUS_OK);
    assert_int_equal(calibration_make(list, 1, &model, &known, &calibration), STATUS_OK);
    snprintf(path, sizeof(path), "%s/costs.json", folder);
    assert_int_equal(calibration_write_costs(&calibration, path), STATUS_OK);
    assert_int_equal(cost_batches_take(path, 0, &costs), STATUS_OK);
    calibration_run_finish(&run);
    temp_folder_destroy(folder);
}

static double forward_s(uint32_t layer)
{
    return spread_deviation_s(&costs.layers[layer].forward_spread);
}

/* Whether layers other than these, and all of backward, have no spread. */
static void check_only_forward_of(const bool has_spread[3])
{
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(costs.layers[i].forward_spread.kind != SPREAD_NONE, has_spread[i]);
        assert_int_equal(costs.layers[i].backward_spread.kind, SPREAD_NONE);
    }
}

static void equal_steps_have_layers_without_spreads(void **state)
{
    (void)state;
    const bool none[3] = {false};
    calibrate(&plain);
    check_only_forward_of(none);
}

/* Of one layer alone it is all of the step's. */
static void the_layer_that_is_interrupted_has_the_spread_of_the_step(void **state)
{
    (void)state;
    const bool first[3] = {false, true, false};
    struct traced_story story = plain;
    story.is_interrupted = true;
    calibrate(&story);
    check_only_forward_of(first);
    check_near(forward_s(1), spread_deviation_s(&costs.spread), 1e-6);
    assert_non_null(strstr(calibration.cost_notes.list[1].text, "; a step deviates by "));
}

/* 1.1 ms of the rest, and 4 ms of a layer, each step's by another rule. */
static void layers_that_vary_apart_come_to_no_more_than_the_step(void **state)
{
    (void)state;
    const bool two[3] = {true, true, false};
    struct traced_story story = plain;
    story.is_interrupted = story.has_noise = true;
    calibrate(&story);
    check_only_forward_of(two);
    double step_s = spread_deviation_s(&costs.spread);
    assert_true(costs_layers_deviation_s(&costs) <= step_s * (1 + 1e-6));
    assert_true(costs_layers_deviation_sum_s(&costs) > 1.1 * costs_layers_deviation_s(&costs));
    assert_true(forward_s(1) > 2 * forward_s(0)); // 4 ms beside 1.1 ms
}

/* A run whose timeline names no layers shows no spread of any. */
static void a_timeline_without_layers_shows_no_spread_of_them(void **state)
{
    (void)state;
    struct traced_story story = plain;
    story.has_layers = false;
    story.has_noise = true;
    calibrate(&story);
    assert_int_equal(costs.spread.kind, SPREAD_UNIFORM);
    assert_true(costs_layers_deviation_s(&costs) == 0);
    assert_null(strstr(calibration.cost_notes.list[1].text, "deviates"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_steps_have_layers_without_spreads),
        cmocka_unit_test(the_layer_that_is_interrupted_has_the_spread_of_the_step),
        cmocka_unit_test(layers_that_vary_apart_come_to_no_more_than_the_step),
        cmocka_unit_test(a_timeline_without_layers_shows_no_spread_of_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
