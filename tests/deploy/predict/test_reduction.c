/* Tests of jobs in which one stands for all, against those in which all are simulated. */
#include "deploy/predict/prediction.h"
#include "tests/support/deploy/predictions.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <math.h>
#include <string.h>

static struct costs costs;

/* Layers of different sizes, and each cost that there is. */
static void set_costs(double spread_s)
{
    memset(&costs, 0, sizeof(costs));
    costs.batch = 32;
    costs.layer_count = 4;
    costs.layers[0] = (struct cost_layer){1000000, 0.006, 0.012};
    costs.layers[1] = (struct cost_layer){6000000, 0.005, 0.010};
    costs.layers[2] = (struct cost_layer){0, 0.001, 0.001};
    costs.layers[3] = (struct cost_layer){2000000, 0.001, 0.002};
    costs.optimizer_s = 0.002;
    costs.message_s = 20e-6;
    costs.sum_bandwidth = 4e9;
    costs.spread = (struct spread){.kind = SPREAD_EXPONENTIAL, .mean_s = spread_s};
}

static const struct {
    const char *name;
    struct mode mode;
    enum all_reduce_choice choice;
    uint32_t servers;
    double alike, delayed; // how much both may differ, without delays and with them
} cases[] = {
    {"ring", {MODE_RING, 0}, ALL_REDUCE_CHOICE_RING, 0, 1e-4, 0.015},
    {"direct", {MODE_RING, 0}, ALL_REDUCE_CHOICE_DIRECT, 0, 1e-4, 0.015},
    {"auto", {MODE_RING, 0}, ALL_REDUCE_CHOICE_AUTO, 0, 1e-4, 0.015},
    // Who is early takes bandwidth from those that are late: one that stands for all does not.
    {"halving-doubling", {MODE_RING, 0}, ALL_REDUCE_CHOICE_HALVING, 0, 1e-4, 0.09},
    {"ps-sync", {MODE_PS_SYNC, 0}, ALL_REDUCE_CHOICE_AUTO, 4, 0.005, 0.005},
    // With one server nothing but the flows' limit is another, so the rest is rounding: which of
    // two gradients is first decides what follows.
    {"ps-ssp:2", {MODE_PS_SSP, 2}, ALL_REDUCE_CHOICE_AUTO, 1, 1e-9, 0.04},
    {"ps-async", {MODE_PS_ASYNC, 0}, ALL_REDUCE_CHOICE_AUTO, 1, 1e-9, 0.04},
};

static void compare(const struct network *network, const struct job *job, uint32_t steps,
                    double part)
{
    struct prediction all, one;
    const struct prediction_extent whole = {3, steps, INFINITY}, reduced = {3, steps, 0};
    assert_int_equal(prediction_make(job, &costs, network, &whole, &all), STATUS_OK);
    assert_int_equal(prediction_make(job, &costs, network, &reduced, &one), STATUS_OK);
    assert_int_equal(all.simulated, job->workers);
    assert_int_equal(all.simulated_servers, job->servers);
    assert_int_equal(one.simulated, job->servers == 0 ? 1 : job->workers);
    predictions_check("a step", job->workers, one.step_s, all.step_s, part);
    predictions_check("bytes of a link", job->workers, one.busiest_bytes, all.busiest_bytes,
                      part + 0.02);
    predictions_check("computing", job->workers, one.compute_s, all.compute_s, 0.02);
    predictions_check("waiting", job->workers, one.wait_s, all.wait_s, part * 5);
}

static void compare_all(const struct network *network, bool is_delayed, double least)
{
    set_costs(is_delayed ? 0.001 : 0);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        for (uint32_t n = 8; n <= 16; n *= 2) {
            struct job job =
                predictions_job(cases[i].mode.kind, n, cases[i].servers, cases[i].choice);
            job.mode = cases[i].mode;
            job.bucket_mb = 4;
            double part = is_delayed ? cases[i].delayed : cases[i].alike;
            compare(network, &job, is_delayed ? 100 : 10, part > least ? part : least);
        }
    }
}

static void test_equal_workers(void **state)
{
    (void)state;
    struct network network;
    predictions_read_star(&network);
    compare_all(&network, false, 0);
    network_finish(&network);
}

static void test_delayed_workers(void **state)
{
    (void)state;
    struct network network;
    predictions_read_star(&network);
    compare_all(&network, true, 0);
    network_finish(&network);
}

/* Two racks whose links carry a quarter, and a rack of servers. */
static void test_racks(void **state)
{
    (void)state;
    struct network network;
    predictions_read_network(
        "{\"switches\": [{\"name\": \"core\"},"
        "{\"name\": \"a\", \"to\": \"core\", \"oversubscription\": 4, \"latency\": \"2 us\"},"
        "{\"name\": \"b\", \"to\": \"core\", \"oversubscription\": 4, \"latency\": \"2 us\"}],"
        "\"hosts\": [{\"name\": \"a\", \"count\": 4, \"switch\": \"a\", \"nic\": \"25 Gbit/s\","
        " \"latency\": \"10 us\"}, {\"name\": \"b\", \"count\": 12, \"switch\": \"b\","
        " \"nic\": \"25 Gbit/s\", \"latency\": \"10 us\"}, {\"name\": \"s\", \"count\": 4,"
        " \"workers\": 0, \"servers\": 1, \"switch\": \"core\", \"nic\": \"25 Gbit/s\","
        " \"latency\": \"10 us\"}]}",
        &network);
    compare_all(&network, false, 0.02);
    network_finish(&network);
}

/* Several servers have a queue each, and each flow its share of a worker's link and no more. */
static void test_several_servers(void **state)
{
    (void)state;
    struct network network;
    predictions_read_star(&network);
    set_costs(0.001);
    struct job job = predictions_job(MODE_PS_ASYNC, 64, 4, ALL_REDUCE_CHOICE_AUTO);
    job.bucket_mb = 16;
    compare(&network, &job, 60, 0.03);
    network_finish(&network);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equal_workers),
        cmocka_unit_test(test_delayed_workers),
        cmocka_unit_test(test_racks),
        cmocka_unit_test(test_several_servers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
