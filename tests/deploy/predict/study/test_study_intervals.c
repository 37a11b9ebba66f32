/* Tests of intervals against what a change of the costs does to a step. */
#include "deploy/predict/study/study.h"
#include "tests/support/deploy/predictions.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PARAMETERS  UINT64_C(262144)
#define NINE_OF_TEN 1.645

static struct costs costs;
static struct network network;
static double bucket_mb;

/* One point, in ring mode. The caller frees the study. */
static struct study *make(uint32_t workers)
{
    struct study *study = calloc(1, sizeof(*study));
    assert_non_null(study);
    study->costs_file = study->network_file = "a file";
    study->costs = &costs;
    study->network = &network;
    study->job = predictions_job(MODE_RING, 2, 0, ALL_REDUCE_CHOICE_RING);
    study->job.bucket_mb = bucket_mb;
    study->counted = 4;
    study->designs[0].mode.kind = MODE_RING;
    study->workers[0] = workers;
    study->design_count = study->worker_count = 1;
    study_cross(study);
    assert_int_equal(study_make(study), STATUS_OK);
    return study;
}

static int set_up(void **state)
{
    (void)state;
    bucket_mb = 1024;
    predictions_read_star(&network);
    predictions_reset_costs(PARAMETERS, &costs);
    costs.layers[0].forward_s = 0.01;
    costs.layers[0].backward_s = 0.02;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    network_finish(&network);
    return 0;
}

static void without_errors_there_is_no_interval(void **state)
{
    (void)state;
    struct study *study = make(2);
    json_t *object = study_json(study);
    const json_t *point = json_array_get(json_object_get(object, "points"), 0);
    assert_false(study->points[0].has_interval);
    assert_null(json_object_get(point, "images_per_s_low"));
    json_decref(object);
    study_finish(study);
    free(study);
}

/* A step of one worker is computing alone, and as unsure as computing is. */
static void an_error_of_the_only_cost_is_that_of_the_speed(void **state)
{
    (void)state;
    costs.errors.compute = 0.02;
    costs.errors.message = 0.5; // of no time
    struct study *study = make(1);
    double factor = exp(NINE_OF_TEN * log(1.02)), rate = study->points[0].made.images_per_s;
    predictions_check("low", 1, study->points[0].images_per_s_low, rate / factor, 1e-6);
    predictions_check("high", 1, study->points[0].images_per_s_high, rate * factor, 1e-6);
    json_t *object = study_json(study);
    const json_t *point = json_array_get(json_object_get(object, "points"), 0);
    predictions_check("json", 1, json_number_value(json_object_get(point, "images_per_s_high")),
                      rate * factor, 1e-6);
    json_decref(object);
    study_finish(study);
    free(study);
}

/* Of two costs that add up, squares do. */
static void errors_of_several_costs_add_up_as_squares(void **state)
{
    (void)state;
    double log_each[2], shares[2] = {0.03, 0.1};
    costs.optimizer_s = 0.01;
    struct study *study = make(2);
    double step_s = study->points[0].made.step_s;
    study_finish(study);
    free(study);
    log_each[0] = log1p(shares[0] * 0.03 / step_s);
    log_each[1] = log1p(shares[1] * 0.01 / step_s);
    costs.errors.compute = shares[0];
    costs.errors.optimizer = shares[1];
    study = make(2);
    double width = log(study->points[0].images_per_s_high / study->points[0].images_per_s_low) / 2;
    predictions_check("width", 2, width, NINE_OF_TEN * hypot(log_each[0], log_each[1]), 1e-3);
    study_finish(study);
    free(study);
}

/* Two layers whose times are 30 and 60 % of computing, and deviate by 3 ms and 4 ms. */
static void give_layers_spreads(void)
{
    costs.layer_count = 2;
    costs.layers[0].parameters = costs.layers[1].parameters = PARAMETERS / 2;
    costs.layers[0].forward_s = costs.layers[1].backward_s = 0.01;
    costs.layers[0].backward_s = costs.layers[1].forward_s = 0.02;
    costs.layers[0].forward_spread = (struct spread){.kind = SPREAD_EXPONENTIAL, .mean_s = 3e-3};
    costs.layers[1].backward_spread = (struct spread){.kind = SPREAD_EXPONENTIAL, .mean_s = 4e-3};
}

/* Half the logarithm of how far the ends of the only point's interval are apart; 0: it has none. */
static double width_of(uint32_t workers, double *ret_rate)
{
    struct study *study = make(workers);
    const struct study_point *point = &study->points[0];
    double width = log(point->images_per_s_high / point->images_per_s_low) / 2;
    assert_true(point->has_interval || width == 0);
    *ret_rate = point->made.images_per_s;
    study_finish(study);
    free(study);
    return width;
}

/* A step of 60 ms deviates by 5 ms, the mean of four by half of that. */
static void spreads_of_layers_add_up_as_squares(void **state)
{
    (void)state;
    double rate = 0, plain_rate = 0;
    give_layers_spreads();
    double width = width_of(1, &rate), want = NINE_OF_TEN * log1p(5e-3 / 0.06 / sqrt(4));
    predictions_check("width", 1, width, want, 1e-6);
    costs.layers[0].forward_spread.kind = costs.layers[1].backward_spread.kind = SPREAD_NONE;
    assert_true(width_of(1, &plain_rate) == 0);
    assert_true(rate == plain_rate); // nothing is drawn
}

static void what_intervals_are_of_is_said(void **state)
{
    (void)state;
    static const char *const told[2] = {"are of the errors of costs alone",
                                        "that of the mean of 4 steps by the spreads of layers"};
    give_layers_spreads();
    for (uint32_t i = 0; i < 2; i++) {
        costs.errors.compute = i == 0 ? 0.02 : 0;
        struct study *study = make(1);
        json_t *object = study_json(study);
        const json_t *gaps = json_object_get(object, "left_out");
        const char *first = json_string_value(json_array_get(gaps, 0));
        assert_non_null(strstr(first, told[i]));
        assert_int_equal(strstr(first, "by the spreads of layers") != NULL, i == 1);
        json_decref(object);
        study_finish(study);
        free(study);
    }
}

/* A step's own spread has those of its layers in it, and errors have both. */
static void a_spread_counts_once_whatever_else_has_it(void **state)
{
    (void)state;
    double rate = 0, without_rate = 0;
    give_layers_spreads();
    costs.spread = (struct spread){.kind = SPREAD_UNIFORM, .most_s = 0.012};
    double width = width_of(1, &rate), grown_s = 0.012 / sqrt(12) / sqrt(4);
    struct study *study = make(1);
    predictions_check("of a step", 1, width,
                      NINE_OF_TEN * log1p(grown_s / study->points[0].made.step_s), 1e-6);
    study_finish(study);
    free(study);
    costs.errors.compute = 0.02;
    width = width_of(1, &rate);
    costs.layers[0].forward_spread.kind = costs.layers[1].backward_spread.kind = SPREAD_NONE;
    predictions_check("of errors", 1, width, width_of(1, &without_rate), 1e-6);
    assert_true(rate == without_rate);
    costs.errors.compute = 0; // of the step alone nothing follows, as it is drawn
    assert_true(width_of(1, &rate) == 0);
}

/* Messages of the output's gradients take longer than backward of the input's layer, which passes
 * beside them for the most part. */
static void spreads_say_in_which_layers_the_error_of_computing_lies(void **state)
{
    (void)state;
    double rate = 0, widths[2];
    costs.errors.compute = 0.02;
    costs.message_s = 0.02;
    bucket_mb = 1;
    for (uint32_t i = 0; i < 2; i++) {
        give_layers_spreads();
        costs.layers[0].parameters = costs.layers[1].parameters = PARAMETERS; // a bucket each
        costs.layers[0].forward_spread.kind = costs.layers[1].backward_spread.kind = SPREAD_NONE;
        costs.layers[i].backward_spread = (struct spread){SPREAD_EXPONENTIAL, .mean_s = 1e-3};
        widths[i] = width_of(2, &rate);
        costs.layers[i].backward_spread.kind = SPREAD_NONE;
    }
    predictions_check("of the output", 1, widths[1],
                      NINE_OF_TEN * log1p(0.02 * 0.06 * rate / (2 * costs.batch)), 1e-6);
    assert_true(widths[0] < 0.5 * widths[1]);
}

/* What takes long is changed in few steps and in small, of which a step takes as long as of all. */
static void intervals_of_what_takes_long_are_found_in_few_steps(void **state)
{
    (void)state;
    struct prediction_extent extent;
    struct prediction base;
    struct study *study = make(64);
    struct basis *basis = NULL;
    costs.errors.compute = 0.02;
    costs.message_s = 20e-6;
    costs.spread = (struct spread){.kind = SPREAD_EXPONENTIAL, .mean_s = 0.005};
    study->job.bucket_mb = 1.0 / 128;
    assert_int_equal(study_make_basis(study, &study->points[0], &basis), STATUS_OK);
    for (uint32_t i = 0; i < 2; i++) {
        struct study_point *point = &study->points[0];
        bool is_long = i == 1;
        basis->job.bucket_mb = is_long ? 1.0 / 128 : 1;
        assert_int_equal(study_predict(study, basis, &point->made), STATUS_OK);
        assert_int_equal(study_begin_changes(study, basis, &point->made, &extent, &base),
                         STATUS_OK);
        assert_int_equal(extent.counted, is_long ? 3 : study->counted);
        predictions_check("a step", 64, base.step_s, point->made.step_s, is_long ? 0.1 : 1e-9);
        assert_int_equal(study_find_interval(study, basis, point), STATUS_OK);
        double width = log(point->images_per_s_high / point->images_per_s_low) / 2;
        struct basis *slower = basis_create(&basis->job, &basis->costs, &basis->network);
        struct prediction longer;
        slower->costs.layers[0].forward_s *= 1.02;
        slower->costs.layers[0].backward_s *= 1.02;
        assert_int_equal(study_predict(study, slower, &longer), STATUS_OK);
        double want = NINE_OF_TEN * log(longer.step_s / point->made.step_s);
        predictions_check("width", 64, width, want, is_long ? 0.2 : 1e-6);
        basis_destroy(slower);
    }
    basis_destroy(basis);
    study_finish(study);
    free(study);
}

/* Any number of threads comes to the same. */
static void intervals_are_the_same_with_any_number_of_threads(void **state)
{
    (void)state;
    double lows[2];
    give_layers_spreads();
    costs.spread = (struct spread){.kind = SPREAD_EXPONENTIAL, .mean_s = 0.005};
    for (uint32_t i = 0; i < 2; i++) {
        struct study *study = make(2);
        study->threads = 1 + 3 * i;
        assert_int_equal(study_make(study), STATUS_OK);
        lows[i] = study->points[0].images_per_s_low;
        study_finish(study);
        free(study);
    }
    assert_true(lows[0] == lows[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(without_errors_there_is_no_interval, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_error_of_the_only_cost_is_that_of_the_speed, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(errors_of_several_costs_add_up_as_squares, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(spreads_of_layers_add_up_as_squares, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_intervals_are_of_is_said, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_spread_counts_once_whatever_else_has_it, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(spreads_say_in_which_layers_the_error_of_computing_lies,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(intervals_of_what_takes_long_are_found_in_few_steps, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(intervals_are_the_same_with_any_number_of_threads, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
