/* Tests of jobs in which some workers stand for all, against those in which all are simulated. */
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
#include <stdio.h>
#include <string.h>

static const char star[] =
    "{\"switches\": [{\"name\": \"s\"}], \"hosts\": [{\"name\": \"h\", \"count\": 128,"
    " \"nic\": \"25 Gbit/s\", \"latency\": \"10 us\", \"switch\": \"s\"}, {\"name\": \"p\","
    " \"count\": 8, \"workers\": 0, \"servers\": 1, \"nic\": \"25 Gbit/s\","
    " \"latency\": \"10 us\", \"switch\": \"s\"}]}";

/* As star, with links that let bytes pass at once. */
static const char bursting[] =
    "{\"switches\": [{\"name\": \"s\"}], \"hosts\": [{\"name\": \"h\", \"count\": 128,"
    " \"nic\": \"25 Gbit/s\", \"latency\": \"10 us\", \"switch\": \"s\", \"burst-kib\": 64},"
    " {\"name\": \"p\", \"count\": 8, \"workers\": 0, \"servers\": 1,"
    " \"nic\": \"25 Gbit/s\", \"latency\": \"10 us\", \"switch\": \"s\"}]}";

/* Servers that wait for workers. */
static const char wide[] =
    "{\"switches\": [{\"name\": \"s\"}], \"hosts\": [{\"name\": \"h\", \"count\": 128,"
    " \"nic\": \"100 Gbit/s\", \"latency\": \"5 us\", \"switch\": \"s\"}, {\"name\": \"p\","
    " \"count\": 8, \"workers\": 0, \"servers\": 1, \"nic\": \"1.6 Tbit/s\","
    " \"latency\": \"5 us\", \"switch\": \"s\"}]}";

/* Four workers on each host, which share its link and its cores. */
static const char cores[] =
    "{\"switches\": [{\"name\": \"s\"}], \"hosts\": [{\"name\": \"h\", \"count\": 32,"
    " \"workers\": 4, \"cores\": 4, \"nic\": \"25 Gbit/s\", \"latency\": \"10 us\","
    " \"switch\": \"s\", \"memory\": \"20 GB/s\", \"memory-latency\": \"2 us\"}, {\"name\": \"p\","
    " \"count\": 8, \"workers\": 0, \"servers\": 1, \"cores\": 4, \"nic\": \"25 Gbit/s\","
    " \"latency\": \"10 us\", \"switch\": \"s\"}]}";

/* Likewise, but with fewer cores than workers, which they have by slices. */
static const char slices[] =
    "{\"switches\": [{\"name\": \"s\"}], \"hosts\": [{\"name\": \"h\", \"count\": 32,"
    " \"workers\": 4, \"cores\": 2, \"nic\": \"25 Gbit/s\", \"latency\": \"10 us\","
    " \"switch\": \"s\", \"memory\": \"20 GB/s\", \"memory-latency\": \"2 us\"}, {\"name\": \"p\","
    " \"count\": 8, \"workers\": 0, \"servers\": 1, \"cores\": 2, \"nic\": \"25 Gbit/s\","
    " \"latency\": \"10 us\", \"switch\": \"s\"}]}";

/* Servers on the hosts of the workers. */
static const char beside[] =
    "{\"switches\": [{\"name\": \"s\"}], \"hosts\": [{\"name\": \"h\", \"count\": 64,"
    " \"workers\": 2, \"nic\": \"25 Gbit/s\", \"latency\": \"10 us\", \"switch\": \"s\"}]}";

/* Each worker has a host to itself, and servers run beside the first of them. */
static const char bare[] =
    "{\"switches\": [{\"name\": \"s\"}], \"hosts\": [{\"name\": \"h\", \"count\": 128,"
    " \"nic\": \"10 Gbit/s\", \"latency\": \"25 us\", \"switch\": \"s\"}]}";

/* Hosts with two places each, but for some. */
static const char unlike[] =
    "{\"switches\": [{\"name\": \"s\"}], \"hosts\": [{\"name\": \"h\", \"count\": 10,"
    " \"nic\": \"25 Gbit/s\", \"latency\": \"10 us\", \"switch\": \"s\"}, {\"name\": \"q\","
    " \"count\": 60, \"workers\": 2, \"nic\": \"25 Gbit/s\", \"latency\": \"10 us\","
    " \"switch\": \"s\"}, {\"name\": \"p\", \"count\": 4, \"workers\": 0, \"servers\": 1,"
    " \"nic\": \"25 Gbit/s\", \"latency\": \"10 us\", \"switch\": \"s\"}]}";

/* Fast hosts, then as many slow ones with two places, and servers between them. */
static const char classes[] =
    "{\"switches\": [{\"name\": \"s\"}], \"hosts\": [{\"name\": \"h\", \"count\": 64,"
    " \"nic\": \"25 Gbit/s\", \"latency\": \"10 us\", \"switch\": \"s\"}, {\"name\": \"p\","
    " \"count\": 8, \"workers\": 0, \"servers\": 1, \"nic\": \"25 Gbit/s\","
    " \"latency\": \"10 us\", \"switch\": \"s\"}, {\"name\": \"q\", \"count\": 32,"
    " \"workers\": 2, \"nic\": \"10 Gbit/s\", \"latency\": \"20 us\", \"switch\": \"s\"}]}";

/* Four racks of eight. */
static const char racks[] =
    "{\"switches\": [{\"name\": \"core\"}, {\"name\": \"a\", \"to\": \"core\"},"
    "{\"name\": \"b\", \"to\": \"core\"}, {\"name\": \"c\", \"to\": \"core\"},"
    "{\"name\": \"d\", \"to\": \"core\"}], \"hosts\": ["
    "{\"name\": \"a\", \"count\": 8, \"nic\": \"25 Gbit/s\", \"latency\": \"10 us\","
    " \"switch\": \"a\"}, {\"name\": \"b\", \"count\": 8, \"nic\": \"25 Gbit/s\","
    " \"latency\": \"10 us\", \"switch\": \"b\"}, {\"name\": \"c\", \"count\": 8,"
    " \"nic\": \"25 Gbit/s\", \"latency\": \"10 us\", \"switch\": \"c\"}, {\"name\": \"d\","
    " \"count\": 8, \"nic\": \"25 Gbit/s\", \"latency\": \"10 us\", \"switch\": \"d\"},"
    "{\"name\": \"s\", \"count\": 4, \"workers\": 0, \"servers\": 1,"
    " \"nic\": \"25 Gbit/s\", \"latency\": \"10 us\", \"switch\": \"core\"}]}";

struct case_of_job {
    const char *network;
    struct mode mode;
    enum all_reduce_choice choice;
    uint32_t servers, workers;
    double spread_s, message_s;
    uint32_t steps, sample;
    bool is_compared; // with another prediction
    double slower;    // layers are, by this part
};

static void set_costs(const struct case_of_job *it, struct costs *costs)
{
    memset(costs, 0, sizeof(*costs));
    costs->batch = 32;
    costs->layer_count = 4;
    costs->layers[0] = (struct cost_layer){1000000, 0.006, 0.012};
    costs->layers[1] = (struct cost_layer){6000000, 0.005, 0.010};
    costs->layers[2] = (struct cost_layer){0, 0.001, 0.001};
    costs->layers[3] = (struct cost_layer){2000000, 0.001, 0.002};
    for (uint32_t i = 0; i < costs->layer_count; i++) {
        costs->layers[i].forward_s *= 1 + it->slower;
        costs->layers[i].backward_s *= 1 + it->slower;
    }
    costs->optimizer_s = it->message_s * 100;
    costs->message_s = it->message_s;
    costs->sum_bandwidth = 8e9;
    costs->encode_bandwidth = 2e9;
    costs->decode_bandwidth = 3e9;
    if (it->network == cores || it->network == slices) {
        costs->slice_s = it->network == slices ? 0.004 : 0;
        costs->messages_first = it->network == slices && it->servers == 0;
        costs->threads = 1;
        costs->crowding = 1.1;
        costs->turns = 1.1;
        costs->input_s = 0.003;
        costs->carriage_message_s = 10e-6;
        costs->carriage_bandwidth = 2e9;
    }
    if (it->spread_s > 0) {
        costs->spread = (struct spread){.kind = SPREAD_EXPONENTIAL, .mean_s = it->spread_s};
    }
}

static void predict(const struct case_of_job *it, const struct job *job, double work_max,
                    struct prediction *ret_prediction)
{
    struct network network;
    struct costs costs;
    const struct prediction_extent extent = {
        3, it->steps, work_max, PREDICTION_ERROR_MAX_ASKED, it->sample, it->is_compared};
    set_costs(it, &costs);
    predictions_read_network(it->network, &network);
    assert_int_equal(prediction_make(job, &costs, &network, &extent, ret_prediction), STATUS_OK);
    network_finish(&network);
}

static struct job job_of(const struct case_of_job *it)
{
    struct job job = predictions_job(it->mode.kind, it->workers, it->servers, it->choice);
    job.mode = it->mode;
    job.bucket_mb = 4;
    return job;
}

/* By a part of a step, or by what the sample says, if that is more. */
static void compare(const struct case_of_job *it, const struct job *job, double part)
{
    struct prediction all, some;
    predict(it, job, (double)INFINITY, &all);
    predict(it, job, 0, &some);
    assert_true(some.is_reduced && some.simulated == it->sample && !all.is_reduced);
    assert_int_equal(some.simulated_servers, job->servers);
    predictions_check("a step", job->workers, some.step_s, all.step_s,
                      fmax(part, some.reduction_error));
    predictions_check("bytes of a link", job->workers, some.busiest_bytes, all.busiest_bytes, 0.05);
    predictions_check("computing", job->workers, some.compute_s, all.compute_s, 0.01);
    predictions_check("staleness", job->workers, staleness_mean(&some.staleness),
                      staleness_mean(&all.staleness), 0.01);
}

#define RING(network, choice, spread_s, message_s, sample)                                         \
    {                                                                                              \
        network, {MODE_RING, 0}, ALL_REDUCE_CHOICE_##choice, 0, 64, spread_s, message_s, 5, sample \
    }
#define SERVERS(network, mode, slack, servers, workers, spread_s, message_s, steps, sample)    \
    {                                                                                          \
        network, {mode, slack}, ALL_REDUCE_CHOICE_AUTO, servers, workers, spread_s, message_s, \
            steps, sample                                                                      \
    }

/* Each of a quarter of them; of hosts with four places, halving needs half. */
static void some_workers_stand_for_all_where_they_wait(void **state)
{
    (void)state;
    static const struct case_of_job cases[] = {
        RING(star, RING, 0.001, 20e-6, 16),
        RING(star, RING, 0.02, 20e-6, 16),
        RING(wide, RING, 0.001, 1e-6, 16),
        RING(wide, RING, 0.02, 1e-6, 16),
        RING(cores, RING, 0, 20e-6, 16),
        RING(cores, RING, 0.001, 20e-6, 16),
        RING(star, HALVING, 0.001, 20e-6, 16),
        RING(star, HALVING, 0.02, 20e-6, 16),
        RING(wide, HALVING, 0.001, 1e-6, 16),
        RING(wide, HALVING, 0.02, 1e-6, 16),
        RING(cores, HALVING, 0, 20e-6, 32),
        RING(cores, HALVING, 0.001, 20e-6, 32),
        SERVERS(star, MODE_PS_SYNC, 0, 4, 64, 0, 20e-6, 5, 16),
        SERVERS(star, MODE_PS_SYNC, 0, 4, 64, 0.02, 20e-6, 5, 16),
        SERVERS(wide, MODE_PS_SYNC, 0, 4, 64, 0.001, 1e-6, 10, 16),
        SERVERS(wide, MODE_PS_SYNC, 0, 4, 64, 0.02, 1e-6, 10, 16),
        SERVERS(cores, MODE_PS_SYNC, 0, 1, 64, 0.001, 20e-6, 5, 16),
        SERVERS(cores, MODE_PS_SYNC, 0, 2, 64, 0.001, 20e-6, 5, 16),
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct job job = job_of(&cases[i]);
        compare(&cases[i], &job, 0.01);
    }
}

/* Half of them: the fewer race, the less they have ready for servers. */
static void some_workers_stand_for_all_where_they_race(void **state)
{
    (void)state;
    static const struct case_of_job cases[] = {
        SERVERS(star, MODE_PS_ASYNC, 0, 2, 128, 0.001, 20e-6, 60, 64),
        SERVERS(wide, MODE_PS_ASYNC, 0, 2, 128, 0.001, 1e-6, 60, 64),
        SERVERS(wide, MODE_PS_ASYNC, 0, 2, 128, 0.02, 1e-6, 60, 64),
        SERVERS(cores, MODE_PS_ASYNC, 0, 2, 128, 0.001, 20e-6, 60, 64),
        SERVERS(star, MODE_PS_SSP, 2, 2, 128, 0.001, 20e-6, 60, 64),
        SERVERS(wide, MODE_PS_SSP, 2, 2, 128, 0, 1e-6, 60, 64),
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct job job = job_of(&cases[i]);
        compare(&cases[i], &job, 0.01);
    }
}

/* A worker of the sample has its host's cores as in the whole job: what stands for several is on
 * the hosts of servers, or does not wait for slices. */
static void samples_wait_for_slices_as_all_do(void **state)
{
    (void)state;
    static const struct case_of_job cases[] = {
        RING(slices, RING, 0, 20e-6, 16),
        RING(slices, RING, 0.001, 20e-6, 16),
        SERVERS(slices, MODE_PS_SYNC, 0, 1, 64, 0.001, 20e-6, 5, 16),
        SERVERS(slices, MODE_PS_SYNC, 0, 2, 64, 0.02, 20e-6, 5, 16),
        SERVERS(slices, MODE_PS_ASYNC, 0, 2, 128, 0.001, 20e-6, 60, 64),
        SERVERS(slices, MODE_PS_SSP, 2, 2, 128, 0.001, 20e-6, 60, 64),
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct job job = job_of(&cases[i]);
        compare(&cases[i], &job, 0.01);
    }
}

/* Long delays decide who has which slice, and so does any difference of costs: if layers take
 * 0.01 % longer or less, a step of all workers may change by more than 1 %. So the mean of such
 * jobs is compared. */
static void samples_wait_for_slices_as_all_do_in_the_mean(void **state)
{
    (void)state;
    struct case_of_job it = RING(slices, RING, 0.02, 20e-6, 16);
    const struct job job = job_of(&it);
    double all_s = 0, some_s = 0;
    for (int i = -4; i <= 4; i++) {
        struct prediction all, some;
        it.slower = i * 1e-4;
        predict(&it, &job, (double)INFINITY, &all);
        predict(&it, &job, 0, &some);
        assert_true(some.is_reduced && some.simulated == it.sample && !all.is_reduced);
        all_s += all.step_s;
        some_s += some.step_s;
    }
    predictions_check("steps", job.workers, some_s, all_s, 0.01);
}

/* Codes, rounds, and a straggler. */
static void samples_have_what_jobs_have(void **state)
{
    (void)state;
    static const struct case_of_job cases[] = {
        RING(star, RING, 0.001, 20e-6, 16),
        {star, {MODE_RING, 0}, ALL_REDUCE_CHOICE_DIRECT, 0, 32, 0.001, 20e-6, 1, 8},
        SERVERS(star, MODE_PS_SYNC, 0, 4, 64, 0.001, 20e-6, 5, 16),
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct job job = job_of(&cases[i]);
        job.compress.kind = CODEC_INT8;
        compare(&cases[i], &job, 0.01);
        job.compress.kind = CODEC_NONE;
        job.sync_every = 4;
        compare(&cases[i], &job, 0.01);
        job.sync_every = 1;
        snprintf(job.straggler, sizeof(job.straggler), "rank=%u,factor=2", job.workers * 5 / 8);
        compare(&cases[i], &job, 0.01);
    }
}

/* Servers beside workers need the links of their hosts for themselves. */
static void some_workers_stand_for_all_beside_servers(void **state)
{
    (void)state;
    static const struct case_of_job cases[] = {
        SERVERS(bare, MODE_PS_SYNC, 0, 1, 128, 0, 20e-6, 5, 32),
        SERVERS(bare, MODE_PS_SYNC, 0, 2, 128, 0, 20e-6, 5, 64),
        SERVERS(bare, MODE_PS_SYNC, 0, 2, 128, 0.02, 20e-6, 5, 32),
        SERVERS(bare, MODE_PS_SYNC, 0, 2, 128, 0.02, 1e-6, 5, 64),
        SERVERS(bare, MODE_PS_ASYNC, 0, 2, 128, 0.001, 20e-6, 120, 64),
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct job job = job_of(&cases[i]);
        compare(&cases[i], &job, 0.01);
    }
}

/* In ps-ssp a sample beside servers is too far off for a point (other_jobs_have_no_sample), but not
 * to see what a cost changes. */
static void some_stand_for_all_beside_servers_where_jobs_are_compared(void **state)
{
    (void)state;
    static const struct case_of_job cases[] = {
        SERVERS(bare, MODE_PS_SSP, 2, 2, 128, 0.001, 20e-6, 4, 64),
        SERVERS(bare, MODE_PS_SSP, 2, 2, 128, 0.02, 1e-6, 4, 64),
        SERVERS(bare, MODE_PS_SSP, 2, 1, 128, 0, 20e-6, 4, 32),
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct case_of_job it = cases[i];
        struct prediction all, some;
        const struct job job = job_of(&it);
        predict(&it, &job, (double)INFINITY, &all);
        it.is_compared = true;
        predict(&it, &job, 0, &some);
        assert_true(some.is_reduced && some.simulated == it.sample && !all.is_reduced);
        predictions_check("a step", (uint32_t)i, some.step_s, all.step_s, some.reduction_error);
    }
}

/* One of four backup workers, or none of one. Who is slower on purpose is always late. */
static void updates_come_with_the_same_worker_of_a_sample(void **state)
{
    (void)state;
    static const struct case_of_job cases[] = {
        SERVERS(star, MODE_PS_SYNC, 0, 2, 64, 0, 20e-6, 5, 16),
        SERVERS(star, MODE_PS_SYNC, 0, 2, 64, 0.02, 20e-6, 10, 16),
        SERVERS(wide, MODE_PS_SYNC, 0, 2, 64, 0.001, 1e-6, 10, 16),
        SERVERS(wide, MODE_PS_SYNC, 0, 2, 64, 0.02, 1e-6, 20, 16),
        SERVERS(cores, MODE_PS_SYNC, 0, 1, 64, 0.001, 20e-6, 5, 16),
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct job job = job_of(&cases[i]);
        job.backup = 4;
        compare(&cases[i], &job, 0.01);
        snprintf(job.straggler, sizeof(job.straggler), "rank=40,factor=2");
        compare(&cases[i], &job, 0.01);
        job.backup = 1;
        compare(&cases[i], &job, 0.01);
    }
}

/* Classes of hosts, of each of which it has the same part. */
static void samples_have_a_part_of_each_class_of_hosts(void **state)
{
    (void)state;
    static const struct case_of_job cases[] = {
        {classes, {MODE_RING, 0}, ALL_REDUCE_CHOICE_RING, 0, 128, 0, 20e-6, 5, 32},
        {classes, {MODE_RING, 0}, ALL_REDUCE_CHOICE_RING, 0, 128, 0.02, 20e-6, 5, 32},
        SERVERS(classes, MODE_PS_SYNC, 0, 4, 128, 0, 20e-6, 5, 32),
        SERVERS(classes, MODE_PS_SYNC, 0, 4, 128, 0.02, 20e-6, 10, 32),
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct job job = job_of(&cases[i]);
        compare(&cases[i], &job, 0.01);
    }
}

/* What is late in samples is so in proportion. */
static void samples_count_what_all_do(void **state)
{
    (void)state;
    struct case_of_job it = SERVERS(star, MODE_PS_SYNC, 0, 2, 64, 0.001, 20e-6, 10, 16);
    struct prediction all, some;
    struct job job = job_of(&it);
    for (uint32_t backup = 1; backup <= 4; backup += 3) {
        job.backup = backup;
        predict(&it, &job, (double)INFINITY, &all);
        predict(&it, &job, 0, &some);
        predictions_check("late", 64, some.late, all.late, 0.1);
    }
}

/* A sample of one rack, or of one host. */
static void other_direct_jobs_have_no_sample(void **state)
{
    (void)state;
    static const struct case_of_job cases[] = {
        {racks, {MODE_RING, 0}, ALL_REDUCE_CHOICE_DIRECT, 0, 16, 0.001, 20e-6, 1, 8},
        {beside, {MODE_RING, 0}, ALL_REDUCE_CHOICE_DIRECT, 0, 8, 0.001, 20e-6, 1, 2},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct job job = job_of(&cases[i]);
        struct prediction made;
        predict(&cases[i], &job, 0, &made);
        assert_true(made.simulated == job.workers || made.simulated == 1);
    }
}

/* Servers beside workers that wait for the slowest of some steps, or are not far more; hosts that
 * cannot be cut into equal parts, ranks of a class that are slower on purpose, links with bursts,
 * and rounds with backup workers. */
static void other_jobs_have_no_sample(void **state)
{
    (void)state;
    struct case_of_job it = SERVERS(beside, MODE_PS_ASYNC, 0, 4, 64, 0.001, 20e-6, 2, 16);
    struct prediction made;
    struct job job = job_of(&it);
    predict(&it, &job, 0, &made);
    assert_int_equal(made.simulated, 64);
    it = (struct case_of_job)SERVERS(bare, MODE_PS_SSP, 2, 2, 128, 0.001, 20e-6, 2, 64);
    job = job_of(&it);
    predict(&it, &job, 0, &made);
    assert_int_equal(made.simulated, 128);
    it.mode.kind = MODE_PS_SYNC;
    job = job_of(&it);
    job.backup = 4;
    predict(&it, &job, 0, &made);
    assert_int_equal(made.simulated, 128);
    it = (struct case_of_job)SERVERS(unlike, MODE_PS_ASYNC, 0, 4, 64, 0.001, 20e-6, 2, 16);
    job = job_of(&it);
    predict(&it, &job, 0, &made);
    assert_int_equal(made.simulated, 64);
    it.network = bursting;
    predict(&it, &job, 0, &made);
    assert_int_equal(made.simulated, 64);
    it.network = classes;
    job.workers = it.workers = 128;
    snprintf(job.straggler, sizeof(job.straggler), "rank=40,factor=2");
    predict(&it, &job, 0, &made);
    assert_int_equal(made.simulated, 128);
    it = (struct case_of_job)SERVERS(star, MODE_PS_SYNC, 0, 4, 64, 0.001, 20e-6, 4, 16);
    job = job_of(&it);
    job.backup = 4;
    job.sync_every = 2;
    predict(&it, &job, 0, &made);
    assert_int_equal(made.simulated, 64);
}

/* Racks that come again: the sample has two of them, and they their share of what is above. */
static void samples_are_of_whole_racks(void **state)
{
    (void)state;
    struct network network;
    uint32_t hosts[36];
    predictions_read_network(racks, &network);
    assert_int_equal(network_place(&network, 32, 4, hosts), STATUS_OK);
    assert_int_equal(sample_find(&network, 32, 4, hosts, 5, REDUCTION_SYNC), 16);
    assert_int_equal(sample_find(&network, 32, 0, hosts, 5, REDUCTION_RING), 16);
    assert_int_equal(sample_find(&network, 32, 4, hosts, 17, REDUCTION_SYNC), 0);
    struct reduction made = {.origins = NULL};
    assert_int_equal(sample_servers(&network, 32, 4, 16, hosts, &made), STATUS_OK);
    const struct network_host *first = &network.hosts[hosts[0]],
                              *server = &network.hosts[hosts[32]];
    uint32_t rack = network.switches[first->above].up;
    assert_true(made.scales[first->up] == 1 && made.scales[rack] == 1);
    assert_true(made.scales[server->down] == 2 && made.scales[server->up] == 2);
    assert_true(made.network.links[server->down].bandwidth ==
                network.links[server->down].bandwidth / 2);
    reduction_finish(&made);
    network_finish(&network);
}

/* A distance of the sample stays, another is an odd number of eighths. */
static void other_distances_stand_for_those_round_the_sample(void **state)
{
    (void)state;
    assert_int_equal(sample_distance(64, 1), 1);
    assert_int_equal(sample_distance(64, 32), 32);
    assert_int_equal(sample_distance(64, 64), 24);
    assert_int_equal(sample_distance(64, 128), 40);
    for (uint32_t distance = 64; distance < 16384; distance *= 2) {
        assert_true(sample_distance(64, distance) % 16 == 8);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(some_workers_stand_for_all_where_they_wait),
        cmocka_unit_test(some_workers_stand_for_all_where_they_race),
        cmocka_unit_test(some_workers_stand_for_all_beside_servers),
        cmocka_unit_test(some_stand_for_all_beside_servers_where_jobs_are_compared),
        cmocka_unit_test(samples_wait_for_slices_as_all_do),
        cmocka_unit_test(samples_wait_for_slices_as_all_do_in_the_mean),
        cmocka_unit_test(samples_have_what_jobs_have),
        cmocka_unit_test(updates_come_with_the_same_worker_of_a_sample),
        cmocka_unit_test(samples_have_a_part_of_each_class_of_hosts),
        cmocka_unit_test(samples_count_what_all_do),
        cmocka_unit_test(other_direct_jobs_have_no_sample),
        cmocka_unit_test(other_jobs_have_no_sample),
        cmocka_unit_test(samples_are_of_whole_racks),
        cmocka_unit_test(other_distances_stand_for_those_round_the_sample),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
