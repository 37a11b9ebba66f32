/* Tests of predictions against closed forms, on networks whose switch is no limit. */
#include "common/plan/halving_plan.h"
#include "deploy/predict/prediction.h"
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
#include <string.h>

#define BANDWIDTH  1.25e9 // bytes per second: 10 Gbit/s
#define LATENCY_S  20e-6  // between two hosts
#define PARAMETERS UINT64_C(262144)
#define BYTES      (4.0 * (double)PARAMETERS)

static struct costs costs;

static int reset_costs(void **state)
{
    (void)state;
    predictions_reset_costs(PARAMETERS, &costs);
    return 0;
}

static struct prediction predict(const struct job *job, uint32_t steps)
{
    return predictions_make(job, &costs, 2, steps);
}

/* 2(N-1)/N S/B on the links, and a latency for each hop. */
static void test_ring(void **state)
{
    (void)state;
    for (uint32_t n = 2; n <= 64; n *= 2) {
        const struct job job = predictions_job(MODE_RING, n, 0, ALL_REDUCE_CHOICE_RING);
        double want = 2.0 * (n - 1) / n * BYTES / BANDWIDTH + 2.0 * (n - 1) * LATENCY_S;
        const struct prediction made = predict(&job, 4);
        predictions_check("ring", n, made.step_s, want, 1e-3);
        predictions_check("bytes of a link", n, made.busiest_bytes, 2.0 * (n - 1) / n * BYTES,
                          1e-9);
    }
}

static void test_direct(void **state)
{
    (void)state;
    for (uint32_t n = 2; n <= 32; n *= 2) {
        const struct job job = predictions_job(MODE_RING, n, 0, ALL_REDUCE_CHOICE_DIRECT);
        double want = 2.0 * (n - 1) / n * BYTES / BANDWIDTH + 2 * LATENCY_S;
        predictions_check("direct", n, predict(&job, 4).step_s, want, 1e-3);
    }
}

/* The product hands values on unsummed, so that its bits are those of the ring: a power of two has
 * N/2 log2 N pieces on the way there, and N - 1 on the way back. */
static void test_halving(void **state)
{
    (void)state;
    for (uint32_t n = 2; n <= 64; n *= 2) {
        const struct job job = predictions_job(MODE_RING, n, 0, ALL_REDUCE_CHOICE_HALVING);
        double rounds = log2(n), pieces = n / 2.0 * rounds + n - 1;
        double want = pieces / n * BYTES / BANDWIDTH + 2 * rounds * LATENCY_S;
        assert_int_equal(halving_hop_count(n), (uint32_t)(2 * rounds));
        predictions_check("halving", n, predict(&job, 4).step_s, want, 1e-3);
    }
}

/* All workers send to K servers at once: a server's link has N S/K each way, or a worker's S. */
static void test_incast(void **state)
{
    (void)state;
    for (uint32_t servers = 1; servers <= 4; servers *= 4) {
        for (uint32_t n = 1; n <= 64; n *= 2) {
            const struct job job =
                predictions_job(MODE_PS_SYNC, n, servers, ALL_REDUCE_CHOICE_AUTO);
            double share = n > servers ? (double)n / servers : 1;
            double want = 2 * share * BYTES / BANDWIDTH + 2 * LATENCY_S;
            predictions_check("ps-sync", n, predict(&job, 4).step_s, want, 1e-3);
        }
    }
}

/* Predicts for a network of its own. */
static double step_in(const char *text, const struct job *job)
{
    const struct network usual = predictions_star;
    predictions_read_network(text, &predictions_star);
    double step_s = predict(job, 4).step_s;
    network_finish(&predictions_star);
    predictions_star = usual;
    return step_s;
}

/* Workers of a rack share its link: 8 of them have a quarter of what their NICs have. */
static void test_shared_link(void **state)
{
    (void)state;
    const struct job job = predictions_job(MODE_PS_SYNC, 8, 8, ALL_REDUCE_CHOICE_AUTO);
    double step_s =
        step_in("{\"switches\": [{\"name\": \"top\"}, {\"name\": \"s\", \"to\": \"top\","
                " \"oversubscription\": 4}], \"hosts\": [{\"name\": \"h\", \"count\": 8,"
                " \"nic\": \"10 Gbit/s\", \"latency\": \"10 us\", \"switch\": \"s\"},"
                "{\"name\": \"p\", \"count\": 8, \"workers\": 0, \"servers\": 1,"
                " \"nic\": \"10 Gbit/s\", \"latency\": \"10 us\", \"switch\": \"top\"}]}",
                &job);
    predictions_check("an oversubscribed rack", 8, step_s,
                      2 * 4 * BYTES / BANDWIDTH + 2 * LATENCY_S, 1e-3);
}

/* What the others leave: a connection that is held back elsewhere leaves its share to them. */
static void test_max_min(void **state)
{
    (void)state;
    // One worker of two has a slow NIC. The server's link gives the other what that leaves.
    const struct job job = predictions_job(MODE_PS_SYNC, 2, 1, ALL_REDUCE_CHOICE_AUTO);
    double step_s = step_in("{\"switches\": [{\"name\": \"s\"}], \"hosts\": [{\"name\": \"slow\","
                            " \"nic\": \"1 Gbit/s\", \"latency\": \"10 us\", \"switch\": \"s\"},"
                            "{\"name\": \"h\", \"nic\": \"10 Gbit/s\", \"latency\": \"10 us\","
                            " \"switch\": \"s\"}, {\"name\": \"p\", \"workers\": 0, \"servers\": 1,"
                            " \"nic\": \"10 Gbit/s\", \"latency\": \"10 us\", \"switch\": \"s\"}]}",
                            &job);
    predictions_check("a slow NIC", 2, step_s, 2 * BYTES / (BANDWIDTH / 10) + 2 * LATENCY_S, 1e-3);
}

/* On one host messages go through its memory, and `flow` is for connections between hosts. */
static void test_one_host(void **state)
{
    (void)state;
    const char *const parts[] = {"", ", \"flow\": \"1 Gbit/s\""};
    struct job job = predictions_job(MODE_RING, 4, 0, ALL_REDUCE_CHOICE_RING);
    job.transport = TRANSPORT_TCP; // which lends nothing
    char text[400];
    for (size_t i = 0; i < 2; i++) {
        snprintf(text, sizeof(text),
                 "{\"switches\": [{\"name\": \"s\"}], \"hosts\": [{\"name\": \"h\", \"workers\": 4,"
                 " \"nic\": \"1 Gbit/s\", \"latency\": \"10 us\", \"switch\": \"s\","
                 " \"memory\": \"5 GB/s\", \"memory-latency\": \"20 us\"}]%s}",
                 parts[i]);
        // Four connections share 5 GB/s, which is 10 Gbit/s each.
        predictions_check("one host", 4, step_in(text, &job),
                          1.5 * BYTES / BANDWIDTH + 6 * LATENCY_S, 1e-3);
    }
}

/* Two workers on each of two hosts: every hop of a ring waits for those between the hosts. */
static void connections_between_hosts_have_their_limit_beside_others(void **state)
{
    (void)state;
    struct job job = predictions_job(MODE_RING, 4, 0, ALL_REDUCE_CHOICE_RING);
    job.transport = TRANSPORT_TCP;
    const double step_s =
        step_in("{\"switches\": [{\"name\": \"s\"}], \"flow\": \"1 Gbit/s\","
                " \"hosts\": [{\"name\": \"h\", \"count\": 2, \"workers\": 2,"
                " \"nic\": \"10 Gbit/s\", \"latency\": \"10 us\", \"switch\": \"s\","
                " \"memory\": \"100 GB/s\"}]}",
                &job);
    predictions_check("a flow between hosts", 4, step_s, 1.5 * BYTES / (BANDWIDTH / 10), 0.02);
}

/* What an update takes a server need not be what it takes a worker. */
static void servers_have_an_optimizer_of_their_own(void **state)
{
    (void)state;
    const struct job sync = predictions_job(MODE_PS_SYNC, 2, 1, ALL_REDUCE_CHOICE_AUTO);
    const struct job ring = predictions_job(MODE_RING, 2, 0, ALL_REDUCE_CHOICE_RING);
    costs.optimizer_s = 0.005;
    double alike_s = predict(&sync, 4).step_s, ring_s = predict(&ring, 4).step_s;
    costs.server_optimizer_s = 0.045;
    costs.has_server_optimizer = true;
    predictions_check("a server's", 2, predict(&sync, 4).step_s, alike_s + 0.04, 1e-6);
    predictions_check("a worker's", 2, predict(&ring, 4).step_s, ring_s, 1e-9);
}

/* One worker that exchanges nothing: forward, backward and the update. */
static void test_alone(void **state)
{
    (void)state;
    costs.layers[0].forward_s = 0.01;
    costs.layers[0].backward_s = 0.02;
    costs.optimizer_s = 0.005;
    const struct job job = predictions_job(MODE_RING, 1, 0, ALL_REDUCE_CHOICE_AUTO);
    const struct prediction made = predict(&job, 4);
    predictions_check("a step", 1, made.step_s, 0.035, 1e-9);
    predictions_check("images/s", 1, made.images_per_s, 32 / 0.035, 1e-9);
    predictions_check("compute", 1, made.compute_s, 0.03, 1e-9);
    predictions_check("optimizer", 1, made.optimizer_s, 0.005, 1e-9);
    assert_int_equal(made.busiest_link, NETWORK_NONE);
}

/* Messages and sums keep a server's thread: it takes N pushes and sends N replies. */
static void test_server_thread(void **state)
{
    (void)state;
    const uint32_t n = 16;
    costs.layers[0].parameters = 1;
    costs.message_s = 1e-3;
    costs.sum_bandwidth = 400; // a float in 10 ms
    costs.optimizer_s = 0.1;
    const struct job job = predictions_job(MODE_PS_SYNC, n, 1, ALL_REDUCE_CHOICE_AUTO);
    // The first workers push again while the last ones are answered, so it is never idle.
    double want = n * (1e-3 + 0.01) + 0.1 + n * 1e-3;
    const struct prediction made = predict(&job, 4);
    predictions_check("a step", n, made.step_s, want, 1e-3);
    predictions_check("the server", n, made.server_busy, 1, 1e-3);
}

/* The exchange of the last layer hides behind the backward pass of the first. */
static void test_overlap(void **state)
{
    (void)state;
    const uint32_t n = 4;
    costs.layer_count = 2;
    costs.layers[0] = (struct cost_layer){1, 0, 1};
    costs.layers[1] = (struct cost_layer){PARAMETERS, 0, 0};
    struct job job = predictions_job(MODE_RING, n, 0, ALL_REDUCE_CHOICE_RING);
    job.bucket_mb = 1;
    const struct prediction made = predict(&job, 4);
    assert_true(made.step_s >= 1 && made.step_s < 1 + 2.0 * (n - 1) * LATENCY_S * 1.01);
}

/* The mean of what steps take, whose exchange takes next to nothing. */
static void check_maximum(const char *what, double want)
{
    const uint32_t n = 16;
    costs.layers[0].parameters = 64;
    const struct job ring = predictions_job(MODE_RING, n, 0, ALL_REDUCE_CHOICE_RING);
    const struct job sync = predictions_job(MODE_PS_SYNC, n, 1, ALL_REDUCE_CHOICE_AUTO);
    predictions_check(what, n, predict(&ring, 8000).step_s, want, 1e-2);
    predictions_check(what, n, predict(&sync, 8000).step_s, want, 1e-2);
}

/* A step takes as long as the slowest of N: the expected maximum of N draws. */
static void test_maximum_exponential(void **state)
{
    (void)state;
    double harmonic = 0;
    for (int i = 1; i <= 16; i++) {
        harmonic += 1.0 / i;
    }
    costs.spread = (struct spread){.kind = SPREAD_EXPONENTIAL, .mean_s = 1};
    check_maximum("exponential", harmonic);
}

static void test_maximum_uniform(void **state)
{
    (void)state;
    costs.spread = (struct spread){.kind = SPREAD_UNIFORM, .least_s = 1, .most_s = 2};
    check_maximum("uniform", 1 + 16 / 17.0);
}

static void test_maximum_pareto(void **state)
{
    (void)state;
    costs.spread = (struct spread){.kind = SPREAD_PARETO, .least_s = 1, .shape = 4};
    check_maximum("pareto", tgamma(17) * tgamma(1 - 0.25) / tgamma(17 - 0.25));
}

/* A straggler's factor is of its compute time, and everybody waits for it. */
static void test_straggler(void **state)
{
    (void)state;
    costs.layers[0].parameters = 64;
    costs.layers[0].backward_s = 1;
    struct job job = predictions_job(MODE_RING, 8, 0, ALL_REDUCE_CHOICE_DIRECT);
    snprintf(job.straggler, sizeof(job.straggler), "rank=3,factor=2.5");
    const struct prediction made = predict(&job, 4);
    predictions_check("a step", 8, made.step_s, 2.5, 1e-3);
    predictions_check("delays", 8, made.delay_s, 1.5 / 8, 1e-3);
    predictions_check("waiting", 8, made.wait_s, 1.5 * 7 / 8, 1e-3);
}

static void test_seed(void **state)
{
    (void)state;
    costs.spread = (struct spread){.kind = SPREAD_EXPONENTIAL, .mean_s = 1};
    struct job job = predictions_job(MODE_PS_SYNC, 8, 2, ALL_REDUCE_CHOICE_AUTO);
    const struct prediction first = predict(&job, 20), second = predict(&job, 20);
    assert_memory_equal(&first.step_s, &second.step_s, sizeof(first.step_s));
    job.seed++;
    assert_true(predict(&job, 20).step_s != first.step_s);
}

/* One worker that stands for all has none of the messages of the others. */
static void test_a_job_that_takes_too_much_memory_is_given_up(void **state)
{
    (void)state;
    const struct job job = predictions_job(MODE_RING, 32, 0, ALL_REDUCE_CHOICE_DIRECT);
    struct prediction_extent extent = {2, 4, 1, 0, .memory_max = 32 * 1024};
    struct prediction made;
    captured_log_begin();
    assert_int_equal(prediction_make(&job, &costs, &predictions_star, &extent, &made),
                     STATUS_NO_MEMORY);
    const char *log = captured_log_end();
    assert_non_null(strstr(log, "ring among 32 workers: simulating all of them takes more than "));
    assert_non_null(strstr(log, "GiB of memory; ask for fewer workers, or --approximate, which may "
                                "be off by 1 %"));
    extent.error_max = PREDICTION_ERROR_MAX_ASKED;
    assert_int_equal(prediction_make(&job, &costs, &predictions_star, &extent, &made), STATUS_OK);
    extent = (struct prediction_extent){2, 4, PREDICTION_WORK_MAX, 0};
    assert_int_equal(prediction_make(&job, &costs, &predictions_star, &extent, &made), STATUS_OK);
}

/* Who only asks whether steps are shorter than so much has the same figures if they are. */
static void steps_that_are_too_long_are_not_gone_through_to_their_end(void **state)
{
    (void)state;
    const struct job job = predictions_job(MODE_RING, 8, 0, ALL_REDUCE_CHOICE_RING);
    struct prediction_extent extent = {2, 4, PREDICTION_WORK_MAX, 0};
    struct prediction whole, same, cut;
    assert_int_equal(prediction_make(&job, &costs, &predictions_star, &extent, &whole), STATUS_OK);
    extent.step_s_max = whole.step_s;
    assert_int_equal(prediction_make(&job, &costs, &predictions_star, &extent, &same), STATUS_OK);
    assert_memory_equal(&same.step_s, &whole.step_s, sizeof(whole.step_s));
    assert_memory_equal(&same.busiest_bytes, &whole.busiest_bytes, sizeof(whole.busiest_bytes));
    extent.step_s_max = whole.step_s / 2;
    assert_int_equal(prediction_make(&job, &costs, &predictions_star, &extent, &cut), STATUS_OK);
    assert_true(cut.step_s > whole.step_s / 2 && cut.step_s < whole.step_s * 0.6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_ring, reset_costs),
        cmocka_unit_test_setup(test_direct, reset_costs),
        cmocka_unit_test_setup(test_halving, reset_costs),
        cmocka_unit_test_setup(test_incast, reset_costs),
        cmocka_unit_test_setup(test_shared_link, reset_costs),
        cmocka_unit_test_setup(test_max_min, reset_costs),
        cmocka_unit_test_setup(test_one_host, reset_costs),
        cmocka_unit_test_setup(connections_between_hosts_have_their_limit_beside_others,
                               reset_costs),
        cmocka_unit_test_setup(servers_have_an_optimizer_of_their_own, reset_costs),
        cmocka_unit_test_setup(test_alone, reset_costs),
        cmocka_unit_test_setup(test_server_thread, reset_costs),
        cmocka_unit_test_setup(test_overlap, reset_costs),
        cmocka_unit_test_setup(test_maximum_exponential, reset_costs),
        cmocka_unit_test_setup(test_maximum_uniform, reset_costs),
        cmocka_unit_test_setup(test_maximum_pareto, reset_costs),
        cmocka_unit_test_setup(test_straggler, reset_costs),
        cmocka_unit_test_setup(test_seed, reset_costs),
        cmocka_unit_test_setup(test_a_job_that_takes_too_much_memory_is_given_up, reset_costs),
        cmocka_unit_test_setup(steps_that_are_too_long_are_not_gone_through_to_their_end,
                               reset_costs),
    };
    return cmocka_run_group_tests(tests, predictions_open_star, predictions_close_star);
}
