/* Tests of samples of the size that jobs get unasked: of 512 workers against all of them, and of
 * 16,384 against closed forms; and of races that take many steps to forget how they began. */
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

#define PARAMETERS UINT64_C(9000000)
#define BANDWIDTH  3.125e9
#define LATENCY_S  20e-6
#define SUM        8e9

static const char star[] =
    "{\"switches\": [{\"name\": \"s\"}], \"hosts\": [{\"name\": \"h\", \"count\": 16384,"
    " \"nic\": \"25 Gbit/s\", \"latency\": \"10 us\", \"switch\": \"s\"}, {\"name\": \"p\","
    " \"count\": 64, \"workers\": 0, \"servers\": 1, \"nic\": \"25 Gbit/s\","
    " \"latency\": \"10 us\", \"switch\": \"s\"}]}";

/* Servers run beside workers, and share their cores. */
static const char bare[] =
    "{\"switches\": [{\"name\": \"s\"}], \"hosts\": [{\"name\": \"h\", \"count\": 512,"
    " \"nic\": \"10 Gbit/s\", \"latency\": \"25 us\", \"switch\": \"s\", \"cores\": 2}]}";

/* Servers run beside workers, and nobody waits for a core. */
static const char beside[] =
    "{\"switches\": [{\"name\": \"s\"}], \"hosts\": [{\"name\": \"h\", \"count\": 256,"
    " \"nic\": \"25 Gbit/s\", \"latency\": \"10 us\", \"switch\": \"s\"}]}";

/* Two workers on each host. */
static const char pairs[] =
    "{\"switches\": [{\"name\": \"s\"}], \"hosts\": [{\"name\": \"h\", \"count\": 64,"
    " \"workers\": 2, \"nic\": \"25 Gbit/s\", \"latency\": \"10 us\", \"switch\": \"s\","
    " \"memory\": \"20 GB/s\", \"memory-latency\": \"2 us\"}]}";

/* As many slow hosts as fast ones. */
static const char classes[] =
    "{\"switches\": [{\"name\": \"s\"}], \"hosts\": [{\"name\": \"h\", \"count\": 256,"
    " \"nic\": \"25 Gbit/s\", \"latency\": \"10 us\", \"switch\": \"s\"}, {\"name\": \"q\","
    " \"count\": 256, \"nic\": \"10 Gbit/s\", \"latency\": \"10 us\", \"switch\": \"s\"},"
    " {\"name\": \"p\", \"count\": 8, \"workers\": 0, \"servers\": 1, \"nic\": \"25 Gbit/s\","
    " \"latency\": \"10 us\", \"switch\": \"s\"}]}";

static const char few_classes[] =
    "{\"switches\": [{\"name\": \"s\"}], \"hosts\": [{\"name\": \"h\", \"count\": 64,"
    " \"nic\": \"25 Gbit/s\", \"latency\": \"10 us\", \"switch\": \"s\"}, {\"name\": \"p\","
    " \"count\": 8, \"workers\": 0, \"servers\": 1, \"nic\": \"25 Gbit/s\","
    " \"latency\": \"10 us\", \"switch\": \"s\"}, {\"name\": \"q\", \"count\": 32,"
    " \"workers\": 2, \"nic\": \"10 Gbit/s\", \"latency\": \"20 us\", \"switch\": \"s\"}]}";

static struct costs costs;

static void set_costs(double spread_s, double message_s)
{
    predictions_reset_costs(PARAMETERS, &costs);
    costs.layers[0].forward_s = 0.013;
    costs.layers[0].backward_s = 0.025;
    costs.message_s = message_s;
    costs.sum_bandwidth = SUM;
    costs.optimizer_s = 0.002;
    costs.spread = (struct spread){.kind = spread_s > 0 ? SPREAD_EXPONENTIAL : SPREAD_NONE,
                                   .mean_s = spread_s};
}

static struct prediction predict(const char *text, const struct job *job, double work_max,
                                 uint32_t steps, uint32_t sample)
{
    struct network network;
    struct prediction made;
    const struct prediction_extent extent = {3, steps, work_max, PREDICTION_ERROR_MAX, sample};
    predictions_read_network(text, &network);
    assert_int_equal(prediction_make(job, &costs, &network, &extent, &made), STATUS_OK);
    network_finish(&network);
    return made;
}

/* Whether a step agrees within 1 % with one of all workers. sample: 0 for what jobs get unasked. */
static void compare(const char *network, const struct job *job, uint32_t steps, uint32_t sample)
{
    const struct prediction some = predict(network, job, 0, steps, sample),
                            all = predict(network, job, (double)INFINITY, steps, 0);
    assert_true(some.is_reduced && some.simulated < job->workers && !all.is_reduced);
    predictions_check("a step", job->workers, some.step_s, all.step_s, 0.01);
    predictions_check("late", job->workers, some.late + 1, all.late + 1, 0.001);
}

static void samples_of_many_workers_agree_with_all_of_them(void **state)
{
    (void)state;
    static const struct {
        const char *network;
        struct mode mode;
        uint32_t workers, servers, backup, steps;
        double spread_s, message_s;
    } cases[] = {
        {star, {MODE_RING, 0}, 512, 0, 0, 1, 0.001, 20e-6},
        {star, {MODE_PS_SYNC, 0}, 512, 4, 0, 2, 0.02, 1e-6},
        {star, {MODE_PS_SYNC, 0}, 512, 4, 16, 2, 0.001, 20e-6},
        {star, {MODE_PS_SYNC, 0}, 512, 8, 2, 2, 0.02, 1e-6},
        {classes, {MODE_PS_SYNC, 0}, 512, 4, 0, 2, 0.001, 20e-6},
        {bare, {MODE_PS_SYNC, 0}, 512, 4, 0, 2, 0.001, 20e-6},
        {bare, {MODE_PS_SYNC, 0}, 512, 8, 0, 2, 0.02, 1e-6},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct job job = predictions_job(cases[i].mode.kind, cases[i].workers, cases[i].servers,
                                         ALL_REDUCE_CHOICE_RING);
        job.mode = cases[i].mode;
        job.backup = cases[i].backup;
        set_costs(cases[i].spread_s, cases[i].message_s);
        compare(cases[i].network, &job, cases[i].steps, 0);
    }
}

/* All send to all, in time for their threads or for their links. */
static void samples_of_direct_all_reduces_agree(void **state)
{
    (void)state;
    static const struct {
        const char *network;
        double spread_s, message_s;
    } cases[] = {
        {star, 0.001, 20e-6}, {star, 0.02, 20e-6}, {star, 0.001, 1e-6}, {pairs, 0.001, 20e-6}};
    const struct job job = predictions_job(MODE_RING, 128, 0, ALL_REDUCE_CHOICE_DIRECT);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        set_costs(cases[i].spread_s, cases[i].message_s);
        compare(cases[i].network, &job, 2, 0);
    }
}

/* The fewer race, the sooner they have forgotten that all began at once. */
static void samples_of_races_agree_once_these_are_under_way(void **state)
{
    (void)state;
    static const struct {
        const char *network;
        struct mode mode;
        uint32_t workers, servers, gradients, steps;
    } cases[] = {
        {few_classes, {MODE_PS_ASYNC, 0}, 128, 2, 1, 120},
        {few_classes, {MODE_PS_SSP, 2}, 128, 2, 1, 120},
        {star, {MODE_PS_ASYNC, 0}, 128, 2, 4, 120}, // to an update
        {beside, {MODE_PS_ASYNC, 0}, 256, 4, 1, 160},
    };
    set_costs(0.001, 20e-6);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct job job = predictions_job(cases[i].mode.kind, cases[i].workers, cases[i].servers,
                                         ALL_REDUCE_CHOICE_RING);
        job.mode = cases[i].mode;
        job.gradients_per_update = cases[i].gradients;
        compare(cases[i].network, &job, cases[i].steps, cases[i].workers / 2);
    }
}

static double harmonic(uint32_t count)
{
    double sum = 0;
    for (uint32_t i = 1; i <= count; i++) {
        sum += 1.0 / i;
    }
    return sum;
}

/* Where servers are what limits it: bytes both ways, sums, and an update. */
static void bytes_of_the_largest_jobs_take_what_they_do(void **state)
{
    (void)state;
    const double n = 16384, part = 4.0 * PARAMETERS / 64;
    struct job job = predictions_job(MODE_PS_SYNC, 16384, 64, ALL_REDUCE_CHOICE_RING);
    set_costs(0, 0);
    for (uint32_t backup = 0; backup <= 256; backup += 256) {
        job.backup = backup;
        const struct prediction made = predict(star, &job, PREDICTION_WORK_MAX, 3, 0);
        double sums = (n - backup) * part / SUM + costs.optimizer_s / 64;
        assert_true(made.is_reduced && made.simulated < 16384);
        predictions_check("a step", 16384, made.step_s,
                          0.038 + 2 * n * part / BANDWIDTH + sums + 2 * LATENCY_S, 0.01);
    }
}

/* Where workers are: the expected maximum of exponential times, or the one behind so many. */
static void delays_of_the_largest_jobs_are_those_of_all(void **state)
{
    (void)state;
    static const uint32_t backups[] = {0, 4, 256};
    set_costs(0.02, 0);
    costs.layers[0].parameters = 64;
    costs.optimizer_s = 0;
    for (size_t i = 0; i < sizeof(backups) / sizeof(backups[0]); i++) {
        struct job job = predictions_job(MODE_PS_SYNC, 16384, 8, ALL_REDUCE_CHOICE_RING);
        job.backup = backups[i];
        const struct prediction made = predict(star, &job, 0, 1000, 0);
        double late_s = 0.02 * (harmonic(16384) - harmonic(backups[i]));
        assert_true(made.is_reduced && made.simulated < 16384);
        predictions_check("a step", 16384, made.step_s, 0.038 + late_s + 2 * LATENCY_S, 0.01);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_of_many_workers_agree_with_all_of_them),
        cmocka_unit_test(samples_of_direct_all_reduces_agree),
        cmocka_unit_test(samples_of_races_agree_once_these_are_under_way),
        cmocka_unit_test(bytes_of_the_largest_jobs_take_what_they_do),
        cmocka_unit_test(delays_of_the_largest_jobs_are_those_of_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
