/* Tests of jobs that halve and double several buckets, whose workers get out of step by themselves:
 * what is made in small against all of them, over as many steps as that takes. */
#include "deploy/predict/prediction.h"
#include "tests/support/deploy/predictions.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <math.h>
#include <stdio.h>
#include <string.h>

#define STEPS  20
#define SAMPLE 32

/* Below one switch, or in racks whose links carry a quarter. */
static const char star[] =
    "{\"switches\": [{\"name\": \"s\"}], \"hosts\": [{\"name\": \"h\", \"count\": 256,"
    " \"nic\": \"10 Gbit/s\", \"latency\": \"25 us\", \"switch\": \"s\"}]}";
static const char fast[] =
    "{\"switches\": [{\"name\": \"s\"}], \"hosts\": [{\"name\": \"h\", \"count\": 256,"
    " \"nic\": \"100 Gbit/s\", \"latency\": \"200 us\", \"switch\": \"s\"}]}";
static const char racks[] =
    "{\"switches\": [{\"name\": \"core\"}, {\"name\": \"a\", \"to\": \"core\","
    " \"oversubscription\": 4}, {\"name\": \"b\", \"to\": \"core\", \"oversubscription\": 4}],"
    " \"hosts\": [{\"name\": \"a\", \"count\": 16, \"nic\": \"10 Gbit/s\", \"latency\": \"25 us\","
    " \"switch\": \"a\"}, {\"name\": \"b\", \"count\": 16, \"nic\": \"10 Gbit/s\","
    " \"latency\": \"25 us\", \"switch\": \"b\"}]}";

struct shape {
    const char *network;
    uint32_t workers;
    double bucket_mb, spread_s;
    const char *straggler; // NULL: none
};

/* A small network with convolutions: most parameters are in one of the last layers. */
static struct costs costs_of(const struct shape *it)
{
    struct costs costs;
    memset(&costs, 0, sizeof(costs));
    costs.batch = 32;
    costs.layer_count = 4;
    costs.layers[0] = (struct cost_layer){10000, 0.0021, 0.0046};
    costs.layers[1] = (struct cost_layer){55000, 0.0020, 0.0048};
    costs.layers[2] = (struct cost_layer){1180000, 0.0006, 0.0007};
    costs.layers[3] = (struct cost_layer){5000, 0.00002, 0.00001};
    costs.optimizer_s = 0.0004;
    costs.message_s = 14e-6;
    costs.sum_bandwidth = 34e9;
    if (it->spread_s > 0) {
        costs.spread = (struct spread){.kind = SPREAD_EXPONENTIAL, .mean_s = it->spread_s};
    }
    return costs;
}

static struct prediction predict(const struct shape *it, double work_max, double error_max,
                                 uint32_t sample)
{
    struct network network;
    struct prediction made;
    struct job job = predictions_job(MODE_RING, it->workers, 0, ALL_REDUCE_CHOICE_HALVING);
    const struct costs costs = costs_of(it);
    const struct prediction_extent extent = {3, STEPS, work_max, error_max, sample};
    job.bucket_mb = it->bucket_mb;
    if (it->straggler != NULL) {
        snprintf(job.straggler, sizeof(job.straggler), "%s", it->straggler);
    }
    predictions_read_network(it->network, &network);
    assert_int_equal(prediction_make(&job, &costs, &network, &extent, &made), STATUS_OK);
    network_finish(&network);
    return made;
}

/* However a job is made unasked, its steps are those of all workers. Of a straggler a sample knows,
 * but not of what sets the others apart. */
static void jobs_of_several_buckets_are_right_unasked(void **state)
{
    (void)state;
    static const char late[] = "rank=0,factor=1.5";
    static const struct shape shapes[] = {
        {star, 32, 1, 0, NULL},        {star, 64, 1, 0, NULL},      {star, 128, 2, 0, NULL},
        {star, 64, 64, 0, NULL},       {star, 48, 1, 0, NULL},      {fast, 64, 1, 0, NULL},
        {racks, 32, 1, 0, NULL},       {star, 64, 1, 0.0005, NULL}, {star, 128, 1, 0.0005, late},
        {star, 128, 2, 0.00005, late},
    };
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        const struct prediction all = predict(&shapes[i], (double)INFINITY, 0, 0),
                                made = predict(&shapes[i], 0, PREDICTION_ERROR_MAX, SAMPLE);
        predictions_check("a step", shapes[i].workers, made.step_s, all.step_s, 0.01);
    }
}

/* One bucket has nothing to share links with. */
static void jobs_of_one_bucket_are_made_in_small(void **state)
{
    (void)state;
    const struct shape it = {star, 64, 64, 0, NULL};
    assert_int_equal(predict(&it, 0, PREDICTION_ERROR_MAX, 0).simulated, 1);
}

/* What is made in small because that was asked for is as far off as it says, or less. */
static void small_jobs_say_how_far_off_they_are(void **state)
{
    (void)state;
    static const struct shape shapes[] = {
        {star, 64, 1, 0, NULL},
        {star, 256, 2, 0, NULL},
        {star, 128, 2, 1e-7, NULL},
        {star, 128, 1, 0.0005, "rank=0,factor=1.5"},
    };
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        const struct prediction all = predict(&shapes[i], (double)INFINITY, 0, 0),
                                some = predict(&shapes[i], 0, PREDICTION_ERROR_MAX_ASKED, SAMPLE);
        assert_true(some.is_reduced && some.simulated == SAMPLE);
        predictions_check("a step", shapes[i].workers, some.step_s, all.step_s,
                          some.reduction_error);
    }
    const struct shape one = {star, 64, 1, 0, NULL};
    const struct prediction all = predict(&one, (double)INFINITY, 0, 0),
                            made = predict(&one, 0, PREDICTION_ERROR_MAX_ASKED, 64);
    assert_int_equal(made.simulated, 1);
    predictions_check("a step", 64, made.step_s, all.step_s, made.reduction_error);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(jobs_of_several_buckets_are_right_unasked),
        cmocka_unit_test(jobs_of_one_bucket_are_made_in_small),
        cmocka_unit_test(small_jobs_say_how_far_off_they_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
