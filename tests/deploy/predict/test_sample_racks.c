/* Tests of samples of workers in racks, against jobs in which all are simulated. */
#include "deploy/predict/prediction.h"
#include "deploy/predict/sample.h"
#include "tests/support/deploy/predictions.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <math.h>

/* Two racks, with long ways and narrow links between them. */
#define TWO_RACKS(count, more)                                                                   \
    "{\"switches\": [{\"name\": \"core\"}, {\"name\": \"a\", \"to\": \"core\","                  \
    " \"oversubscription\": 4, \"latency\": \"100 us\"}, {\"name\": \"b\", \"to\": \"core\","    \
    " \"oversubscription\": 4, \"latency\": \"100 us\"}], \"hosts\": [{\"name\": \"a\","         \
    " \"count\": " count                                                                         \
    ", \"nic\": \"25 Gbit/s\", \"latency\": \"10 us\", \"switch\": \"a\"" more                   \
    "}, {\"name\": \"b\", \"count\": " count ", \"nic\": \"25 Gbit/s\", \"latency\": \"10 us\"," \
    " \"switch\": \"b\"" more "}]}"

static const char racks[] = TWO_RACKS("32", "");

/* Four workers share a host. */
static const char racks_of_fours[] =
    TWO_RACKS("8", ", \"workers\": 4, \"memory\": \"20 GB/s\", \"memory-latency\": \"2 us\"");

static struct costs costs;

static void set_costs(double spread_s, double message_s)
{
    predictions_reset_costs(2000000, &costs);
    costs.layers[0].forward_s = 0.013;
    costs.layers[0].backward_s = 0.025;
    costs.message_s = message_s;
    costs.sum_bandwidth = 8e9;
    costs.optimizer_s = 0.002;
    costs.spread = (struct spread){.kind = spread_s > 0 ? SPREAD_EXPONENTIAL : SPREAD_NONE,
                                   .mean_s = spread_s};
}

static struct prediction predict(const char *text, const struct job *job, double work_max,
                                 uint32_t sample)
{
    struct network network;
    struct prediction made;
    const struct prediction_extent extent = {
        .warm = 2, .counted = 3, .work_max = work_max, .error_max = 0.01, .sample_min = sample};
    predictions_read_network(text, &network);
    assert_int_equal(prediction_make(job, &costs, &network, &extent, &made), STATUS_OK);
    network_finish(&network);
    return made;
}

static void compare(const char *network, uint32_t sample)
{
    const struct job job = predictions_job(MODE_RING, 64, 0, ALL_REDUCE_CHOICE_RING);
    const struct prediction some = predict(network, &job, 0, sample),
                            all = predict(network, &job, (double)INFINITY, 0);
    assert_true(some.is_reduced && some.simulated == sample && !all.is_reduced);
    predictions_check("a step", job.workers, some.step_s, all.step_s, 0.01);
    predictions_check("computing", job.workers, some.compute_s, all.compute_s, 0.01);
}

static const struct {
    double spread_s, message_s;
} cases[] = {{0, 20e-6}, {0.001, 20e-6}, {0.02, 20e-6}, {0.001, 1e-6}};

#define CASE_COUNT (sizeof(cases) / sizeof(cases[0]))

/* Racks that are larger than the sample: few hops lead from one to the other. */
static void rings_in_large_racks_have_samples(void **state)
{
    (void)state;
    for (size_t i = 0; i < CASE_COUNT; i++) {
        set_costs(cases[i].spread_s, cases[i].message_s);
        compare(racks, 16);
        compare(racks_of_fours, 16);
    }
}

static void rings_that_fill_links_of_racks_have_none(void **state)
{
    (void)state;
    struct network network;
    uint32_t hosts[64];
    predictions_read_network(racks, &network);
    assert_int_equal(network_place(&network, 64, 0, hosts), STATUS_OK);
    assert_int_equal(sample_find(&network, 64, 0, hosts, 16, REDUCTION_RING), 16);
    network.links[network.switches[1].up].bandwidth = 1e9; // less than a host's
    assert_int_equal(sample_find(&network, 64, 0, hosts, 16, REDUCTION_RING), 0);
    network_finish(&network);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rings_in_large_racks_have_samples),
        cmocka_unit_test(rings_that_fill_links_of_racks_have_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
