/* Tests of predicted exchanges within a host: sums in shared memory, and values that are lent. */
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

#define MEMORY     5e9 // bytes per second
#define LATENCY_S  20e-6
#define SUM        2e9 // bytes per second
#define PARAMETERS UINT64_C(262144)
#define BYTES      (4.0 * (double)PARAMETERS)

static struct network network;
static struct costs costs;

/* One host, and a second one below the same switch. */
static int set_up(void **state)
{
    (void)state;
    predictions_read_network(
        "{\"switches\": [{\"name\": \"s\"}], \"hosts\": ["
        "{\"name\": \"h\", \"workers\": 16, \"servers\": 4, \"nic\": \"1 Gbit/s\","
        " \"latency\": \"10 us\", \"switch\": \"s\", \"memory\": \"5 GB/s\","
        " \"memory-latency\": \"20 us\"},"
        "{\"name\": \"far\", \"workers\": 16, \"nic\": \"1 Gbit/s\", \"latency\": \"10 us\","
        " \"switch\": \"s\"}]}",
        &network);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    network_finish(&network);
    return 0;
}

/* How fast values go within the host; 0 bytes per second: in no time. */
static void set_memory(double bandwidth, double latency_s)
{
    struct network_link *memory = &network.links[network.hosts[0].memory];
    memory->bandwidth = bandwidth;
    memory->may_saturate = bandwidth > 0;
    network.hosts[0].memory_latency_s = latency_s;
}

static int reset_costs(void **state)
{
    (void)state;
    predictions_reset_costs(PARAMETERS, &costs);
    set_memory(MEMORY, LATENCY_S);
    return 0;
}

static enum status try(const struct job *job, uint32_t steps, struct prediction *ret_prediction)
{
    const struct prediction_extent extent = {2, steps, PREDICTION_WORK_MAX, 0};
    return prediction_make(job, &costs, &network, &extent, ret_prediction);
}

static struct prediction predict(const struct job *job, uint32_t steps)
{
    struct prediction made;
    assert_int_equal(try(job, steps, &made), STATUS_OK);
    return made;
}

static struct job group(uint32_t workers)
{
    return predictions_job(MODE_RING, workers, 0, ALL_REDUCE_CHOICE_AUTO);
}

/* Each of N threads adds up N-1 vectors of a part, and all write the mean through one memory. */
static double sums_s(uint32_t n)
{
    return BYTES * (n - 1) / n / SUM + BYTES * (n - 1) / MEMORY;
}

/* Without news that take time, all blocks are taken at once by all. */
static void all_workers_share_the_sums(void **state)
{
    (void)state;
    static const double sizes[] = {1024, 0.25};
    set_memory(MEMORY, 0);
    costs.sum_bandwidth = SUM;
    for (uint32_t n = 2; n <= 16; n *= 2) {
        for (size_t i = 0; i < 2; i++) {
            struct job job = group(n);
            job.bucket_mb = sizes[i];
            predictions_check("a step", n, predict(&job, 4).step_s, sums_s(n), 1e-6);
            job.all_reduce = ALL_REDUCE_CHOICE_DIRECT;
            predictions_check("directly", n, predict(&job, 4).step_s, sums_s(n), 1e-6);
        }
    }
}

/* Whoever is first waits for the last one, hears of it, and helps. */
static void news_take_their_time(void **state)
{
    (void)state;
    const uint32_t n = 4;
    const struct job job = group(n);
    double all_s = BYTES * (n - 1) / n / SUM;
    set_memory(0, LATENCY_S);
    costs.sum_bandwidth = SUM;
    double step_s = predict(&job, 8).step_s;
    assert_true(step_s > all_s + LATENCY_S);
    assert_true(step_s < all_s + 4 * LATENCY_S);
}

/* Sums are made by the threads that compute, and so are updates, at the end of the step. */
static void sums_hide_behind_nothing(void **state)
{
    (void)state;
    const uint32_t n = 8;
    set_memory(MEMORY, 0);
    costs.sum_bandwidth = SUM;
    costs.optimizer_s = 0.003;
    costs.layers[0] = (struct cost_layer){PARAMETERS, 0.01, 0.02};
    const struct job job = group(n);
    const struct prediction made = predict(&job, 4);
    predictions_check("a step", n, made.step_s, 0.033 + sums_s(n), 1e-6);
    predictions_check("optimizer", n, made.optimizer_s, 0.003, 1e-9);
    predictions_check("waiting", n, made.wait_s, sums_s(n), 1e-6);
}

/* Who has a bucket first computes the next one meanwhile. The last one makes sums alone, until
 * others come back. */
static void nobody_waits_while_there_is_backward(void **state)
{
    (void)state;
    const uint32_t n = 8;
    set_memory(0, 0);
    costs.sum_bandwidth = SUM;
    costs.layers[0] = (struct cost_layer){PARAMETERS, 0.01, 0.02};
    struct job job = group(n);
    job.bucket_mb = 0.25;
    const struct prediction made = predict(&job, 4);
    assert_true(made.step_s > 0.03 + BYTES * (n - 1) / n / SUM);
    assert_true(made.step_s < 0.03 + BYTES * (n - 1) / SUM);
}

static void everybody_waits_for_a_straggler(void **state)
{
    (void)state;
    const uint32_t n = 4;
    costs.layers[0].backward_s = 1;
    costs.sum_bandwidth = SUM;
    struct job job = group(n);
    snprintf(job.straggler, sizeof(job.straggler), "rank=3,factor=2.5");
    predictions_check("a step", n, predict(&job, 4).step_s, 2.5, 2e-3);
}

/* The same bytes by messages: each of N connections has a part of the memory. A ring's sums are
 * read where they are, unless that was not wanted; means are copied. */
static void a_ring_lends_what_is_added_up(void **state)
{
    (void)state;
    const uint32_t n = 4;
    struct job job = predictions_job(MODE_RING, n, 0, ALL_REDUCE_CHOICE_RING);
    double hop_s = BYTES / MEMORY + LATENCY_S;
    predictions_check("lent", n, predict(&job, 4).step_s, (n - 1) * (hop_s + LATENCY_S), 1e-3);
    job.transport = TRANSPORT_SHM;
    predictions_check("shm", n, predict(&job, 4).step_s, (n - 1) * (hop_s + LATENCY_S), 1e-3);
    job.transport = TRANSPORT_IPC;
    predictions_check("ipc", n, predict(&job, 4).step_s, 2 * (n - 1) * hop_s, 1e-3);
    job.transport = TRANSPORT_TCP;
    predictions_check("tcp", n, predict(&job, 4).step_s, 2 * (n - 1) * hop_s, 1e-3);
}

static void servers_read_pushes_where_they_are(void **state)
{
    (void)state;
    for (uint32_t n = 1; n <= 16; n *= 4) {
        struct job job = predictions_job(MODE_PS_SYNC, n, 1, ALL_REDUCE_CHOICE_AUTO);
        double copies_s = n * BYTES / MEMORY;
        predictions_check("lent", n, predict(&job, 4).step_s, copies_s + 2 * LATENCY_S, 1e-3);
        job.transport = TRANSPORT_TCP;
        predictions_check("sent", n, predict(&job, 4).step_s, 2 * copies_s + 2 * LATENCY_S, 1e-3);
    }
}

/* Threads of servers have no part in the values of answers, and none of a push is copied. */
static void workers_alone_copy_answers(void **state)
{
    (void)state;
    const double bandwidth = 1e9;
    const uint32_t n = 4;
    struct job job = predictions_job(MODE_PS_SYNC, n, 1, ALL_REDUCE_CHOICE_AUTO);
    set_memory(0, 0);
    costs.message_bandwidth = bandwidth;
    predictions_check("lent", n, predict(&job, 4).step_s, BYTES / bandwidth, 1e-3);
    job.transport = TRANSPORT_IPC; // n pushes, n answers one behind the other, at both ends
    assert_true(predict(&job, 4).step_s > 2 * n * BYTES / bandwidth);
}

/* Elsewhere, and where values are encoded, messages carry them. */
static void other_jobs_send_messages(void **state)
{
    (void)state;
    struct job far = group(17), codes = group(4);
    far.all_reduce = ALL_REDUCE_CHOICE_DIRECT;
    assert_true(predict(&far, 4).busiest_link != network.hosts[0].memory);
    codes.compress.kind = CODEC_FP16;
    codes.all_reduce = ALL_REDUCE_CHOICE_DIRECT;
    double direct_s = 3 * (BYTES / 2) / MEMORY * 2 + 2 * LATENCY_S;
    predictions_check("codes", 4, predict(&codes, 4).step_s, direct_s, 1e-3);
}

static void what_needs_one_host_is_refused_on_two(void **state)
{
    (void)state;
    static const enum transport_kind kinds[] = {TRANSPORT_SHM, TRANSPORT_IPC};
    for (size_t i = 0; i < 2; i++) {
        struct prediction made;
        struct job job = group(17);
        job.transport = kinds[i];
        assert_int_equal(try(&job, 4, &made), STATUS_INVALID);
        job.workers = 16;
        assert_int_equal(try(&job, 4, &made), STATUS_OK);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(all_workers_share_the_sums, reset_costs),
        cmocka_unit_test_setup(news_take_their_time, reset_costs),
        cmocka_unit_test_setup(sums_hide_behind_nothing, reset_costs),
        cmocka_unit_test_setup(nobody_waits_while_there_is_backward, reset_costs),
        cmocka_unit_test_setup(everybody_waits_for_a_straggler, reset_costs),
        cmocka_unit_test_setup(a_ring_lends_what_is_added_up, reset_costs),
        cmocka_unit_test_setup(servers_read_pushes_where_they_are, reset_costs),
        cmocka_unit_test_setup(workers_alone_copy_answers, reset_costs),
        cmocka_unit_test_setup(other_jobs_send_messages, reset_costs),
        cmocka_unit_test_setup(what_needs_one_host_is_refused_on_two, reset_costs),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
