/* Tests of samples of workers that all send to all, against jobs in which all are simulated: in
 * racks, with several on a host, and where these share cores. */
#include "deploy/predict/prediction.h"
#include "deploy/predict/sample_direct.h"
#include "tests/support/deploy/predictions.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORKERS 64

#define RACK(name)                                                                            \
    "{\"name\": \"" name "\", \"count\": 16, \"nic\": \"25 Gbit/s\", \"latency\": \"10 us\"," \
    " \"switch\": \"" name "\"}"
#define RACKS(links)                                                                            \
    "{\"switches\": [{\"name\": \"core\"}, {\"name\": \"a\", \"to\": \"core\"" links            \
    "}, {\"name\": \"b\", \"to\": \"core\"" links "}, {\"name\": \"c\", \"to\": \"core\"" links \
    "}, {\"name\": \"d\", \"to\": \"core\"" links                                               \
    "}], \"hosts\": [" RACK("a") "," RACK("b") "," RACK("c") "," RACK("d") "]}"

static const char racks[] = RACKS(", \"latency\": \"30 us\"");
static const char narrow_racks[] = RACKS(", \"latency\": \"30 us\", \"oversubscription\": 4");

/* Four workers on each host, perhaps with cores that they share. */
#define FOURS(more)                                                                       \
    "{\"switches\": [{\"name\": \"s\"}], \"hosts\": [{\"name\": \"h\", \"count\": 16,"    \
    " \"workers\": 4, \"nic\": \"25 Gbit/s\", \"latency\": \"10 us\", \"switch\": \"s\"," \
    " \"memory\": \"20 GB/s\", \"memory-latency\": \"2 us\"" more "}]}"

static const char fours[] = FOURS("");
static const char four_cores[] = FOURS(", \"cores\": 4");
static const char two_cores[] = FOURS(", \"cores\": 2");

/* Connections that are slow by themselves. */
static const char slow[] =
    "{\"flow\": \"1 Gbit/s\", \"switches\": [{\"name\": \"s\"}], \"hosts\": [{\"name\": \"h\","
    " \"count\": 64, \"nic\": \"25 Gbit/s\", \"latency\": \"10 us\", \"switch\": \"s\"}]}";

struct shape {
    const char *network;
    double spread_s, message_s, message_bandwidth, slice_s;
    enum codec_kind codec;
    uint32_t sample;
    double bucket_mb;
};

static struct prediction predict(const struct shape *it, const struct job *job, double work_max)
{
    struct network network;
    struct costs costs;
    struct prediction made;
    const struct prediction_extent extent = {.warm = 1,
                                             .counted = 2,
                                             .work_max = work_max,
                                             .error_max = PREDICTION_ERROR_MAX_ASKED,
                                             .sample_min = it->sample};
    predictions_reset_costs(1000000, &costs);
    costs.layer_count = 2;
    costs.layers[0].forward_s = 0.006;
    costs.layers[0].backward_s = 0.012;
    costs.layers[1] = (struct cost_layer){2000000, 0.003, 0.006};
    costs.optimizer_s = 0.002;
    costs.message_s = it->message_s;
    costs.message_bandwidth = it->message_bandwidth;
    costs.sum_bandwidth = 8e9;
    costs.encode_bandwidth = 2e9;
    costs.decode_bandwidth = 3e9;
    costs.threads = 1;
    costs.crowding = 1.1;
    costs.turns = 1.1;
    costs.slice_s = it->slice_s;
    costs.messages_first = it->slice_s > 0;
    costs.carriage_message_s = 10e-6;
    costs.carriage_bandwidth = 2e9;
    if (it->spread_s > 0) {
        costs.spread = (struct spread){.kind = SPREAD_EXPONENTIAL, .mean_s = it->spread_s};
    }
    predictions_read_network(it->network, &network);
    assert_int_equal(prediction_make(job, &costs, &network, &extent, &made), STATUS_OK);
    network_finish(&network);
    return made;
}

static struct job job_of(const struct shape *it)
{
    struct job job = predictions_job(MODE_RING, WORKERS, 0, ALL_REDUCE_CHOICE_DIRECT);
    job.bucket_mb = it->bucket_mb > 0 ? it->bucket_mb : 8;
    job.compress.kind = it->codec;
    return job;
}

/* By one part of a hundred, or by what the sample says, if that is more. */
static void compare(const struct shape *it)
{
    const struct job job = job_of(it);
    const struct prediction some = predict(it, &job, 0), all = predict(it, &job, (double)INFINITY);
    assert_true(some.is_reduced && some.simulated == it->sample && !all.is_reduced);
    predictions_check("a step", WORKERS, some.step_s, all.step_s, fmax(0.01, some.reduction_error));
    predictions_check("computing", WORKERS, some.compute_s, all.compute_s, 0.01);
    predictions_check("the busiest link", WORKERS, some.busiest_bytes, all.busiest_bytes, 0.05);
}

/* A sample of two racks has more of its messages within these than all have, and links between
 * racks limit them, or do not. */
static void samples_in_racks_agree_with_all_workers(void **state)
{
    (void)state;
    static const struct shape shapes[] = {
        {racks, 0.001, 20e-6, 0, 0, CODEC_NONE, 32},
        {narrow_racks, 0, 20e-6, 0, 0, CODEC_NONE, 32},
        {narrow_racks, 0.001, 1e-6, 0, 0, CODEC_NONE, 32},
        {narrow_racks, 0.02, 20e-6, 0, 0, CODEC_INT8, 32},
    };
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        compare(&shapes[i]);
    }
}

/* Threads handle no bytes of messages within a host, of which a sample has a greater part. */
static void samples_of_shared_hosts_handle_as_many_bytes(void **state)
{
    (void)state;
    static const struct shape shapes[] = {
        {fours, 0.001, 1e-6, 1e9, 0, CODEC_NONE, 16},
        {fours, 0.02, 1e-6, 2e8, 0, CODEC_NONE, 16},
        {fours, 0.001, 1e-6, 1e9, 0, CODEC_INT8, 16},
    };
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        compare(&shapes[i]);
    }
}

/* With many buckets what is handled together is little, and jobs are made so unasked. */
static void samples_of_shared_hosts_agree_where_jobs_are_made_by_them(void **state)
{
    (void)state;
    static const struct shape shapes[] = {
        {fours, 0.001, 20e-6, 4e9, 0, CODEC_NONE, 16, 1},
    };
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        const struct job job = job_of(&shapes[i]);
        const struct prediction made = predict(&shapes[i], &job, 0);
        assert_true(made.is_reduced && made.reduction_error <= PREDICTION_ERROR_MAX);
        compare(&shapes[i]);
    }
}

/* A message that stands for several needs a core for as long as they do. */
static void samples_need_cores_for_as_long_as_all_workers(void **state)
{
    (void)state;
    static const struct shape shapes[] = {
        {four_cores, 0.001, 20e-6, 0, 0, CODEC_NONE, 32},
        {two_cores, 0.02, 1e-6, 1e9, 0, CODEC_NONE, 32},
        {two_cores, 0.001, 20e-6, 0, 0.004, CODEC_NONE, 32},
    };
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        compare(&shapes[i]);
    }
}

/* Of several beside each other each has the limit of one. */
static void samples_have_as_many_connections_as_all_workers(void **state)
{
    (void)state;
    static const struct shape shapes[] = {
        {slow, 0.02, 1e-6, 0, 0, CODEC_NONE, 16},
        {slow, 0.001, 20e-6, 0, 0, CODEC_NONE, 16},
    };
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        compare(&shapes[i]);
    }
}

/* Of 15 others in its rack a worker of the sample has all, and 16 of 48 in others; of 3 on its host
 * all, and 12 of 60 elsewhere. One rack, or one host, is no sample. */
static void messages_stand_for_those_as_far_away(void **state)
{
    (void)state;
    struct network network;
    struct reduction made = {.origins = NULL};
    uint32_t hosts[WORKERS];
    double *each = NULL;
    predictions_read_network(racks, &network);
    assert_int_equal(network_place(&network, WORKERS, 0, hosts), STATUS_OK);
    assert_true(sample_direct_is_complete(&network, WORKERS, hosts, 32));
    assert_false(sample_direct_is_complete(&network, WORKERS, hosts, 16));
    assert_int_equal(sample_direct(&network, WORKERS, hosts, 32, &each, &made), STATUS_OK);
    const double *last = &each[(size_t)31 * SAMPLE_DISTANCES];
    assert_true(each[1] == 1 && each[2] == 3 && last[1] == 1 && last[2] == 3);
    reduction_finish(&made);
    network_finish(&network);
    free(each);

    predictions_read_network(fours, &network);
    assert_int_equal(network_place(&network, WORKERS, 0, hosts), STATUS_OK);
    assert_false(sample_direct_is_complete(&network, WORKERS, hosts, 4));
    assert_int_equal(sample_direct(&network, WORKERS, hosts, 16, &each, &made), STATUS_OK);
    assert_true(each[0] == 1 && each[1] == 5);
    reduction_finish(&made);
    network_finish(&network);
    free(each);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_in_racks_agree_with_all_workers),
        cmocka_unit_test(samples_of_shared_hosts_handle_as_many_bytes),
        cmocka_unit_test(samples_of_shared_hosts_agree_where_jobs_are_made_by_them),
        cmocka_unit_test(samples_need_cores_for_as_long_as_all_workers),
        cmocka_unit_test(samples_have_as_many_connections_as_all_workers),
        cmocka_unit_test(messages_stand_for_those_as_far_away),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
