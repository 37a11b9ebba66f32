/* Jobs whose coordinator is lost before they begin, in virtual time: drawn from seeds.
 *
 * It is killed at any time until the first workers train, with another server or without it, and
 * both are started again. Nothing has been computed that anybody could go on from. So this holds:
 *
 *     it ends         every process that is left ends
 *     it is true      the job completes, on every worker with the parameters of an undisturbed one
 *     it is a start   if nobody had begun, all are in the first generation: nobody goes on from
 *                     anything, and no loss is told of */
#include "tests/sim/cluster.h"
#include "tests/sim/disk.h"
#include "tests/sim/drawing.h"
#include "tests/sim/story.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <string.h>

#define MS_NS     UINT64_C(1000000)
#define SECOND_NS UINT64_C(1000000000)
#define SCENARIOS 240

struct plan {
    uint64_t seed;
    struct cluster_shape shape;
    struct world_costs costs;
    uint64_t at_ns, gap_ns;
    bool with_server; // server 1 is lost, too
};

static struct cluster cluster;
static struct plan plan;
static bool had_begun; // some worker trained before the next one was there

static void come_back(void *data)
{
    (void)data;
    for (uint32_t i = 0; i < plan.shape.workers; i++) {
        had_begun = had_begun || cluster.trainings[i].has_begun; // GO may have been on its way
    }
    story_say("what was killed is started again");
    cluster_return_coordinator(&cluster);
    if (plan.with_server) {
        cluster_start_server(&cluster, 1);
    }
}

static void kill_them(void *data)
{
    (void)data;
    story_say("the coordinator is killed%s", plan.with_server ? " with server 1" : "");
    world_kill(cluster.servers[0]);
    if (plan.with_server) {
        world_kill(cluster.servers[1]);
    }
    world_at(world_now_ns() + plan.gap_ns, come_back, NULL);
}

static struct plan draw_plan(uint64_t seed)
{
    static const char *const modes[] = {"ring", "ps-sync", "ps-ssp:2"};
    struct drawing drawing = {seed * 1000081};
    uint64_t mode = draw(&drawing, 3);
    struct plan drawn = {
        .seed = seed,
        .shape = {.mode = modes[mode],
                  .order = mode == 2 ? "seeded:constant:2" : NULL,
                  .workers = 2 + (uint32_t)draw(&drawing, 3),
                  .servers = mode == 0 ? 0 : 1 + (uint32_t)draw(&drawing, 3),
                  .steps = 20,
                  .value_count = 7 + (uint32_t)draw(&drawing, 40),
                  .bucket_count = 1 + (uint32_t)draw(&drawing, 3),
                  .compute_ns = 1 + draw(&drawing, 20 * MS_NS),
                  .lost_after = 2,
                  .redeals = draw(&drawing, 2) == 0,
                  .outlast = 20},
        .costs = {.latency_ns = 1 + draw(&drawing, MS_NS),
                  .jitter_ns = 1 + draw(&drawing, 2 * MS_NS),
                  .near_ns = 1000},
        .at_ns = 1 + draw(&drawing, draw(&drawing, 2) == 0 ? 3 * MS_NS : 20 * MS_NS),
        .gap_ns = 6 * MS_NS + draw(&drawing, draw(&drawing, 2) == 0 ? 10 * MS_NS : 2 * SECOND_NS),
    };
    drawn.with_server = drawn.shape.servers > 1 && draw(&drawing, 3) > 0;
    return drawn;
}

static void judge(unsigned long long seed)
{
    float expected[SIM_VALUES_MAX];
    if (!cluster.has_verdict || cluster.verdict != STATUS_OK) {
        fail_msg("seed %llu: the job does not complete\n%s", seed, story_text());
    }
    sim_expected(&cluster.job, plan.shape.value_count, plan.shape.steps, expected);
    for (uint32_t i = 0; i < plan.shape.workers; i++) {
        const struct sim_worker *worker = &cluster.trainings[i];
        if (worker->status != STATUS_OK ||
            memcmp(worker->params, expected, plan.shape.value_count * sizeof(float)) != 0) {
            fail_msg("seed %llu: worker %u ends with %s, or with other parameters\n%s", seed, i,
                     status_text(worker->status), story_text());
        }
    }
    if (!had_begun && (cluster.generation > 0 || cluster.restarts > 0)) {
        fail_msg("seed %llu: nobody had begun, and the job has gone on\n%s", seed, story_text());
    }
}

static void a_job_that_has_not_begun_begins_with_the_next_coordinator(void **state)
{
    uint32_t early = 0, together = 0;
    (void)state;
    for (uint64_t seed = 1; seed <= SCENARIOS; seed++) {
        plan = draw_plan(seed);
        had_begun = false;
        story_clear();
        cluster_begin(&cluster, &plan.shape, plan.seed, &plan.costs);
        disk_format();
        world_at(plan.at_ns, kill_them, NULL);
        if (!cluster_run(&cluster, 300 * SECOND_NS)) {
            fail_msg("seed %llu: it does not end\n%s", (unsigned long long)seed, story_text());
        }
        judge(seed);
        early += !had_begun;
        together += plan.with_server;
        world_end();
    }
    print_message("%u jobs had not begun, %u lost a server, too\n", early, together);
    assert_true(early > SCENARIOS / 4 && together > SCENARIOS / 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_that_has_not_begun_begins_with_the_next_coordinator),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
