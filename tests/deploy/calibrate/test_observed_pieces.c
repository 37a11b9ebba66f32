/* Tests of what a piece of a step takes, also where some steps were interrupted. */
#include "deploy/calibrate/calibration.h"
#include "deploy/calibrate/calibration_files.h"
#include "deploy/calibrate/observed_pieces.h"
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

static struct calibration_run run; // large, as the others
static struct calibration calibration;
static struct costs costs;

static void check_near(double value, double expected)
{
    if (!(fabs(value - expected) <= 1e-6 * fabs(expected))) {
        fail_msg("%.9g instead of %.9g", value, expected);
    }
}

/* Eleven steps, of which most were interrupted. */
static void a_piece_takes_what_nine_of_ten_steps_take_at_least(void **state)
{
    (void)state;
    static double made_s[OBSERVED_PIECES];
    struct observed_pieces pieces;
    assert_int_equal(observed_pieces_init(&pieces, 23), STATUS_OK);
    for (size_t step = 0; step < 11; step++) {
        double forward_s = step == 4 ? 4e-3 : step == 7 ? 5e-3 : 100e-3;
        observed_pieces_add(&pieces, step, OBSERVED_FORWARD, forward_s / 4);
        observed_pieces_add(&pieces, step, OBSERVED_FORWARD, 3 * forward_s / 4);
    }
    observed_pieces_add(&pieces, 2, OBSERVED_BUCKETS, 3e-3); // of one step alone
    assert_int_equal(observed_pieces_tenths(&pieces, 11, made_s), STATUS_OK);
    check_near(made_s[OBSERVED_FORWARD], 5e-3);
    check_near(made_s[OBSERVED_BUCKETS], 0);
    check_near(made_s[OBSERVED_REST], 0);
    observed_pieces_finish(&pieces);
}

/* Of twelve steps. What is no layer is one piece: its parts may take turns. */
static void a_spread_is_that_of_the_sums_of_steps(void **state)
{
    (void)state;
    static struct observed_spreads made;
    struct observed_pieces pieces;
    assert_int_equal(observed_pieces_init(&pieces, 60), STATUS_OK);
    for (size_t step = 0; step < 12; step++) {
        observed_pieces_add(&pieces, step, OBSERVED_REST, 1e-3 * (double)step);
        observed_pieces_add(&pieces, step, OBSERVED_FORWARD, 1e-3 * (double)(11 - step));
        observed_pieces_add(&pieces, step, OBSERVED_LAYERS + 2, 5e-3);
        observed_pieces_add(&pieces, step, OBSERVED_LAYERS + 3, 20e-3);
        observed_pieces_add(&pieces, step, OBSERVED_LAYERS + 3, 1e-3 * (double)step);
    }
    assert_int_equal(observed_pieces_spreads(&pieces, 12, &made), STATUS_OK);
    assert_int_equal(made.others.kind, SPREAD_NONE);
    assert_int_equal(made.forward[0].kind, SPREAD_NONE); // no slice at all
    assert_int_equal(made.forward[1].kind, SPREAD_NONE);
    assert_int_equal(made.backward[1].kind, SPREAD_UNIFORM);
    check_near(made.backward[1].most_s, 11e-3 * 13 / 11);
    observed_pieces_finish(&pieces);
}

/* The costs of a run, as predict reads them. */
static void calibrate(const struct traced_story *story)
{
    static const struct model_layers model = {
        {{"conv2d 1", 100000}, {"linear 2", 30000}}, .count = 2, .parameters = 130000};
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

/* Something else has the core for 4 ms of three steps of four, in forward of the first layer, which
 * takes 0.4 ms. The mean of steps has that, in the spread. */
static void interrupted_steps_leave_the_shares_of_layers_as_they_are(void **state)
{
    (void)state;
    struct traced_story story = {"local", "lenet5", 1, 0, TRACED_STEPS, true, false, "\"seed\": 1"};
    double shares[3][2], mean_s = 0;
    calibrate(&story);
    mean_s = costs_compute_s(&costs) + spread_mean_s(&costs.spread);
    for (uint32_t i = 0; i < 3; i++) {
        shares[i][0] = costs.layers[i].forward_s / costs_compute_s(&costs);
        shares[i][1] = costs.layers[i].backward_s / costs_compute_s(&costs);
    }
    story.is_interrupted = true;
    calibrate(&story);
    for (uint32_t i = 0; i < 3; i++) {
        check_near(costs.layers[i].forward_s / costs_compute_s(&costs), shares[i][0]);
        check_near(costs.layers[i].backward_s / costs_compute_s(&costs), shares[i][1]);
    }
    check_near(costs_compute_s(&costs) + spread_mean_s(&costs.spread),
               mean_s + 1e-9 * TRACED_INTERRUPT_NS * 3 / 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_piece_takes_what_nine_of_ten_steps_take_at_least),
        cmocka_unit_test(a_spread_is_that_of_the_sums_of_steps),
        cmocka_unit_test(interrupted_steps_leave_the_shares_of_layers_as_they_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
