/* Jobs in which a connection between two members breaks that both live, in virtual time: drawn from
 * seeds. Then this holds:
 *
 *     it ends      long before --stall-fail
 *     it is true   the job completes, on every worker with the parameters of an undisturbed one
 *     it is just   nobody is lost: the same processes begin one generation more
 *
 * SIM_SCENARIOS is how many of each kind are drawn. */
#include "tests/sim/cluster.h"
#include "tests/sim/drawing.h"
#include "tests/sim/network.h"
#include "tests/sim/sim_gradients.h"
#include "tests/sim/story.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MS_NS     UINT64_C(1000000)
#define SECOND_NS UINT64_C(1000000000)
#define SCENARIOS 60

// Job and recovery take a few seconds, and --stall-fail is 20.
#define END_NS (15 * SECOND_NS)

static struct cluster cluster;
static bool has_broken; // while all workers trained

static bool all_train(void)
{
    for (uint32_t i = 0; i < cluster.shape.workers; i++) {
        if (cluster.trainings[i].step == 0 || cluster.trainings[i].is_over) {
            return false;
        }
    }
    return !cluster.has_verdict;
}

static bool is_coordinators; // one of its connections breaks

/* Between the first worker and the next one, or the last server, or the coordinator. */
static void break_it(void *data)
{
    (void)data;
    const struct cluster_shape *shape = &cluster.shape;
    const struct sim_process *process = cluster.workers[0];
    uint32_t last = is_coordinators ? 0 : shape->is_apart ? shape->servers : shape->servers - 1;
    const struct sim_process *other =
        shape->servers == 0 ? cluster.workers[1] : cluster.servers[last];
    has_broken = all_train();
    story_say("the connections between %s and %s break", process->name, other->name);
    network_break(world_network(), process->host, other->host);
}

static void judge(uint64_t seed, bool has_ended)
{
    float expected[SIM_VALUES_MAX];
    const struct cluster_shape *shape = &cluster.shape;
    if (!has_ended || !cluster.has_verdict || cluster.verdict != STATUS_OK) {
        story_fail(seed, "the job does not complete in time");
    }
    if (cluster.workers_lost > 0 || cluster.generation > 1 ||
        (has_broken && cluster.generation != 1)) {
        story_fail(seed, "%u workers are lost, in generation %u", cluster.workers_lost,
                   cluster.generation);
    }
    if (is_coordinators && has_broken && strstr(cluster.loss, "connection was closed") == NULL) {
        story_fail(seed, "the reason is: %s", cluster.loss);
    }
    sim_expected(&cluster.job, shape->value_count, shape->steps, expected);
    for (uint32_t i = 0; i < shape->workers; i++) {
        const struct sim_worker *worker = &cluster.trainings[i];
        if (worker->status != STATUS_OK ||
            memcmp(worker->params, expected, shape->value_count * sizeof(float)) != 0) {
            story_fail(seed, "worker %u ends with %s, or other parameters", i,
                       status_text(worker->status));
        }
    }
}

static void run_all(const char *mode, const char *all_reduce, bool is_apart)
{
    const char *wanted = getenv("SIM_SCENARIOS");
    uint64_t count = wanted != NULL ? strtoull(wanted, NULL, 10) : SCENARIOS, broken = 0;
    for (uint64_t seed = 1; seed <= count; seed++) {
        struct drawing drawing = {seed};
        const struct cluster_shape shape = {
            .mode = mode,
            .all_reduce = all_reduce,
            .workers = 2 + (uint32_t)draw(&drawing, 3),
            .servers = strcmp(mode, "ring") == 0 ? 0 : 2,
            .steps = 200,
            .value_count = 7 + (uint32_t)draw(&drawing, 40),
            .bucket_count = 1 + (uint32_t)draw(&drawing, 3),
            .compute_ns = 10 * MS_NS,
            .lost_after = 2,
            .redeals = true,
            .is_apart = is_apart,
            .outlast = is_apart || is_coordinators ? 20 : 0,
        };
        const struct world_costs costs = {.latency_ns = 1 + draw(&drawing, MS_NS),
                                          .jitter_ns = 1 + draw(&drawing, MS_NS),
                                          .near_ns = 1000};
        story_clear();
        has_broken = false;
        cluster_begin(&cluster, &shape, seed, &costs);
        world_at(100 * MS_NS + draw(&drawing, 1500 * MS_NS), break_it, NULL);
        judge(seed, cluster_run(&cluster, END_NS));
        broken += has_broken;
        world_end();
    }
    print_message("%llu of %llu jobs were in training\n", (unsigned long long)broken,
                  (unsigned long long)count);
    assert_true(broken > count / 2);
}

static void of_a_ring_both_workers_stay(void **state)
{
    (void)state;
    run_all("ring", "ring", false);
}

static void of_the_direct_all_reduce_both_workers_stay(void **state)
{
    (void)state;
    run_all("ring", "direct", false);
}

static void of_a_worker_and_a_server_both_stay(void **state)
{
    (void)state;
    run_all("ps-sync", NULL, false);
    run_all("ps-sync", NULL, true);
}

/* The coordinator has shard 0, and was not away. */
static void of_a_worker_and_the_coordinator_both_stay(void **state)
{
    (void)state;
    is_coordinators = true;
    run_all("ps-sync", NULL, false);
    is_coordinators = false;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_a_ring_both_workers_stay),
        cmocka_unit_test(of_the_direct_all_reduce_both_workers_stay),
        cmocka_unit_test(of_a_worker_and_a_server_both_stay),
        cmocka_unit_test(of_a_worker_and_the_coordinator_both_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
