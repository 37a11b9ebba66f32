/* Tests of predicted jobs with local SGD: an exchange for several steps. */
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

#define BANDWIDTH  1.25e9
#define LATENCY_S  20e-6
#define PARAMETERS UINT64_C(262144)
#define BYTES      (4.0 * (double)PARAMETERS)
#define SUM        2e9

static struct costs costs;

static int reset_costs(void **state)
{
    (void)state;
    predictions_reset_costs(PARAMETERS, &costs);
    return 0;
}

static struct prediction predict(const struct job *job, uint32_t steps)
{
    return predictions_make(job, &costs, 3, steps);
}

static struct job rounds(enum mode_kind mode, uint32_t workers, uint32_t steps)
{
    struct job job =
        predictions_job(mode, workers, mode == MODE_RING ? 0 : 1, ALL_REDUCE_CHOICE_RING);
    job.sync_every = steps;
    return job;
}

/* Each step has the worker's own update. The exchange comes once in K steps, and hides behind
 * nothing; steps that are counted are whole rounds. */
static void an_exchange_is_shared_by_its_steps(void **state)
{
    (void)state;
    const uint32_t n = 8;
    costs.layers[0].forward_s = 0.01;
    costs.layers[0].backward_s = 0.02;
    costs.optimizer_s = 0.005;
    double ring_s = 2.0 * (n - 1) / n * BYTES / BANDWIDTH + 2.0 * (n - 1) * LATENCY_S;
    double sync_s = 2 * n * BYTES / BANDWIDTH + 2 * LATENCY_S;
    for (uint32_t steps = 2; steps <= 32; steps *= 4) {
        const struct job ring = rounds(MODE_RING, n, steps), sync = rounds(MODE_PS_SYNC, n, steps);
        const struct prediction made = predict(&ring, 5);
        predictions_check("ring", n, made.step_s, 0.035 + ring_s / steps, 1e-4);
        predictions_check("optimizer", n, made.optimizer_s, 0.005, 1e-9);
        predictions_check("ps-sync", n, predict(&sync, 5).step_s, 0.035 + sync_s / steps, 1e-4);
    }
}

/* Means of changes are added: by each worker, or by a server behind the sum of N. */
static void mean_changes_are_added(void **state)
{
    (void)state;
    const uint32_t n = 4, steps = 8;
    struct job ring = rounds(MODE_RING, n, steps), sync = rounds(MODE_PS_SYNC, n, steps);
    double before_s = predict(&ring, 8).step_s, add_s = BYTES / SUM;
    double sync_before_s = predict(&sync, 8).step_s;
    costs.sum_bandwidth = SUM;
    predictions_check("ring", n, predict(&ring, 8).step_s - before_s,
                      ((n - 1.0) / n * add_s + add_s) / steps, 1e-3);
    predictions_check("ps-sync", n, predict(&sync, 8).step_s - sync_before_s,
                      (n * add_s + add_s) / steps, 1e-3);
}

/* In shared memory sums and means follow once in K steps, too. */
static void workers_of_one_host_do_the_same(void **state)
{
    (void)state;
    const uint32_t n = 4, steps = 8;
    const struct network usual = predictions_star;
    predictions_read_network("{\"switches\": [{\"name\": \"s\"}], \"hosts\": [{\"name\": \"h\","
                             " \"workers\": 4, \"nic\": \"1 Gbit/s\", \"latency\": \"10 us\","
                             " \"switch\": \"s\"}]}",
                             &predictions_star);
    costs.layers[0].backward_s = 0.02;
    costs.optimizer_s = 0.005;
    costs.sum_bandwidth = SUM;
    struct job job = rounds(MODE_RING, n, steps);
    job.all_reduce = ALL_REDUCE_CHOICE_AUTO;
    double sums_s = BYTES * (n - 1) / n / SUM + BYTES / SUM;
    predictions_check("a step", n, predict(&job, 8).step_s, 0.025 + sums_s / steps, 1e-6);
    network_finish(&predictions_star);
    predictions_star = usual;
}

/* Draws of a worker's steps add up before anybody waits: the expected maximum of N sums of K
 * exponential times, by the distribution of Erlang. */
static double maximum_of_sums(uint32_t workers, uint32_t steps)
{
    const double width = 1e-3;
    double expected = 0;
    for (uint32_t at = 0; at < 60000; at++) {
        double t = (at + 0.5) * width;
        double term = exp(-t), below = 1;
        for (uint32_t i = 0; i < steps; i++) {
            below -= term;
            term *= t / (i + 1);
        }
        expected += width * (1 - pow(below, workers));
    }
    return expected;
}

static void delays_of_a_round_add_up_first(void **state)
{
    (void)state;
    const uint32_t n = 16;
    costs.layers[0].parameters = 64;
    costs.spread = (struct spread){.kind = SPREAD_EXPONENTIAL, .mean_s = 1};
    for (uint32_t steps = 1; steps <= 16; steps *= 4) {
        const struct job ring = rounds(MODE_RING, n, steps), sync = rounds(MODE_PS_SYNC, n, steps);
        double want = maximum_of_sums(n, steps) / steps;
        uint32_t counted = steps < 16 ? 8000 : 32000;
        predictions_check("ring", n, predict(&ring, counted).step_s, want, 1e-2);
        predictions_check("ps-sync", n, predict(&sync, counted).step_s, want, 1e-2);
    }
}

/* Staleness counts exchanges, and the images are those of all steps. */
static void unsynchronised_workers_push_once_a_round(void **state)
{
    (void)state;
    const uint32_t n = 8, steps = 4;
    costs.layers[0] = (struct cost_layer){64, 0, 1};
    costs.spread = (struct spread){.kind = SPREAD_EXPONENTIAL, .mean_s = 1};
    struct job job = rounds(MODE_PS_ASYNC, n, steps);
    const struct prediction made = predict(&job, 2000);
    predictions_check("staleness", n, staleness_mean(&made.staleness), n - 1, 1e-2);
    predictions_check("gradients", n, (double)made.staleness.total, n * 2000.0 / steps, 1e-2);
    predictions_check("images/s", n, made.images_per_s, 32 * n / 2.0, 1e-2);
}

/* Alone there is nobody to be in step with. */
static void one_worker_makes_plain_steps(void **state)
{
    (void)state;
    costs.layers[0].backward_s = 0.02;
    costs.optimizer_s = 0.005;
    costs.sum_bandwidth = SUM;
    const struct job job = rounds(MODE_RING, 1, 8);
    predictions_check("a step", 1, predict(&job, 4).step_s, 0.025, 1e-9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(an_exchange_is_shared_by_its_steps, reset_costs),
        cmocka_unit_test_setup(mean_changes_are_added, reset_costs),
        cmocka_unit_test_setup(workers_of_one_host_do_the_same, reset_costs),
        cmocka_unit_test_setup(delays_of_a_round_add_up_first, reset_costs),
        cmocka_unit_test_setup(unsynchronised_workers_push_once_a_round, reset_costs),
        cmocka_unit_test_setup(one_worker_makes_plain_steps, reset_costs),
    };
    return cmocka_run_group_tests(tests, predictions_open_star, predictions_close_star);
}
