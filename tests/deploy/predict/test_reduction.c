/* Tests of jobs in which one stands for all, against those in which all are simulated. Both may
 * differ by what the reduced one says of itself. */
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

#define NO_SAMPLE 1000 // more than there are workers: test_sample.c has those

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
    costs.encode_bandwidth = 2e9;
    costs.decode_bandwidth = 3e9;
    if (spread_s > 0) {
        costs.spread = (struct spread){.kind = SPREAD_EXPONENTIAL, .mean_s = spread_s};
    }
}

/* 16 and 48 workers in racks whose links carry a quarter, and servers above them. */
static const char racks[] =
    "{\"switches\": [{\"name\": \"core\"},"
    "{\"name\": \"a\", \"to\": \"core\", \"oversubscription\": 4, \"latency\": \"2 us\"},"
    "{\"name\": \"b\", \"to\": \"core\", \"oversubscription\": 4, \"latency\": \"2 us\"}],"
    "\"hosts\": [{\"name\": \"a\", \"count\": 16, \"switch\": \"a\", \"nic\": \"25 Gbit/s\","
    " \"latency\": \"10 us\"}, {\"name\": \"b\", \"count\": 48, \"switch\": \"b\","
    " \"nic\": \"25 Gbit/s\", \"latency\": \"10 us\"}, {\"name\": \"s\", \"count\": 8,"
    " \"workers\": 0, \"servers\": 1, \"switch\": \"core\", \"nic\": \"25 Gbit/s\","
    " \"latency\": \"10 us\"}]}";

/* Four workers on each host. */
static const char shared[] =
    "{\"switches\": [{\"name\": \"s\"}], \"hosts\": [{\"name\": \"h\", \"count\": 16,"
    " \"workers\": 4, \"nic\": \"10 Gbit/s\", \"latency\": \"10 us\", \"switch\": \"s\","
    " \"memory\": \"20 GB/s\", \"memory-latency\": \"2 us\"}]}";

/* Hosts with a slower link than the others. */
static const char mixed[] =
    "{\"switches\": [{\"name\": \"s\"}], \"hosts\": [{\"name\": \"h\", \"count\": 7,"
    " \"nic\": \"10 Gbit/s\", \"latency\": \"10 us\", \"switch\": \"s\"}, {\"name\": \"q\","
    " \"count\": 57, \"nic\": \"25 Gbit/s\", \"latency\": \"10 us\", \"switch\": \"s\"}]}";

/* Servers on the hosts of the workers. */
static const char beside[] =
    "{\"switches\": [{\"name\": \"s\"}], \"hosts\": [{\"name\": \"h\", \"count\": 64,"
    " \"nic\": \"10 Gbit/s\", \"latency\": \"10 us\", \"switch\": \"s\"}]}";

static void read_network(const char *text, struct network *ret_network)
{
    if (text == NULL) {
        predictions_read_star(ret_network);
    } else {
        predictions_read_network(text, ret_network);
    }
}

struct case_of_job {
    const char *network; // NULL: the star, where all hosts are equal
    struct mode mode;
    enum all_reduce_choice choice;
    uint32_t servers, workers;
    double spread_s;
};

static struct job job_of(const struct case_of_job *it)
{
    struct job job = predictions_job(it->mode.kind, it->workers, it->servers, it->choice);
    job.mode = it->mode;
    // Several buckets of halving set workers apart: test_halving.c has those.
    job.bucket_mb = it->choice == ALL_REDUCE_CHOICE_HALVING ? 1024 : it->workers > 16 ? 16 : 4;
    return job;
}

static bool is_reduced(const struct case_of_job *it, const struct job *job, double error_max)
{
    struct network network;
    struct prediction_estimate estimate;
    const struct prediction_extent extent = {3, 1, 0, error_max, NO_SAMPLE};
    set_costs(it->spread_s);
    read_network(it->network, &network);
    assert_int_equal(prediction_estimate(job, &costs, &network, &extent, &estimate), STATUS_OK);
    network_finish(&network);
    return estimate.is_reduced;
}

/* Both may differ by a part of a step, and by what the reduced one says. */
static void compare(const struct case_of_job *it, const struct job *job, double part)
{
    struct network network;
    struct prediction all, one;
    uint32_t steps = it->spread_s > 0 && it->network == NULL ? 20 : 5;
    const struct prediction_extent whole = {3, steps, (double)INFINITY, 0},
                                   reduced = {3, steps, 0, PREDICTION_ERROR_MAX_ASKED, NO_SAMPLE};
    set_costs(it->spread_s);
    read_network(it->network, &network);
    assert_int_equal(prediction_make(job, &costs, &network, &whole, &all), STATUS_OK);
    assert_int_equal(prediction_make(job, &costs, &network, &reduced, &one), STATUS_OK);
    network_finish(&network);
    assert_true(one.is_reduced && !all.is_reduced && all.reduction_error == 0);
    assert_int_equal(all.simulated, job->workers);
    assert_int_equal(all.simulated_servers, job->servers);
    assert_int_equal(one.simulated, job->servers == 0 ? 1 : job->workers);
    part = part < one.reduction_error ? part : one.reduction_error;
    predictions_check("a step", job->workers, one.step_s, all.step_s, part);
    // The one that stands for all knows of the links between racks only what rings carry.
    if (it->network != racks || it->choice == ALL_REDUCE_CHOICE_RING || it->servers > 0) {
        predictions_check("bytes of a link", job->workers, one.busiest_bytes, all.busiest_bytes,
                          part + 0.02);
    }
    predictions_check("computing", job->workers, one.compute_s, all.compute_s, 0.02);
}

/* Without delays, workers that are alike do the same at the same time. */
static void equal_workers_are_reduced_unasked(void **state)
{
    (void)state;
    static const struct case_of_job cases[] = {
        {NULL, {MODE_RING, 0}, ALL_REDUCE_CHOICE_RING, 0, 8, 0},
        {NULL, {MODE_RING, 0}, ALL_REDUCE_CHOICE_RING, 0, 13, 0},
        {NULL, {MODE_RING, 0}, ALL_REDUCE_CHOICE_RING, 0, 64, 0},
        {NULL, {MODE_RING, 0}, ALL_REDUCE_CHOICE_DIRECT, 0, 8, 0},
        {NULL, {MODE_RING, 0}, ALL_REDUCE_CHOICE_DIRECT, 0, 13, 0},
        {NULL, {MODE_RING, 0}, ALL_REDUCE_CHOICE_DIRECT, 0, 32, 0},
        {NULL, {MODE_RING, 0}, ALL_REDUCE_CHOICE_AUTO, 0, 16, 0},
        {NULL, {MODE_RING, 0}, ALL_REDUCE_CHOICE_AUTO, 0, 32, 0},
        {NULL, {MODE_RING, 0}, ALL_REDUCE_CHOICE_HALVING, 0, 8, 0},
        {NULL, {MODE_RING, 0}, ALL_REDUCE_CHOICE_HALVING, 0, 16, 0},
        {NULL, {MODE_RING, 0}, ALL_REDUCE_CHOICE_HALVING, 0, 64, 0},
        {NULL, {MODE_PS_SYNC, 0}, ALL_REDUCE_CHOICE_AUTO, 1, 8, 0},
        {NULL, {MODE_PS_SYNC, 0}, ALL_REDUCE_CHOICE_AUTO, 1, 16, 0},
        {NULL, {MODE_PS_SYNC, 0}, ALL_REDUCE_CHOICE_AUTO, 1, 64, 0},
        {racks, {MODE_PS_SYNC, 0}, ALL_REDUCE_CHOICE_AUTO, 1, 64, 0},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct job job = job_of(&cases[i]);
        assert_true(is_reduced(&cases[i], &job, PREDICTION_ERROR_MAX));
        compare(&cases[i], &job, 0.004);
        job.bucket_mb = 1024;
        compare(&cases[i], &job, 0.004);
    }
}

/* Codes take time at both ends, and bytes that are not in proportion to the values. */
static void codes_and_rounds_set_nobody_apart(void **state)
{
    (void)state;
    static const struct case_of_job cases[] = {
        {NULL, {MODE_RING, 0}, ALL_REDUCE_CHOICE_RING, 0, 13, 0},
        {NULL, {MODE_RING, 0}, ALL_REDUCE_CHOICE_DIRECT, 0, 13, 0},
        {NULL, {MODE_RING, 0}, ALL_REDUCE_CHOICE_HALVING, 0, 16, 0},
        {NULL, {MODE_PS_SYNC, 0}, ALL_REDUCE_CHOICE_AUTO, 1, 16, 0},
    };
    static const struct codec codecs[] = {{CODEC_FP16, 0}, {CODEC_INT8, 0}, {CODEC_TOPK, 10000}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct job job = job_of(&cases[i]);
        job.sync_every = 4; // nor do rounds
        assert_true(is_reduced(&cases[i], &job, PREDICTION_ERROR_MAX));
        compare(&cases[i], &job, 0.01);
        job.sync_every = 1;
        for (size_t j = 0; j < sizeof(codecs) / sizeof(codecs[0]); j++) {
            job.compress = codecs[j];
            assert_true(is_reduced(&cases[i], &job, PREDICTION_ERROR_MAX));
            compare(&cases[i], &job, 0.01);
        }
    }
}

/* Others' traffic, and packets that are lost, of all hosts alike. */
static const char disturbed[] =
    "{\"switches\": [{\"name\": \"s\"}], \"hosts\": [{\"name\": \"h\", \"count\": 64,"
    " \"nic\": \"10 Gbit/s\", \"latency\": \"10 us\", \"switch\": \"s\","
    " \"background\": \"4 Gbit/s\", \"loss\": 0.01}, {\"name\": \"p\", \"workers\": 0,"
    " \"servers\": 1, \"nic\": \"10 Gbit/s\", \"latency\": \"10 us\", \"switch\": \"s\","
    " \"background\": \"2 Gbit/s\", \"loss\": 0.01}]}";

/* Connections that no link holds back: several of them fill one. */
static const char capped[] =
    "{\"switches\": [{\"name\": \"s\"}], \"flow\": \"3 Gbit/s\", \"hosts\": [{\"name\": \"h\","
    " \"count\": 64, \"nic\": \"10 Gbit/s\", \"latency\": \"10 us\", \"switch\": \"s\"}]}";

/* Racks whose hosts lose packets: ways of different lengths have different limits. */
static const char lossy_racks[] =
    "{\"switches\": [{\"name\": \"core\"}, {\"name\": \"a\", \"to\": \"core\"},"
    "{\"name\": \"b\", \"to\": \"core\", \"loss\": 0.01}],"
    "\"hosts\": [{\"name\": \"a\", \"count\": 8, \"switch\": \"a\", \"nic\": \"25 Gbit/s\","
    " \"latency\": \"10 us\"}, {\"name\": \"b\", \"count\": 8, \"switch\": \"b\","
    " \"nic\": \"25 Gbit/s\", \"latency\": \"10 us\"}]}";

/* Links that let bytes pass at once. */
static const char bursting[] =
    "{\"switches\": [{\"name\": \"s\"}], \"hosts\": [{\"name\": \"h\", \"count\": 64,"
    " \"nic\": \"10 Gbit/s\", \"latency\": \"10 us\", \"switch\": \"s\", \"burst-kib\": 64}]}";

static void disturbed_hosts_are_reduced_if_they_are_alike(void **state)
{
    (void)state;
    static const struct case_of_job cases[] = {
        {disturbed, {MODE_RING, 0}, ALL_REDUCE_CHOICE_RING, 0, 13, 0},
        {disturbed, {MODE_RING, 0}, ALL_REDUCE_CHOICE_DIRECT, 0, 13, 0},
        {disturbed, {MODE_RING, 0}, ALL_REDUCE_CHOICE_HALVING, 0, 16, 0},
        {disturbed, {MODE_PS_SYNC, 0}, ALL_REDUCE_CHOICE_AUTO, 1, 16, 0},
        {capped, {MODE_RING, 0}, ALL_REDUCE_CHOICE_RING, 0, 13, 0},
        {capped, {MODE_RING, 0}, ALL_REDUCE_CHOICE_DIRECT, 0, 13, 0},
        {capped, {MODE_RING, 0}, ALL_REDUCE_CHOICE_HALVING, 0, 16, 0},
    };
    const struct case_of_job other = {
        lossy_racks, {MODE_RING, 0}, ALL_REDUCE_CHOICE_RING, 0, 16, 0};
    const struct case_of_job bursts = {bursting, {MODE_RING, 0}, ALL_REDUCE_CHOICE_RING, 0, 16, 0};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct job job = job_of(&cases[i]);
        assert_true(is_reduced(&cases[i], &job, PREDICTION_ERROR_MAX));
        compare(&cases[i], &job, 0.01);
    }
    const struct case_of_job *const others[] = {&other, &bursts};
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        const struct job job = job_of(others[i]);
        assert_false(is_reduced(others[i], &job, PREDICTION_ERROR_MAX_ASKED));
    }
}

/* Chunks of all workers are rounded up to the same size. That changes no bucket's all-reduce,
 * though the largest one then has more values than the model. */
static void rounded_buckets_keep_their_all_reduce(void **state)
{
    (void)state;
    static const enum all_reduce_choice choices[] = {
        ALL_REDUCE_CHOICE_RING, ALL_REDUCE_CHOICE_DIRECT, ALL_REDUCE_CHOICE_HALVING};
    const struct prediction_extent whole = {3, 5, (double)INFINITY, 0},
                                   reduced = {3, 5, 0, PREDICTION_ERROR_MAX_ASKED, NO_SAMPLE};
    struct network network;
    predictions_read_star(&network);
    set_costs(0);
    costs.layers[0].parameters = 10;
    costs.layers[1].parameters = 100;
    costs.layers[3].parameters = 5000;
    for (size_t i = 0; i < sizeof(choices) / sizeof(choices[0]); i++) {
        struct prediction all, one;
        const struct job job = predictions_job(MODE_RING, 32, 0, choices[i]);
        assert_int_equal(prediction_make(&job, &costs, &network, &whole, &all), STATUS_OK);
        assert_int_equal(prediction_make(&job, &costs, &network, &reduced, &one), STATUS_OK);
        assert_true(one.is_reduced);
        predictions_check("a step", 32, one.step_s, all.step_s, 0.001);
    }
    network_finish(&network);
}

#define RING(network, choice, workers, spread_s)                                  \
    {                                                                             \
        network, {MODE_RING, 0}, ALL_REDUCE_CHOICE_##choice, 0, workers, spread_s \
    }
#define SERVERS(network, mode, slack, servers, workers, spread_s)                  \
    {                                                                              \
        network, {mode, slack}, ALL_REDUCE_CHOICE_AUTO, servers, workers, spread_s \
    }

/* Delays, racks and several servers set workers apart. */
static void other_jobs_are_reduced_if_that_is_asked(void **state)
{
    (void)state;
    static const struct case_of_job cases[] = {
        RING(NULL, RING, 8, 0.001),
        RING(NULL, RING, 16, 0.02),
        RING(NULL, RING, 64, 0.02),
        RING(NULL, DIRECT, 8, 0.02),
        RING(NULL, DIRECT, 16, 0.02),

        RING(racks, RING, 64, 0.02),

        RING(racks, AUTO, 16, 0.02),

        RING(racks, AUTO, 32, 0.02),
        RING(racks, DIRECT, 40, 0.02),

        SERVERS(NULL, MODE_PS_SYNC, 0, 2, 16, 0),
        SERVERS(NULL, MODE_PS_SYNC, 0, 4, 8, 0.001),
        SERVERS(NULL, MODE_PS_SYNC, 0, 4, 16, 0.02),
        SERVERS(NULL, MODE_PS_SYNC, 0, 4, 64, 0.02),
        SERVERS(NULL, MODE_PS_SYNC, 0, 8, 8, 0),
        SERVERS(racks, MODE_PS_SYNC, 0, 4, 16, 0),
        SERVERS(NULL, MODE_PS_SSP, 2, 4, 8, 0.001),
        SERVERS(NULL, MODE_PS_SSP, 2, 4, 16, 0.02),
        SERVERS(NULL, MODE_PS_SSP, 2, 4, 64, 0.02),
        SERVERS(NULL, MODE_PS_ASYNC, 0, 1, 16, 0),
        SERVERS(NULL, MODE_PS_ASYNC, 0, 4, 8, 0.001),
        SERVERS(NULL, MODE_PS_ASYNC, 0, 4, 16, 0.02),
        SERVERS(NULL, MODE_PS_ASYNC, 0, 4, 64, 0.001),
        SERVERS(racks, MODE_PS_ASYNC, 0, 4, 64, 0.02),
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct job job = job_of(&cases[i]);
        assert_false(is_reduced(&cases[i], &job, PREDICTION_ERROR_MAX));
        compare(&cases[i], &job, 1);
    }
}

/* Of several servers one does not make the update from the first gradients alone, but each flow may
 * have its share of a worker's link. */
static void backup_workers_codes_and_rounds_keep_the_bounds(void **state)
{
    (void)state;
    static const struct case_of_job cases[] = {
        SERVERS(NULL, MODE_PS_SYNC, 0, 1, 16, 0.02), SERVERS(NULL, MODE_PS_SYNC, 0, 4, 16, 0.02),
        SERVERS(NULL, MODE_PS_ASYNC, 0, 4, 16, 0.02), RING(NULL, RING, 16, 0.02)};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const bool has_servers = cases[i].servers > 0;
        struct job job = job_of(&cases[i]);
        job.compress.kind = CODEC_INT8;
        compare(&cases[i], &job, 1);
        job.compress.kind = CODEC_NONE;
        job.sync_every = 4;
        assert_true(is_reduced(&cases[i], &job, PREDICTION_ERROR_MAX_ASKED) == has_servers);
        if (has_servers) {
            compare(&cases[i], &job, 1);
        }
        job.sync_every = 1;
        job.backup = cases[i].mode.kind == MODE_PS_SYNC ? 2 : 0;
        if (job.backup > 0) {
            assert_false(is_reduced(&cases[i], &job, PREDICTION_ERROR_MAX));
            compare(&cases[i], &job, 1);
        }
    }
}

/* Messages take so long that delays of a few milliseconds set nobody apart by more than 1 %. */
static void short_delays_of_long_steps_are_reduced_unasked(void **state)
{
    (void)state;
    static const struct case_of_job cases[] = {
        RING(NULL, RING, 16, 0.004), RING(NULL, RING, 32, 0.006), RING(NULL, DIRECT, 16, 0.004)};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct network network;
        struct prediction all, one;
        struct job job = job_of(&cases[i]);
        const struct prediction_extent whole = {3, 10, (double)INFINITY, 0},
                                       reduced = {3, 10, 0, PREDICTION_ERROR_MAX};
        set_costs(cases[i].spread_s);
        costs.message_s = 0.001;
        job.bucket_mb = 1;
        predictions_read_star(&network);
        assert_int_equal(prediction_make(&job, &costs, &network, &whole, &all), STATUS_OK);
        assert_int_equal(prediction_make(&job, &costs, &network, &reduced, &one), STATUS_OK);
        network_finish(&network);
        assert_true(one.is_reduced && !all.is_reduced);
        assert_true(one.reduction_error <= PREDICTION_ERROR_MAX);
        predictions_check("a step", job.workers, one.step_s, all.step_s, one.reduction_error);
    }
}

/* A straggler is a delay, too. */
static void a_straggler_is_a_delay(void **state)
{
    (void)state;
    const struct case_of_job it = RING(NULL, RING, 16, 0);
    struct job job = job_of(&it);
    snprintf(job.straggler, sizeof(job.straggler), "rank=2,factor=2");
    assert_false(is_reduced(&it, &job, PREDICTION_ERROR_MAX));
    compare(&it, &job, 1);
}

/* Links that are shared or slower set workers apart by up to 30 % of a step, and a halving whose
 * hops differ, or in which some are late, by up to 40 %. */
static void what_has_no_bound_is_never_reduced(void **state)
{
    (void)state;
    const struct case_of_job cases[] = {SERVERS(beside, MODE_PS_SYNC, 0, 4, 16, 0),
                                        SERVERS(beside, MODE_PS_ASYNC, 0, 4, 16, 0),
                                        RING(NULL, HALVING, 16, 0.02),
                                        RING(NULL, HALVING, 13, 0),
                                        RING(racks, HALVING, 32, 0),
                                        RING(shared, RING, 32, 0),
                                        RING(mixed, RING, 32, 0),
                                        RING(shared, HALVING, 16, 0),
                                        RING(mixed, HALVING, 16, 0)};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct job job = job_of(&cases[i]);
        assert_false(is_reduced(&cases[i], &job, PREDICTION_ERROR_MAX_ASKED));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_workers_are_reduced_unasked),
        cmocka_unit_test(codes_and_rounds_set_nobody_apart),
        cmocka_unit_test(disturbed_hosts_are_reduced_if_they_are_alike),
        cmocka_unit_test(rounded_buckets_keep_their_all_reduce),
        cmocka_unit_test(other_jobs_are_reduced_if_that_is_asked),
        cmocka_unit_test(backup_workers_codes_and_rounds_keep_the_bounds),
        cmocka_unit_test(short_delays_of_long_steps_are_reduced_unasked),
        cmocka_unit_test(a_straggler_is_a_delay),
        cmocka_unit_test(what_has_no_bound_is_never_reduced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
