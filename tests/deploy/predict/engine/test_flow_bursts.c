/* Tests of links that let some bytes pass at once, against a token bucket. */
#include "deploy/predict/engine/flows.h"
#include "tests/support/deploy/predictions.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdio.h>

#define BANDWIDTH 1.25e8 // bytes per second: 1 Gbit/s
#define BURST     262144.0

static struct network network;
static struct flows *flows;

static void open_network(const char *first, const char *other, const char *flow)
{
    char text[500];
    snprintf(text, sizeof(text),
             "{%s\"switches\": [{\"name\": \"s\"}], \"hosts\": [{\"name\": \"a\", \"nic\":"
             " \"1 Gbit/s\", \"latency\": \"0 s\", \"switch\": \"s\"%s}, {\"name\": \"b\","
             " \"count\": 3, \"nic\": \"1 Gbit/s\", \"latency\": \"0 s\", \"switch\": \"s\"%s}]}",
             flow, first, other);
    predictions_read_network(text, &network);
    assert_int_equal(flows_create(&network, &flows), STATUS_OK);
}

static void close_network(void)
{
    flows_destroy(flows);
    network_finish(&network);
}

static bool is_paced;

static void begin(double now, uint32_t from, uint32_t to, double bytes)
{
    struct network_route route;
    network_find_route(&network, from, to, &route);
    assert_true(flows_begin(flows, now, flows_class_of(flows, &route, 1), bytes, 0, is_paced));
    assert_true(flows_share(flows, now));
}

/* When the next flow has ended. */
static double end_one(void)
{
    double now = flows_next_end(flows);
    (void)flows_end_next(flows, now);
    assert_true(flows_share(flows, now));
    return now;
}

#define WITH_BURST ", \"burst-kib\": 256"

static void what_fits_into_the_burst_takes_no_time(void **state)
{
    (void)state;
    open_network(WITH_BURST, WITH_BURST, "");
    begin(1, 0, 1, 0.75 * BURST);
    predictions_check("a small one", 2, end_one(), 1, 1e-9);
    begin(1, 0, 1, 0.75 * BURST); // a quarter is left
    predictions_check("the next", 2, end_one() - 1, 0.5 * BURST / BANDWIDTH, 1e-9);
    close_network();
}

/* A link that was busy has nothing left, and one that was idle for t has B t of it, b at most. */
static void idle_time_fills_the_bucket(void **state)
{
    (void)state;
    static const double idle[] = {0, 0.25, 0.5, 1, 2, 100}; // of the time that fills it
    for (size_t i = 0; i < sizeof(idle) / sizeof(idle[0]); i++) {
        double bytes = 8 * BURST, saved = idle[i] < 1 ? idle[i] : 1;
        open_network(WITH_BURST, WITH_BURST, "");
        begin(0, 0, 1, bytes);
        double first = end_one(), now = first + idle[i] * BURST / BANDWIDTH;
        predictions_check("the first", 2, first, (bytes - BURST) / BANDWIDTH, 1e-9);
        begin(now, 0, 1, bytes);
        predictions_check("behind a pause", 2, end_one() - now, (bytes - saved * BURST) / BANDWIDTH,
                          1e-9);
        close_network();
    }
}

/* While a link is full, others that begin find no room, however long that has lasted. */
static void a_full_link_has_no_burst(void **state)
{
    (void)state;
    open_network(WITH_BURST, WITH_BURST, "");
    double half = 8 * BURST / BANDWIDTH;
    begin(0, 0, 1, 17 * BURST);
    begin(half, 0, 2, 8 * BURST); // both have half of the link from now on
    predictions_check("one", 2, end_one(), 3 * half, 1e-9);
    predictions_check("the other", 2, end_one(), 3 * half, 1e-9);
    close_network();
}

/* What waits for another link uses up nobody's burst. */
static void waiting_for_another_link_costs_nothing(void **state)
{
    (void)state;
    open_network(WITH_BURST, WITH_BURST, "");
    begin(0, 0, 1, BURST);
    begin(0, 0, 2, BURST); // link 0 has nothing left
    begin(0, 1, 2, BURST); // and link 2 has all of it
    predictions_check("the first", 4, end_one() + 1, 1, 1e-9);
    predictions_check("the third", 4, end_one() + 1, 1, 1e-9);
    predictions_check("the second", 4, end_one(), BURST / BANDWIDTH, 1e-9);
    close_network();
}

static void both_ends_and_the_connection_have_to_let_it_pass(void **state)
{
    (void)state;
    static const struct {
        const char *first, *other, *flow;
        double wait_s;
    } cases[] = {
        {WITH_BURST, WITH_BURST, "", 0},
        {WITH_BURST, "", "", BURST / BANDWIDTH},
        {"", WITH_BURST, "", BURST / BANDWIDTH},
        {WITH_BURST, ", \"burst-kib\": 64", "", 0.75 * BURST / BANDWIDTH},
        {WITH_BURST, WITH_BURST, "\"flow\": \"0.5 Gbit/s\", ", 2 * BURST / BANDWIDTH},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        open_network(cases[i].first, cases[i].other, cases[i].flow);
        begin(0, 0, 1, BURST);
        predictions_check("a flow", (uint32_t)i, end_one() + 1, 1 + cases[i].wait_s, 1e-9);
        close_network();
    }
}

static void what_is_paced_sends_no_burst_and_fills_no_bucket(void **state)
{
    (void)state;
    open_network(WITH_BURST, WITH_BURST, "");
    is_paced = true;
    begin(0, 0, 1, BURST);
    double first_s = end_one();
    predictions_check("paced", 2, first_s, BURST / BANDWIDTH, 1e-9);
    is_paced = false;
    begin(first_s, 0, 1, BURST); // the bucket is as full as before
    predictions_check("behind it", 2, end_one(), first_s, 1e-9);
    close_network();
}

static uint32_t class_between(uint32_t from, uint32_t to)
{
    struct network_route route;
    network_find_route(&network, from, to, &route);
    return flows_class_of(flows, &route, 1);
}

/* Of three that leave a host together each has a third, and one that is alone has all. */
static void what_is_expected_keeps_its_share(void **state)
{
    (void)state;
    open_network(WITH_BURST, WITH_BURST, "");
    flows_expect(flows, class_between(0, 2), true);
    flows_expect(flows, class_between(0, 3), true);
    begin(0, 0, 1, BURST);
    predictions_check("the first", 3, end_one(), 2 * BURST / 3 / BANDWIDTH, 1e-9);
    flows_expect(flows, class_between(0, 2), false);
    flows_expect(flows, class_between(0, 3), false);
    begin(1, 0, 1, BURST);
    predictions_check("alone", 1, end_one() + 1, 2, 1e-9);
    close_network();
}

/* A server's answers end at the same time, so that no worker computes while another one has to
 * wait. */
static void answers_share_the_burst(void **state)
{
    (void)state;
    const double values = 524288, compute_s = 20e-3;
    const struct job job = predictions_job(MODE_PS_SYNC, 3, 1, ALL_REDUCE_CHOICE_AUTO);
    const struct network usual = predictions_star;
    struct costs costs;
    predictions_reset_costs((uint64_t)values, &costs);
    costs.layers[0].backward_s = compute_s;
    open_network(", \"workers\": 0, \"servers\": 1" WITH_BURST, ", \"servers\": 0" WITH_BURST, "");
    predictions_star = network;
    predictions_check("ps-sync", 3, predictions_make(&job, &costs, 3, 5).step_s,
                      compute_s + (2 * 3 * 4 * values - 2 * BURST) / BANDWIDTH, 1e-3);
    predictions_star = usual;
    close_network();
}

/* Each of pushes and answers saves a burst, unless it is paced. The server is beside one of the
 * workers. */
static void what_is_paced_is_told_by_its_way(void **state)
{
    (void)state;
    static const struct {
        const char *paced;
        double saved;
    } cases[] = {{"", 2},
                 {"\"paced\": true, ", 1},
                 {"\"paced\": [\"ring\"], ", 2},
                 {"\"paced\": [\"answers\"], ", 1},
                 {"\"paced\": [\"pushes\", \"answers\"], ", 0}};
    const double values = 524288, compute_s = 20e-3;
    struct costs costs;
    predictions_reset_costs((uint64_t)values, &costs);
    costs.layers[0].backward_s = compute_s;
    for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct network usual = predictions_star;
        struct job job = predictions_job(MODE_PS_SYNC, 2, 1, ALL_REDUCE_CHOICE_AUTO);
        open_network(WITH_BURST, ", \"workers\": 1" WITH_BURST, cases[i].paced);
        predictions_star = network;
        predictions_check("ps-sync", i, predictions_make(&job, &costs, 3, 5).step_s,
                          compute_s + (2 * 4 * values - cases[i].saved * BURST) / BANDWIDTH, 1e-3);
        predictions_star = usual;
        close_network();
    }
}

/* 2(N-1)/N S bytes of each link in a step. A step that computes for C leaves time for the bucket.
 */
static void an_all_reduce_saves_a_burst_in_each_step(void **state)
{
    (void)state;
    static const double compute_s[] = {0, 1e-3, 20e-3};
    const double values = 524288, refill_s = BURST / BANDWIDTH;
    struct costs costs;
    for (size_t i = 0; i < sizeof(compute_s) / sizeof(compute_s[0]); i++) {
        predictions_reset_costs((uint64_t)values, &costs);
        costs.layers[0].backward_s = compute_s[i];
        for (uint32_t n = 2; n <= 4; n *= 2) {
            const struct network usual = predictions_star;
            const struct job job = predictions_job(MODE_RING, n, 0, ALL_REDUCE_CHOICE_DIRECT);
            double idle_s = compute_s[i] < refill_s ? compute_s[i] : refill_s;
            double want = compute_s[i] + 2.0 * (n - 1) / n * 4 * values / BANDWIDTH - idle_s;
            open_network(WITH_BURST, WITH_BURST, "");
            predictions_star = network;
            predictions_check("a step", n, predictions_make(&job, &costs, 3, 5).step_s, want, 1e-3);
            predictions_star = usual;
            close_network();
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_fits_into_the_burst_takes_no_time),
        cmocka_unit_test(idle_time_fills_the_bucket),
        cmocka_unit_test(a_full_link_has_no_burst),
        cmocka_unit_test(waiting_for_another_link_costs_nothing),
        cmocka_unit_test(both_ends_and_the_connection_have_to_let_it_pass),
        cmocka_unit_test(what_is_paced_sends_no_burst_and_fills_no_bucket),
        cmocka_unit_test(what_is_expected_keeps_its_share),
        cmocka_unit_test(answers_share_the_burst),
        cmocka_unit_test(what_is_paced_is_told_by_its_way),
        cmocka_unit_test(an_all_reduce_saves_a_burst_in_each_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
