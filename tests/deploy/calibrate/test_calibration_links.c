/* Tests of what messages between hosts show of their links, and of what is known instead. */
#include "deploy/calibrate/calibration_links.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h> // needs the four above
// clang-format on
#include <math.h>
#include <string.h>

#define LATENCY_S 40e-6
#define MEMORY    5e9    // bytes per second, of what passes at once
#define NIC       1.25e8 // of the rest
#define BURST_KIB 64

static struct calibration_run run;
static struct calibration made;

/* Messages of several sizes through a token bucket. */
static int set_up(void **state)
{
    (void)state;
    memset(&run, 0, sizeof(run));
    memset(&made, 0, sizeof(made));
    for (uint32_t kib = 16; kib <= 256; kib *= 2) {
        double bytes = 1024.0 * kib;
        double passing = bytes < 1024 * BURST_KIB ? bytes : 1024 * BURST_KIB;
        const struct fit_point way = {bytes,
                                      LATENCY_S + passing / MEMORY + (bytes - passing) / NIC};
        observed_ways_add(&run.observation.between, &way, 0);
    }
    return 0;
}

static void take(const struct calibration_known *known)
{
    struct calibration_run *const runs[] = {&run};
    calibration_take_links(runs, 1, known, &made);
}

static void check_near(double value, double expected, double part)
{
    if (!(fabs(value - expected) <= part * expected)) {
        fail_msg("%.9g instead of %.9g", value, expected);
    }
}

static void messages_through_a_burst_show_too_much_bandwidth(void **state)
{
    (void)state;
    take(&(struct calibration_known){0});
    assert_true(made.has_network && made.links.nic > NIC);
    assert_true(made.links.latency_s < LATENCY_S / 4); // of each of two links
}

static void with_links_that_are_known_the_latency_is_right(void **state)
{
    (void)state;
    take(&(struct calibration_known){.nic = NIC, .burst_kib = BURST_KIB});
    check_near(made.links.nic, NIC, 1e-9);
    check_near(made.links.burst_kib, BURST_KIB, 1e-9);
    check_near(2 * made.links.latency_s, LATENCY_S + 16384 / MEMORY, 1e-6);
}

/* Two workers that share a core, over links that are ten times as quick. */
static void add_crowded(struct calibration_run *crowded)
{
    *crowded = (struct calibration_run){.workers = 2, .threads = 1, .host_count = 2};
    for (size_t i = 0; i < 2; i++) {
        crowded->hosts[i].workers = crowded->hosts[i].cores = 1;
        crowded->hosts[i].machine = 7;
    }
    for (size_t i = 0; i < run.observation.between.size_count; i++) {
        struct fit_point way = run.observation.between.least[i];
        way.seconds /= 10;
        observed_ways_add(&crowded->observation.between, &way, 0);
    }
}

static void runs_whose_workers_share_a_core_show_no_links(void **state)
{
    (void)state;
    static struct calibration_run crowded;
    struct calibration_run *const runs[] = {&run, &crowded};
    const struct calibration_known known = {.nic = NIC, .burst_kib = BURST_KIB};
    add_crowded(&crowded);
    calibration_take_links(runs, 2, &known, &made);
    check_near(2 * made.links.latency_s, LATENCY_S + 16384 / MEMORY, 1e-6);
}

static void runs_whose_workers_share_a_core_count_if_there_are_no_others(void **state)
{
    (void)state;
    static struct calibration_run crowded;
    struct calibration_run *const runs[] = {&crowded};
    add_crowded(&crowded);
    calibration_take_links(runs, 1, &(struct calibration_known){0}, &made);
    assert_true(made.has_network && made.links.nic > 10 * NIC);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(messages_through_a_burst_show_too_much_bandwidth, set_up),
        cmocka_unit_test_setup(with_links_that_are_known_the_latency_is_right, set_up),
        cmocka_unit_test_setup(runs_whose_workers_share_a_core_show_no_links, set_up),
        cmocka_unit_test_setup(runs_whose_workers_share_a_core_count_if_there_are_no_others,
                               set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
