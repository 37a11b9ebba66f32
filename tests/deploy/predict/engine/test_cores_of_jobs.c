/* Jobs whose processes share the cores of hosts, against closed forms of processor sharing. */
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

#define PARAMETERS UINT64_C(262144)
#define STEP_S     0.03 // of a worker alone
#define COUNTED    4    // steps

static struct network network;
static struct costs costs;

/* So many places on a host with so many cores. Messages within it take no time. */
static void read_host(uint32_t places, uint32_t cores)
{
    char text[512];
    snprintf(text, sizeof(text),
             "{\"switches\": [{\"name\": \"s\"}], \"hosts\": [{\"name\": \"h\", \"workers\": %u,"
             " \"cores\": %u, \"nic\": \"10 Gbit/s\", \"latency\": \"0 s\", \"switch\": \"s\"}]}",
             places, cores);
    network_finish(&network); // of a host that was read before
    predictions_read_network(text, &network);
}

static int reset(void **state)
{
    (void)state;
    predictions_reset_costs(PARAMETERS, &costs);
    costs.layers[0].forward_s = STEP_S / 3;
    costs.layers[0].backward_s = STEP_S * 2 / 3;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    network_finish(&network);
    network = (struct network){0};
    return 0;
}

static struct prediction predict(enum mode_kind mode, uint32_t workers, uint32_t servers,
                                 const char *straggler)
{
    struct prediction made;
    struct job job = predictions_job(mode, workers, servers, ALL_REDUCE_CHOICE_RING);
    job.transport = TRANSPORT_TCP;
    const struct prediction_extent extent = {2, COUNTED, PREDICTION_WORK_MAX, 0};
    snprintf(job.straggler, sizeof(job.straggler), "%s", straggler);
    assert_int_equal(prediction_make(&job, &costs, &network, &extent, &made), STATUS_OK);
    return made;
}

/* On one core all work adds up, whoever does it when. What counts begins and ends in the middle of
 * a slice. */
static void slices_make_no_work(void **state)
{
    (void)state;
    costs.slice_s = 0.004;
    costs.optimizer_s = 0.002;
    costs.input_s = 0.004;
    double work_s = STEP_S + costs.optimizer_s + costs.input_s;
    double off_s = costs.slice_s / COUNTED + 1e-9;
    for (uint32_t n = 1; n <= 8; n++) {
        read_host(n, 1);
        assert_true(fabs(predict(MODE_RING, n, 0, "none").step_s - n * work_s) <= off_s);
        tear_down(NULL);
    }
    read_host(3, 2); // the last one has a core for a slice while the other is idle
    double step_s = predict(MODE_RING, 3, 0, "none").step_s;
    assert_true(step_s >= 1.5 * work_s - off_s && step_s <= 1.5 * work_s + costs.slice_s);
}

static void workers_on_one_core_take_turns(void **state)
{
    (void)state;
    for (uint32_t n = 1; n <= 8; n++) {
        read_host(n, 1);
        predictions_check("ring", n, predict(MODE_RING, n, 0, "none").step_s, n * STEP_S, 1e-6);
        if (n > 1) {
            tear_down(NULL);
        }
    }
    read_host(3, 2);
    predictions_check("3 on 2", 3, predict(MODE_RING, 3, 0, "none").step_s, 1.5 * STEP_S, 1e-6);
    tear_down(NULL);
    read_host(4, 8);
    predictions_check("4 on 8", 4, predict(MODE_RING, 4, 0, "none").step_s, STEP_S, 1e-6);
}

static void a_worker_that_waits_on_purpose_leaves_its_core(void **state)
{
    (void)state;
    read_host(2, 1);
    // Both are as long at work as the one waits beside its own.
    predictions_check("straggler", 2, predict(MODE_RING, 2, 0, "rank=1,factor=2").step_s,
                      2 * STEP_S, 1e-6);
    tear_down(NULL);
    read_host(2, 2);
    predictions_check("straggler", 2, predict(MODE_RING, 2, 0, "rank=1,factor=2").step_s,
                      2 * STEP_S, 1e-6);
}

/* On one core all work adds up: each of a worker's pushes and replies, and of the server's. */
static void messages_and_updates_take_from_computing(void **state)
{
    (void)state;
    uint32_t n = 4;
    costs.message_s = 0.0008;
    costs.message_bandwidth = 4.0 * PARAMETERS / 0.0002;
    costs.optimizer_s = 0.002;
    costs.sum_bandwidth = 4.0 * PARAMETERS / 0.0005;
    costs.carriage_message_s = 0.0003;
    costs.carriage_bandwidth = 4.0 * PARAMETERS / 0.0002;
    costs.input_s = 0.004;
    read_host(n, 1);
    double messages = 2 * n, carriage_s = 0.0005, small_s = 0.0008 + 0.0003;
    // A push and a reply have values; a pull, and that a push was taken, have none.
    double want = n * (STEP_S + costs.input_s) + 2 * messages * (0.001 + carriage_s + small_s) +
                  n * 0.0005 + costs.optimizer_s;
    predictions_check("ps-sync", n, predict(MODE_PS_SYNC, n, 1, "none").step_s, want, 1e-6);
}

/* One core does the sums, the copies and the updates of all in turn. */
static void all_reduces_in_memory_take_from_computing(void **state)
{
    (void)state;
    uint32_t n = 4;
    struct prediction made;
    struct job job = predictions_job(MODE_RING, n, 0, ALL_REDUCE_CHOICE_AUTO);
    const struct prediction_extent extent = {2, 4, PREDICTION_WORK_MAX, 0};
    costs.optimizer_s = 0.002;
    costs.sum_bandwidth = 4.0 * PARAMETERS / 0.0005;
    read_host(n, 1);
    network.links[network.hosts[0].memory].bandwidth = 4.0 * PARAMETERS / 0.0001;
    double want = n * (STEP_S + costs.optimizer_s) + (n - 1) * (0.0005 + 0.0001);
    assert_int_equal(prediction_make(&job, &costs, &network, &extent, &made), STATUS_OK);
    predictions_check("ring in memory", n, made.step_s, want, 1e-6);
}

static void hosts_of_one_machine_share_its_cores(void **state)
{
    (void)state;
    predictions_read_network(
        "{\"switches\": [{\"name\": \"s\"}], \"hosts\": ["
        "{\"name\": \"h\", \"count\": 4, \"nic\": \"1000 TB/s\", \"latency\": \"0 s\","
        " \"switch\": \"s\", \"cores\": 2, \"machine\": \"m\"},"
        "{\"name\": \"p\", \"workers\": 0, \"servers\": 1, \"nic\": \"1000 TB/s\","
        " \"latency\": \"0 s\", \"switch\": \"s\", \"cores\": 2, \"machine\": \"m\"}]}",
        &network);
    assert_int_equal(network.hosts[3].machine, 0);
    assert_int_equal(network.hosts[4].machine, 0);
    predictions_check("ring", 4, predict(MODE_RING, 4, 0, "none").step_s, 2 * STEP_S, 1e-6);
    costs.optimizer_s = STEP_S;
    predictions_check("ps-sync", 4, predict(MODE_PS_SYNC, 4, 1, "none").step_s, 3 * STEP_S, 1e-6);
}

/* With a core for each thread things are as without a number of cores, but for messages without
 * values. */
static void enough_cores_change_nothing(void **state)
{
    (void)state;
    costs.message_bandwidth = 5e9;
    costs.optimizer_s = 0.001;
    costs.sum_bandwidth = 4e9;
    for (uint32_t servers = 0; servers <= 2; servers++) {
        enum mode_kind mode = servers > 0 ? MODE_PS_SYNC : MODE_RING;
        read_host(8, 4096);
        double limited_s = predict(mode, 8, servers, "none").step_s;
        network.hosts[0].cores = 0;
        predictions_check("a step", 8, predict(mode, 8, servers, "none").step_s, limited_s, 1e-9);
        tear_down(NULL);
    }
    read_host(8, 1);
}

/* One worker of a thousand on hosts of their own stands for all, and shares its host's cores. */
static void hosts_with_cores_are_made_in_small(void **state)
{
    (void)state;
    const struct job job = predictions_job(MODE_RING, 32, 0, ALL_REDUCE_CHOICE_RING);
    struct prediction whole, small;
    costs.message_s = 0.0001;
    costs.carriage_message_s = 0.0002;
    predictions_read_network("{\"switches\": [{\"name\": \"s\"}], \"hosts\": ["
                             "{\"name\": \"h\", \"count\": 32, \"nic\": \"1 Gbit/s\", \"cores\": 1,"
                             " \"latency\": \"10 us\", \"switch\": \"s\"}]}",
                             &network);
    const struct prediction_extent all = {2, 4, PREDICTION_WORK_MAX, 0}, one = {2, 4, 1, 0.01};
    assert_int_equal(prediction_make(&job, &costs, &network, &all, &whole), STATUS_OK);
    assert_int_equal(prediction_make(&job, &costs, &network, &one, &small), STATUS_OK);
    assert_false(whole.is_reduced);
    assert_true(small.is_reduced);
    predictions_check("ring", 32, small.step_s, whole.step_s, 0.01);
    costs.slice_s = 0.004;
    assert_int_equal(prediction_make(&job, &costs, &network, &all, &whole), STATUS_OK);
    assert_int_equal(prediction_make(&job, &costs, &network, &one, &small), STATUS_OK);
    assert_true(small.is_reduced);
    predictions_check("with slices", 32, small.step_s, whole.step_s, 0.01);
}

/* A sample of them was 2.4 % off. */
static void workers_that_wait_for_slices_are_all_simulated(void **state)
{
    (void)state;
    const struct job job = predictions_job(MODE_RING, 64, 0, ALL_REDUCE_CHOICE_RING);
    const struct prediction_extent extent = {1, 2, 0, PREDICTION_ERROR_MAX_ASKED, 16};
    struct prediction made;
    costs.spread = (struct spread){.kind = SPREAD_EXPONENTIAL, .mean_s = 0.001};
    predictions_read_network(
        "{\"switches\": [{\"name\": \"s\"}], \"hosts\": ["
        "{\"name\": \"h\", \"count\": 16, \"workers\": 4, \"cores\": 2,"
        " \"nic\": \"25 Gbit/s\", \"latency\": \"10 us\", \"switch\": \"s\"}]}",
        &network);
    assert_int_equal(prediction_make(&job, &costs, &network, &extent, &made), STATUS_OK);
    assert_int_equal(made.simulated, 16);
    costs.slice_s = 0.004;
    assert_int_equal(prediction_make(&job, &costs, &network, &extent, &made), STATUS_OK);
    assert_int_equal(made.simulated, 64);
    costs.threads = 2; // which know no slices
    assert_int_equal(prediction_make(&job, &costs, &network, &extent, &made), STATUS_OK);
    assert_int_equal(made.simulated, 16);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(slices_make_no_work, reset, tear_down),
        cmocka_unit_test_setup_teardown(workers_on_one_core_take_turns, reset, tear_down),
        cmocka_unit_test_setup_teardown(a_worker_that_waits_on_purpose_leaves_its_core, reset,
                                        tear_down),
        cmocka_unit_test_setup_teardown(messages_and_updates_take_from_computing, reset, tear_down),
        cmocka_unit_test_setup_teardown(all_reduces_in_memory_take_from_computing, reset,
                                        tear_down),
        cmocka_unit_test_setup_teardown(hosts_of_one_machine_share_its_cores, reset, tear_down),
        cmocka_unit_test_setup_teardown(enough_cores_change_nothing, reset, tear_down),
        cmocka_unit_test_setup_teardown(hosts_with_cores_are_made_in_small, reset, tear_down),
        cmocka_unit_test_setup_teardown(workers_that_wait_for_slices_are_all_simulated, reset,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
