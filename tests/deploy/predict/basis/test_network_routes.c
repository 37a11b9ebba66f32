/* Tests of ways through a network: tiers, what others use, and what is lost. */
#include "deploy/predict/prediction.h"
#include "tests/support/common/captured_log.h"
#include "tests/support/common/temp_folder.h"
#include "tests/support/deploy/predictions.h"

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

#define BANDWIDTH  1.25e9
#define LATENCY_S  20e-6 // between two hosts
#define PARAMETERS UINT64_C(262144)
#define BYTES      (4.0 * (double)PARAMETERS)
#define HOST       "\"nic\": \"10 Gbit/s\", \"latency\": \"10 us\""

static struct costs costs;

static double step_in(const char *text, const struct job *job)
{
    struct network network;
    struct prediction made;
    const struct prediction_extent extent = {2, 4, PREDICTION_WORK_MAX, 0};
    predictions_reset_costs(PARAMETERS, &costs);
    predictions_read_network(text, &network);
    assert_int_equal(prediction_make(job, &costs, &network, &extent, &made), STATUS_OK);
    network_finish(&network);
    return made.step_s;
}

static struct job ring(uint32_t workers)
{
    return predictions_job(MODE_RING, workers, 0, ALL_REDUCE_CHOICE_RING);
}

static double ring_s(uint32_t n, double bandwidth)
{
    return 2 * (n - 1) * (BYTES / n / bandwidth + LATENCY_S);
}

/* Others' traffic takes a part of each link that it is on, whoever uses the rest. */
static void background_leaves_the_rest(void **state)
{
    (void)state;
    const struct job job = ring(8);
    predictions_check(
        "hosts", 8,
        step_in("{\"switches\": [{\"name\": \"s\"}], \"hosts\": [{\"name\": \"h\","
                " \"count\": 8, \"switch\": \"s\", \"background\": \"4 Gbit/s\", " HOST "}]}",
                &job),
        ring_s(8, 0.6 * BANDWIDTH), 1e-3);
    // Of a rack's 20 Gbit/s others use 15; the ring's one way out is the slowest.
    predictions_check(
        "a rack", 8,
        step_in("{\"switches\": [{\"name\": \"top\"}, {\"name\": \"a\", \"to\":"
                " \"top\", \"bandwidth\": \"20 Gbit/s\", \"background\":"
                " \"15 Gbit/s\"}, {\"name\": \"b\", \"to\": \"top\"}],"
                " \"hosts\": [{\"name\": \"h\", \"count\": 4, \"switch\": \"a\", " HOST
                "}, {\"name\": \"k\", \"count\": 4, \"switch\": \"b\", " HOST "}]}",
                &job),
        14 * BYTES / 8 / (0.5 * BANDWIDTH), 1e-3);
}

/* Four tiers, of which each carries half of what is below: between halves of the tree 8 workers and
 * 8 servers share an eighth of what a NIC has. */
static void every_tier_counts(void **state)
{
    (void)state;
    const struct job job = predictions_job(MODE_PS_SYNC, 8, 8, ALL_REDUCE_CHOICE_AUTO);
    double step_s = step_in(
        "{\"switches\": [{\"name\": \"top\"},"
        "{\"name\": \"c\", \"to\": \"top\", \"oversubscription\": 2},"
        "{\"name\": \"b\", \"to\": \"c\", \"oversubscription\": 2},"
        "{\"name\": \"a\", \"to\": \"b\", \"oversubscription\": 2}],"
        "\"hosts\": [{\"name\": \"h\", \"count\": 8, \"switch\": \"a\", " HOST "},"
        "{\"name\": \"p\", \"count\": 8, \"workers\": 0, \"servers\": 1, \"switch\": \"top\", " HOST
        "}]}",
        &job);
    predictions_check("tiers", 8, step_s, 2 * 8 * BYTES / BANDWIDTH + 2 * LATENCY_S, 1e-3);
}

/* CUBIC's window where a round trip is long, and Reno's where it is short. */
static void limits_of_loss_are_those_of_the_sources(void **state)
{
    (void)state;
    predictions_check("Reno", 1, network_loss_limit(0.01, 1e-3),
                      sqrt(1.5) / 0.1 * NETWORK_SEGMENT_BYTES / 1e-3, 1e-9);
    // RFC 9438, table 2: a loss of 1e-4 in 0.1 s is a window of 187 segments.
    predictions_check("CUBIC", 1, network_loss_limit(1e-4, 0.1) * 0.1 / NETWORK_SEGMENT_BYTES, 187,
                      5e-3);
    assert_true(network_loss_limit(0, 0.1) == 0 && network_loss_limit(0.1, 0) == 0);
}

/* Both links of a way lose a percent. */
static void loss_limits_each_connection(void **state)
{
    (void)state;
    double limit = network_loss_limit(1 - 0.99 * 0.99, 2 * LATENCY_S);
    const struct job job = ring(8);
    assert_true(limit < 0.99 * BANDWIDTH);
    predictions_check("ring", 8,
                      step_in("{\"switches\": [{\"name\": \"s\"}], \"hosts\": [{\"name\": \"h\","
                              " \"count\": 8, \"switch\": \"s\", \"loss\": 0.01, " HOST "}]}",
                              &job),
                      ring_s(8, limit), 1e-3);
}

/* A link that is full carries the more segments again, the more it loses. */
static void what_is_lost_is_sent_again(void **state)
{
    (void)state;
    const uint32_t n = 8;
    const struct job job = predictions_job(MODE_PS_SYNC, n, 1, ALL_REDUCE_CHOICE_AUTO);
    double step_s =
        step_in("{\"switches\": [{\"name\": \"s\"}], \"hosts\": [{\"name\": \"h\","
                " \"count\": 8, \"switch\": \"s\", " HOST "}, {\"name\": \"p\", \"workers\": 0,"
                " \"servers\": 1, \"switch\": \"s\", \"loss\": 0.01, " HOST "}]}",
                &job);
    predictions_check("ps-sync", n, step_s, 2 * n * BYTES / (0.99 * BANDWIDTH) + 2 * LATENCY_S,
                      1e-3);
}

/* A connection that loss holds back leaves its share to the others. */
static void a_lossy_worker_leaves_its_share(void **state)
{
    (void)state;
    const struct job job = predictions_job(MODE_PS_SYNC, 2, 1, ALL_REDUCE_CHOICE_AUTO);
    double limit = network_loss_limit(0.04, 2 * LATENCY_S);
    double step_s = step_in("{\"switches\": [{\"name\": \"s\"}], \"hosts\": [{\"name\": \"far\","
                            " \"switch\": \"s\", \"loss\": 0.04, " HOST "}, {\"name\": \"h\","
                            " \"switch\": \"s\", " HOST "}, {\"name\": \"p\", \"workers\": 0,"
                            " \"servers\": 1, \"switch\": \"s\", " HOST "}]}",
                            &job);
    assert_true(limit < BANDWIDTH / 2);
    predictions_check("a step", 2, step_s, 2 * BYTES / limit + 2 * LATENCY_S, 1e-3);
}

static void traffic_that_makes_no_sense_is_named(void **state)
{
    (void)state;
    static const struct {
        const char *part, *why;
    } cases[] = {
        {"\"background\": \"10 Gbit/s\"", "has 10 Gbit/s (1.25 GB/s) and a background of 10"},
        {"\"background\": \"-1 Gbit/s\"", "background"},
        {"\"loss\": 0.6", "loss"},
        {"\"loss\": \"1 %\"", "loss"},
        {"\"burst-kib\": -1", "burst-kib"},
        {"\"burst-kib\": \"64 KiB\"", "burst-kib"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char *folder = temp_folder_create(), text[400], path[600];
        struct network network;
        snprintf(text, sizeof(text),
                 "{\"switches\": [{\"name\": \"s\"}], \"hosts\": [{\"name\": \"h\","
                 " \"switch\": \"s\", %s, " HOST "}]}",
                 cases[i].part);
        temp_folder_write(folder, "network.json", text, strlen(text));
        snprintf(path, sizeof(path), "%s/network.json", folder);
        captured_log_begin();
        assert_int_equal(network_read(path, &network), STATUS_INVALID);
        const char *log = captured_log_end();
        if (strstr(log, cases[i].why) == NULL) {
            fail_msg("%s instead of %s", log, cases[i].why);
        }
        temp_folder_destroy(folder);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(background_leaves_the_rest),
        cmocka_unit_test(every_tier_counts),
        cmocka_unit_test(limits_of_loss_are_those_of_the_sources),
        cmocka_unit_test(loss_limits_each_connection),
        cmocka_unit_test(what_is_lost_is_sent_again),
        cmocka_unit_test(a_lossy_worker_leaves_its_share),
        cmocka_unit_test(traffic_that_makes_no_sense_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
