/* Tests of predicted jobs in ps-ssp and ps-async: staleness, queues at servers, and bounds. */
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

#define BANDWIDTH 1.25e9
#define LATENCY_S 20e-6

static struct costs costs;

/* Of one layer whose gradients take next to no time on the network. */
static int reset_costs(void **state)
{
    (void)state;
    predictions_reset_costs(64, &costs);
    return 0;
}

static struct prediction predict(const struct job *job, uint32_t steps)
{
    return predictions_make(job, &costs, 20, steps);
}

static struct prediction predict_mode(struct mode mode, uint32_t workers, uint32_t steps)
{
    struct job job = predictions_job(mode.kind, workers, 1, ALL_REDUCE_CHOICE_AUTO);
    job.mode = mode;
    return predict(&job, steps);
}

/* A worker reads when its own gradient was applied. So each of the others' gradients is between a
 * read and the application that follows it exactly once for each of the N - 1 other workers, and c
 * gradients are one update: the mean staleness is (N-1)/c, whatever the speed of each. */
static void test_mean_staleness(void **state)
{
    (void)state;
    costs.spread = (struct spread){.kind = SPREAD_EXPONENTIAL, .mean_s = 1};
    for (uint32_t n = 2; n <= 16; n *= 2) {
        for (uint32_t c = 1; c <= n; c *= 2) {
            struct job job = predictions_job(MODE_PS_ASYNC, n, 2, ALL_REDUCE_CHOICE_AUTO);
            job.gradients_per_update = c;
            snprintf(job.straggler, sizeof(job.straggler), "rank=1,factor=2");
            costs.layers[0].backward_s = 1;
            const struct prediction made = predict(&job, 1000);
            predictions_check("mean staleness", n, staleness_mean(&made.staleness), (n - 1.0) / c,
                              1e-2);
        }
    }
}

/* With the same speed each gradient comes after one of each other worker. */
static void test_lockstep_staleness(void **state)
{
    (void)state;
    costs.layers[0].backward_s = 1;
    const struct prediction made = predict_mode((struct mode){MODE_PS_ASYNC, 0}, 8, 20);
    assert_int_equal(made.staleness.counts[7], 8 * 20);
    assert_int_equal(made.staleness.total, 8 * 20);
}

/* How many gradients a server handles in a row until it is idle: M/G/1 with N sources that each
 * wait an exponential time, Takacs 1962. B is the transform of the service, which takes D.
 *
 *     M = sum over n < N of C(N-1, n) times the product over i = 1 ... n of (1 - B(i l)) / B(i l)
 *
 * Between such times it is idle for 1/(N l). So it handles M in each 1/(N l) + M D. */
static double rate_of_queue(uint32_t n, double service_s, double rate)
{
    double handled = 0, term = 1;
    for (uint32_t i = 0; i < n; i++) {
        handled += term;
        double transform = exp(-service_s * rate * (i + 1));
        term *= (n - 1.0 - i) / (i + 1.0) * (1 - transform) / transform;
    }
    return handled / (1 / (n * rate) + handled * service_s);
}

/* Workers compute for exponential times, and the server's updates take constant ones. By Little's
 * law a worker's step takes N / rate: what is more than its computing and the update is the wait.
 */
static void test_queue(void **state)
{
    (void)state;
    const uint32_t n = 16;
    costs.spread = (struct spread){.kind = SPREAD_EXPONENTIAL, .mean_s = 1};
    for (uint32_t fifths = 2; fifths <= 6; fifths += 2) {
        costs.optimizer_s = fifths / 5.0 / n; // a load of 0.4, 0.8, 1.2
        double rate = rate_of_queue(n, costs.optimizer_s, 1);
        double wait_s = n / rate - 1 - costs.optimizer_s;
        const struct prediction made = predict_mode((struct mode){MODE_PS_ASYNC, 0}, n, 8000);
        predictions_check("gradients per second", n, made.images_per_s / 32, rate, 1e-2);
        predictions_check("wait for the server", n, made.server_wait_s, wait_s, 2e-2);
        predictions_check("the server", n, made.server_busy, rate * costs.optimizer_s, 1e-2);
    }
}

/* With one bucket and updates that take no time, nothing sets them apart. */
static void test_no_slack(void **state)
{
    (void)state;
    costs.layers[0] = (struct cost_layer){262144, 0.01, 0.02};
    costs.message_s = 1e-5;
    costs.spread = (struct spread){.kind = SPREAD_UNIFORM, .least_s = 0, .most_s = 0.01};
    for (uint32_t n = 1; n <= 64; n *= 4) {
        double want = predict_mode((struct mode){MODE_PS_SYNC, 0}, n, 50).step_s;
        const struct prediction made = predict_mode((struct mode){MODE_PS_SSP, 0}, n, 50);
        predictions_check("ps-ssp:0", n, made.step_s, want, 1e-9);
        // All read the same version, and the i-th gradient comes after i - 1 others.
        predictions_check("staleness", n, staleness_mean(&made.staleness), (n - 1) / 2.0, 1e-2);
    }
}

/* Nobody waits: each worker has its own step, of computing and two ways. */
static void test_nothing_shared(void **state)
{
    (void)state;
    costs.layers[0].backward_s = 1;
    struct job job = predictions_job(MODE_PS_ASYNC, 8, 2, ALL_REDUCE_CHOICE_AUTO);
    predictions_check("images/s", 8, predict(&job, 200).images_per_s, 32 * 8 / (1 + 2 * LATENCY_S),
                      1e-3);
    snprintf(job.straggler, sizeof(job.straggler), "rank=3,factor=2.5");
    predictions_check("images/s", 8, predict(&job, 200).images_per_s, 32 * (7 + 1 / 2.5), 1e-2);
}

/* A server's updates and messages are what all gradients go through. */
static void test_saturated(void **state)
{
    (void)state;
    costs.layers[0].backward_s = 0.01;
    costs.optimizer_s = 0.004;
    costs.message_s = 0.0005;
    const struct prediction made = predict_mode((struct mode){MODE_PS_ASYNC, 0}, 16, 200);
    predictions_check("updates and messages", 16, made.images_per_s, 32 / 0.005, 1e-3);
    predictions_check("the server", 16, made.server_busy, 1, 1e-3);
}

/* Pushes share the way into a server, and replies that out of it, like jobs share a processor. Such
 * queues depend on means alone (Baskett, Chandy, Muntz and Palacios 1975), and mean value analysis
 * (Reiser and Lavenberg 1980) is exact: with n workers each way takes S/B (1 + those that are there
 * with n - 1 workers). */
static double rate_of_links(uint32_t workers, double think_s, double way_s)
{
    double rate = 0, there = 0;
    for (uint32_t n = 1; n <= workers; n++) {
        double stay_s = way_s * (1 + there);
        rate = n / (think_s + 2 * stay_s);
        there = rate * stay_s;
    }
    return rate;
}

static void test_links(void **state)
{
    (void)state;
    const uint32_t n = 16;
    costs.layers[0].parameters = 1 << 20;
    double way_s = (4 << 20) / BANDWIDTH;
    for (uint32_t halves = 1; halves <= 8; halves *= 2) {
        double think_s = n * way_s / (halves / 2.0);
        costs.spread = (struct spread){.kind = SPREAD_EXPONENTIAL, .mean_s = think_s};
        double rate = rate_of_links(n, think_s + 2 * LATENCY_S, way_s);
        const struct prediction made = predict_mode((struct mode){MODE_PS_ASYNC, 0}, n, 4000);
        predictions_check("gradients per second", n, made.images_per_s / 32, rate, 1e-2);
        predictions_check("a link", n, made.busiest_use, rate * way_s, 1e-2);
    }
}

/* With slack S nobody computes more than S steps before the slowest, and no gradient is older than
 * 2S + 1 updates of each of the others: S steps behind when it read, S + 1 before when it came.
 * A straggler makes everybody use all of the slack. */
static void test_slack(void **state)
{
    (void)state;
    const uint32_t n = 8;
    costs.spread = (struct spread){.kind = SPREAD_PARETO, .least_s = 1, .shape = 1.2};
    double before = 0;
    for (uint32_t slack = 0; slack <= 8; slack += 2) {
        const struct prediction made = predict_mode((struct mode){MODE_PS_SSP, slack}, n, 400);
        assert_int_equal(made.lead_max, slack);
        assert_true(made.staleness.max <= (n - 1) * (2 * (uint64_t)slack + 1));
        assert_true(made.images_per_s > before);
        before = made.images_per_s;
    }
    const struct prediction free = predict_mode((struct mode){MODE_PS_ASYNC, 0}, n, 400);
    assert_true(free.images_per_s > before);
    assert_true(free.lead_max > 8);
}

static void test_seed(void **state)
{
    (void)state;
    costs.spread = (struct spread){.kind = SPREAD_EXPONENTIAL, .mean_s = 1};
    struct job job = predictions_job(MODE_PS_SSP, 8, 2, ALL_REDUCE_CHOICE_AUTO);
    job.mode.slack_steps = 2;
    const struct prediction first = predict(&job, 20), second = predict(&job, 20);
    assert_memory_equal(&first.step_s, &second.step_s, sizeof(first.step_s));
    assert_memory_equal(&first.staleness, &second.staleness, sizeof(first.staleness));
    job.seed++;
    assert_true(predict(&job, 20).step_s != first.step_s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_mean_staleness, reset_costs),
        cmocka_unit_test_setup(test_lockstep_staleness, reset_costs),
        cmocka_unit_test_setup(test_queue, reset_costs),
        cmocka_unit_test_setup(test_no_slack, reset_costs),
        cmocka_unit_test_setup(test_nothing_shared, reset_costs),
        cmocka_unit_test_setup(test_saturated, reset_costs),
        cmocka_unit_test_setup(test_links, reset_costs),
        cmocka_unit_test_setup(test_slack, reset_costs),
        cmocka_unit_test_setup(test_seed, reset_costs),
    };
    return cmocka_run_group_tests(tests, predictions_open_star, predictions_close_star);
}
