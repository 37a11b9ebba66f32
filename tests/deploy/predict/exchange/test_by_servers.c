/* Tests of predicted jobs with backup workers: the first gradients of a version make the update. */
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

#define LATENCY_S 20e-6

static struct costs costs;

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

static struct job backed_up(uint32_t workers, uint32_t servers, uint32_t backup)
{
    struct job job = predictions_job(MODE_PS_SYNC, workers, servers, ALL_REDUCE_CHOICE_AUTO);
    job.backup = backup;
    return job;
}

/* From the state in which `stale` workers compute gradients that come too late, and `done` ones
 * have been taken for the update. */
struct chain {
    double updates_s, late;
};

/* Workers that compute for exponential times of 1 s do not know how long they have computed. With
 * `running` of them the next one is done after 1/running; it goes on with the newest version if its
 * gradient was stale, and waits otherwise. At an update B are running, whose gradients are stale
 * now. */
static struct chain reckon(uint32_t workers, uint32_t backup, uint32_t stale, uint32_t done)
{
    if (done == workers - backup) {
        return (struct chain){0, 0};
    }
    double running = workers - done, fresh = running - stale;
    struct chain made = {1 / running, 0};
    if (stale > 0) {
        const struct chain next = reckon(workers, backup, stale - 1, done);
        made.updates_s += stale / running * next.updates_s;
        made.late += stale / running * (1 + next.late);
    }
    if (fresh > 0) {
        const struct chain next = reckon(workers, backup, stale, done + 1);
        made.updates_s += fresh / running * next.updates_s;
        made.late += fresh / running * next.late;
    }
    return made;
}

static void updates_come_as_the_markov_chain_has_them(void **state)
{
    (void)state;
    const uint32_t n = 8;
    costs.spread = (struct spread){.kind = SPREAD_EXPONENTIAL, .mean_s = 1};
    for (uint32_t backup = 1; backup <= 4; backup *= 2) {
        const struct job job = backed_up(n, 1, backup);
        const struct chain want = reckon(n, backup, backup, 0);
        const struct prediction made = predict(&job, 20000);
        predictions_check("an update", n, made.step_s, want.updates_s, 1e-2);
        predictions_check("images/s", n, made.images_per_s, (n - backup) * 32 / want.updates_s,
                          1e-2);
        predictions_check("late", n, made.late, want.late / (want.late + n - backup), 2e-2);
        assert_int_equal(made.staleness.max, 0);
        assert_int_equal(made.staleness.total, 20000 * (n - backup));
    }
}

/* Nobody waits for the one that is slow, and half of its gradients would come at all. */
static void a_slow_worker_costs_nothing(void **state)
{
    (void)state;
    costs.layers[0].backward_s = 1;
    struct job job = backed_up(8, 1, 1);
    snprintf(job.straggler, sizeof(job.straggler), "rank=3,factor=2.5");
    const struct prediction made = predict(&job, 100);
    predictions_check("a step", 8, made.step_s, 1, 1e-3);
    predictions_check("images/s", 8, made.images_per_s, 7 * 32, 1e-3);
    predictions_check("late", 8, made.late, 1 / 2.5 / (1 / 2.5 + 7), 5e-2);
    job.backup = 0;
    predictions_check("all", 8, predict(&job, 20).step_s, 2.5, 1e-3);
}

/* With equal workers the last ones are late by nothing, and go on with the newest version. */
static void the_update_waits_for_the_first_ones(void **state)
{
    (void)state;
    const uint32_t n = 8, backup = 2;
    costs.layers[0].parameters = 1;
    costs.message_s = 1e-3;
    costs.sum_bandwidth = 400; // a float in 10 ms
    costs.optimizer_s = 0.1;
    const struct job job = backed_up(n, 1, backup);
    // Sums and the update are made at once; then the rest comes, and all are answered.
    double want = (n - backup) * 0.01 + 0.1 + 2 * n * 1e-3;
    const struct prediction made = predict(&job, 50);
    predictions_check("a step", n, made.step_s, want, 0.05);
}

/* Workers go on with one version of all servers, which take what comes in nearly the same order. */
static void servers_agree_on_a_version(void **state)
{
    (void)state;
    const uint32_t n = 8;
    costs.layers[0].parameters = 6400;
    costs.spread = (struct spread){.kind = SPREAD_EXPONENTIAL, .mean_s = 1};
    const struct job job = backed_up(n, 4, 2);
    const struct chain want = reckon(n, 2, 2, 0);
    const struct prediction made = predict(&job, 8000);
    predictions_check("an update", n, made.step_s, want.updates_s, 1e-2);
    predictions_check("late", n, made.late, want.late / (want.late + n - 2), 3e-2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(updates_come_as_the_markov_chain_has_them, reset_costs),
        cmocka_unit_test_setup(a_slow_worker_costs_nothing, reset_costs),
        cmocka_unit_test_setup(the_update_waits_for_the_first_ones, reset_costs),
        cmocka_unit_test_setup(servers_agree_on_a_version, reset_costs),
    };
    return cmocka_run_group_tests(tests, predictions_open_star, predictions_close_star);
}
