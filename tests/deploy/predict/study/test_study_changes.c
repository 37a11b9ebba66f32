/* Tests of points that take long: what limits them is found in small, with few workers. */
#include "deploy/predict/study/study.h"
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

#define BUCKETS 4
#define FEW     64 // workers that stand for all
#define MANY    256

struct shape {
    double layer_s; // each has a bucket; forward, and half of backward
    double message_s, sum_bandwidth, spread_s, gigabits, latency_s;
    uint32_t workers, per_host;
    enum all_reduce_choice choice;
    const char *limiter;
    uint32_t cores, racks; // of a host; of all hosts. 0: none
    uint32_t servers;      // in ps-ssp, beside workers; 0: a ring
};

static struct costs costs_of(const struct shape *it)
{
    struct costs costs;
    predictions_reset_costs(1, &costs);
    costs.layer_count = BUCKETS;
    for (uint32_t i = 0; i < BUCKETS; i++) {
        costs.layers[i] = (struct cost_layer){262144, it->layer_s, 2 * it->layer_s};
    }
    costs.optimizer_s = 1e-3;
    costs.message_s = it->message_s;
    costs.sum_bandwidth = it->sum_bandwidth;
    if (it->spread_s > 0) {
        costs.spread = (struct spread){.kind = SPREAD_EXPONENTIAL, .mean_s = it->spread_s};
    }
    return costs;
}

/* Hosts below one switch, or in racks whose links carry half of what their hosts do. */
static void write_network(const struct shape *it, char *text, size_t size)
{
    uint32_t groups = it->racks > 0 ? it->racks : 1;
    size_t used = (size_t)snprintf(text, size, "{\"switches\": [{\"name\": \"s0\"}");
    char more[32] = "";
    if (it->cores > 0) {
        snprintf(more, sizeof(more), ", \"cores\": %u", it->cores);
    } else if (it->servers > 0) {
        snprintf(more, sizeof(more), ", \"servers\": 1");
    }
    for (uint32_t i = 1; i <= it->racks; i++) {
        used +=
            (size_t)snprintf(text + used, size - used,
                             ", {\"name\": \"s%u\", \"to\": \"s0\", \"oversubscription\": 2}", i);
    }
    for (uint32_t i = 0; i < groups; i++) {
        used += (size_t)snprintf(
            text + used, size - used,
            "%s{\"name\": \"h%u-\", \"count\": %u, \"workers\": %u, \"nic\": \"%g Gbit/s\","
            " \"latency\": \"%g us\", \"switch\": \"s%u\"%s}",
            i > 0 ? ", " : "], \"hosts\": [", i, it->workers / it->per_host / groups, it->per_host,
            it->gigabits, 1e6 * it->latency_s, it->racks > 0 ? i + 1 : 0, more);
    }
    assert_true(used + 3 < size);
    snprintf(text + used, size - used, "]}");
}

/* A point, with changes of it looked at in a sample of so many; 0: of as many as unasked. */
static struct study_point find(const struct shape *it, uint32_t sample)
{
    struct study *study = calloc(1, sizeof(*study));
    struct network network;
    char text[4096];
    const struct costs costs = costs_of(it);
    assert_non_null(study);
    write_network(it, text, sizeof(text));
    predictions_read_network(text, &network);
    study->costs_file = study->network_file = "a file";
    study->costs = &costs;
    study->network = &network;
    struct mode mode = {.kind = MODE_RING};
    if (it->servers > 0) {
        mode = (struct mode){.kind = MODE_PS_SSP, .slack_steps = 2};
    }
    study->job = predictions_job(mode.kind, it->workers, it->servers, it->choice);
    study->job.bucket_mb = 1;
    study->counted = 1;
    study->change_sample = sample;
    study->is_approximate = it->choice == ALL_REDUCE_CHOICE_DIRECT;
    study->designs[0] = (struct study_design){mode, it->servers};
    study->workers[0] = it->workers;
    study->design_count = study->worker_count = 1;
    study_cross(study);
    assert_int_equal(study_make(study), STATUS_OK);
    const struct study_point found = study->points[0];
    study_finish(study);
    free(study);
    network_finish(&network);
    return found;
}

/* Two samples, each of which may be off by what it says, name the same cost. */
static void few_workers_show_the_limiter_that_many_show(void **state)
{
    (void)state;
    static const struct shape shapes[] = {
        {2e-3, 2e-5, 4e9, 1e-3, 25, 1e-5, 512, 1, ALL_REDUCE_CHOICE_HALVING, "compute"},
        {1e-4, 2e-5, 4e9, 1e-3, 10, 1e-5, 512, 1, ALL_REDUCE_CHOICE_HALVING, "bandwidth"},
        {1e-4, 1e-3, 4e9, 1e-3, 25, 1e-5, 512, 1, ALL_REDUCE_CHOICE_HALVING, "messages"},
        {1e-4, 2e-5, 4e9, 1e-4, 100, 2e-3, 512, 1, ALL_REDUCE_CHOICE_HALVING, "latency"},
        {1e-4, 2e-5, 1e8, 1e-3, 25, 1e-5, 512, 1, ALL_REDUCE_CHOICE_HALVING, "sums"},
        {1e-3, 2e-5, 4e9, 5e-3, 25, 1e-5, 512, 1, ALL_REDUCE_CHOICE_HALVING, "delays"},
        {1e-4, 2e-5, 4e9, 0, 10, 1e-5, 512, 1, ALL_REDUCE_CHOICE_HALVING, "bandwidth"},
        {2e-3, 2e-5, 4e9, 1e-3, 10, 1e-5, 512, 8, ALL_REDUCE_CHOICE_HALVING, "bandwidth"},
        {2e-3, 2e-5, 4e9, 1e-3, 25, 1e-5, 512, 1, ALL_REDUCE_CHOICE_AUTO, "compute"},
    };
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        const struct study_point few = find(&shapes[i], 0), many = find(&shapes[i], MANY);
        assert_string_equal(many.limiter, shapes[i].limiter);
        assert_string_equal(few.limiter, many.limiter);
        assert_true(fabs(few.limiter_gain - many.limiter_gain) <= few.limiter_error);
        // Another sample is no other point.
        assert_memory_equal(&few.made.step_s, &many.made.step_s, sizeof(few.made.step_s));
        assert_false(few.made.is_reduced);
    }
}

/* Unasked they are few, and what they say they may be off by is what few are. */
static void limiters_of_long_points_are_found_with_few_workers(void **state)
{
    (void)state;
    static const struct shape it = {
        2e-3, 2e-5, 4e9, 1e-3, 25, 1e-5, 512, 1, ALL_REDUCE_CHOICE_HALVING, "compute"};
    const struct study_point unasked = find(&it, 0), few = find(&it, FEW), many = find(&it, MANY);
    assert_memory_equal(&unasked.limiter_gain, &few.limiter_gain, sizeof(few.limiter_gain));
    assert_memory_equal(&unasked.limiter_error, &few.limiter_error, sizeof(few.limiter_error));
    assert_true(few.limiter_error > many.limiter_error);
}

/* Where so few have no bound, more have, and not all are simulated. */
static void long_delays_take_a_larger_sample(void **state)
{
    (void)state;
    static const struct shape it = {
        1e-3, 2e-5, 4e9, 3e-2, 25, 1e-5, 512, 1, ALL_REDUCE_CHOICE_HALVING, "delays"};
    const struct study_point unasked = find(&it, 0);
    assert_string_equal(unasked.limiter, "delays");
    assert_true(unasked.limiter_error > 0 && unasked.limiter_error <= PREDICTION_ERROR_MAX_ASKED);
}

/* Workers that send to all, in racks and with cores, where a sample of theirs is larger. */
static void a_few_of_those_that_send_to_all_show_the_limiter_that_more_show(void **state)
{
    (void)state;
    static const struct shape shapes[] = {
        {1e-3, 2e-5, 4e9, 1e-4, 25, 1e-5, 128, 8, ALL_REDUCE_CHOICE_DIRECT, "messages", 8, 0},
        {1e-4, 2e-5, 4e9, 1e-4, 25, 1e-5, 128, 1, ALL_REDUCE_CHOICE_DIRECT, "messages", 0, 8},
    };
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        const struct study_point few = find(&shapes[i], 0), many = find(&shapes[i], FEW);
        assert_string_equal(many.limiter, shapes[i].limiter);
        assert_string_equal(few.limiter, many.limiter);
        assert_true(fabs(few.limiter_gain - many.limiter_gain) <= few.limiter_error);
        assert_memory_equal(&few.made.step_s, &many.made.step_s, sizeof(many.made.step_s));
        assert_int_equal(few.made.simulated, FEW); // the point itself takes no fewer
        if (i == 0) {
            const struct study_point asked = find(&shapes[i], FEW / 2);
            assert_memory_equal(&few.limiter_gain, &asked.limiter_gain, sizeof(few.limiter_gain));
            assert_true(few.limiter_gain != many.limiter_gain);
        }
    }
}

/* Servers on hosts of workers, in ps-ssp: no sample stands for all there, but it does to compare.
 */
static void a_sample_shows_the_limiter_where_servers_run_beside_workers(void **state)
{
    (void)state;
    static const struct shape shapes[] = {
        {1e-4, 2e-5, 4e9, 1e-3, 10, 1e-5, 512, 1, ALL_REDUCE_CHOICE_AUTO, "bandwidth", 0, 0, 4},
        {1e-4, 1e-4, 4e9, 1e-3, 100, 1e-5, 512, 1, ALL_REDUCE_CHOICE_AUTO, "messages", 0, 0, 4},
    };
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        const struct study_point few = find(&shapes[i], 0), many = find(&shapes[i], MANY);
        assert_string_equal(many.limiter, shapes[i].limiter);
        assert_string_equal(few.limiter, many.limiter);
        assert_true(few.limiter_error > 0 && !few.made.is_reduced);
        assert_true(fabs(few.limiter_gain - many.limiter_gain) <= few.limiter_error);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(few_workers_show_the_limiter_that_many_show),
        cmocka_unit_test(long_delays_take_a_larger_sample),
        cmocka_unit_test(limiters_of_long_points_are_found_with_few_workers),
        cmocka_unit_test(a_few_of_those_that_send_to_all_show_the_limiter_that_more_show),
        cmocka_unit_test(a_sample_shows_the_limiter_where_servers_run_beside_workers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
