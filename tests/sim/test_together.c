/* Jobs in virtual time, drawn from seeds, that lose their coordinator and, at that time or soon
 * after, other members. A launcher starts the coordinator again, and tells it which members have
 * ended. Or the coordinator stands still for longer than members wait for it, and goes on. Some
 * jobs have lost a worker long before, others so shortly before that the process which was started
 * in its place asks to join when the coordinator is lost. Then this holds of a job:
 *
 *     it ends       within seconds, though --lost-after is longer: it waits for no ended member
 *     it is true    the job completes, on every worker that is left with the parameters of an
 *                   undisturbed one
 *     it is frugal  nobody is lost who was not killed
 *
 * SIM_SCENARIOS is how many are drawn, SIM_SEED the first one's seed. */
#include "tests/sim/cluster.h"
#include "tests/sim/disk.h"
#include "tests/sim/drawing.h"
#include "tests/sim/sim_gradients.h"
#include "tests/sim/sim_launcher.h"
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
#define SCENARIOS 200
#define ABSENCES  30 // which take longer: members say for minutes that they are there

#define LOST_AFTER UINT64_C(60) // seconds
#define STEPS      100
#define MOST_NS    (10 * MS_NS) // of a step
// All steps made anew from the first, after each of the losses, with pauses before restarts.
#define END_NS (15 * SECOND_NS)

struct plan {
    uint64_t seed;
    struct cluster_shape shape;
    struct world_costs costs;
    uint64_t look_ns;       // after which the launcher looks again
    uint64_t at_ns, gap_ns; // when the coordinator is killed, and its pause until it returns
    bool is_stopped;        // it is stopped instead, and goes on after that
    uint32_t victims[2];    // numbers in the cluster; 0: nobody else
    uint64_t victim_ns[2];  // when they are killed
    uint32_t early;         // a worker that is killed before all this; 0: none is
    uint64_t early_ns;      // when it is killed
    uint32_t restarts;
    uint64_t late_ns; // that what the launcher says is on its way
};

static struct plan plan;
static struct cluster cluster;
static struct sim_launcher launcher;
static bool is_fair; // all trained when the coordinator was killed
static uint32_t workers_killed;

static void kill_member(void *data)
{
    struct sim_process *process = cluster_process(&cluster, (uint32_t)(uintptr_t)data);
    if (process->state != PROCESS_ENDED && !cluster.has_verdict) {
        story_say("%s is killed", process->name);
        workers_killed += (uint32_t)(uintptr_t)data >= job_ps_count(&cluster.job);
        world_kill(process);
    }
}

static void kill_later(uint32_t number, uint64_t at_ns)
{
    // NOLINTNEXTLINE(performance-no-int-to-ptr): a number
    world_at(at_ns, kill_member, (void *)(uintptr_t)number);
}

/* All that are left train, or have before a loss that they go on from. */
static void look_whether_fair(void *data)
{
    (void)data;
    is_fair = !cluster.has_verdict;
    for (uint32_t i = 0; i < plan.shape.workers; i++) {
        const struct sim_worker *worker = &cluster.trainings[i];
        bool is_killed = cluster.workers[i]->is_killed;
        bool is_early = plan.early == job_ps_count(&cluster.job) + i; // it may be back by now
        is_fair = is_fair && (is_killed || is_early || (worker->step > 0 && !worker->is_over));
    }
}

static struct plan draw_plan(uint64_t seed)
{
    static const char *const modes[] = {"ring", "ps-sync", "ps-ssp:2"};
    struct drawing drawing = {seed * 1000187};
    uint64_t mode = draw(&drawing, 3);
    struct plan drawn = {
        .seed = seed,
        .shape = {.mode = modes[mode],
                  .order = mode == 2 ? "seeded:constant:2" : NULL,
                  .workers = 3 + (uint32_t)draw(&drawing, 2),
                  .servers = mode == 0 ? 0 : 2 + (uint32_t)draw(&drawing, 2),
                  .steps = STEPS,
                  .value_count = 7 + (uint32_t)draw(&drawing, 40),
                  .bucket_count = 1 + (uint32_t)draw(&drawing, 3),
                  .compute_ns = 1 + draw(&drawing, MOST_NS),
                  .lost_after = LOST_AFTER,
                  .redeals = true,
                  .min_workers = 1,
                  .checkpoint_every = 3,
                  .keep = 2,
                  .outlast = LOST_AFTER},
        .costs = {.latency_ns = 1 + draw(&drawing, MS_NS),
                  .jitter_ns = 1 + draw(&drawing, 2 * MS_NS),
                  .near_ns = 1000},
        .look_ns = 1 + draw(&drawing, 5 * MS_NS),
        .at_ns = 150 * MS_NS + draw(&drawing, 300 * MS_NS),
        .gap_ns = 1 + draw(&drawing, draw(&drawing, 2) == 0 ? 10 * MS_NS : 500 * MS_NS),
        .restarts = draw(&drawing, 2) == 0 ? 0 : (uint32_t)draw(&drawing, 4),
    };
    drawn.shape.is_apart = mode > 0 && draw(&drawing, 2) == 0;
    uint32_t servers = mode == 0 ? 1 : drawn.shape.servers + drawn.shape.is_apart;
    uint32_t others = servers - 1 + drawn.shape.workers;
    drawn.victims[0] = 1 + (uint32_t)draw(&drawing, others);
    if (draw(&drawing, 2) == 0) {
        drawn.victims[1] = 1 + (uint32_t)draw(&drawing, others);
    }
    for (uint32_t i = 0; i < 2; i++) {
        uint64_t around_ns = draw(&drawing, 2) == 0 ? 10 * MS_NS : 400 * MS_NS;
        drawn.victim_ns[i] = drawn.at_ns + draw(&drawing, around_ns);
        if (draw(&drawing, 2) == 0) { // or sooner: the others join anew meanwhile
            drawn.victim_ns[i] -= around_ns < drawn.at_ns ? draw(&drawing, around_ns) : 0;
        }
    }
    if (drawn.shape.workers == 4 && draw(&drawing, 2) == 0) {
        drawn.early = servers + (uint32_t)draw(&drawing, 4);
        drawn.early_ns = 200 * MS_NS;
        drawn.at_ns += SECOND_NS;
        drawn.victim_ns[0] += SECOND_NS;
        drawn.victim_ns[1] += SECOND_NS;
    }
    drawn.late_ns = draw(&drawing, 2) == 0 ? 1 + draw(&drawing, 700 * MS_NS) : 0;
    return drawn;
}

/* Of a job whose coordinator has no shard: the others train on, and come back. */
static struct plan draw_stopped(uint64_t seed)
{
    struct drawing drawing = {seed * 1000193};
    struct plan drawn = draw_plan(seed);
    drawn.shape.mode = "ps-sync";
    drawn.shape.order = NULL;
    drawn.shape.servers = 2;
    drawn.shape.workers = 4;
    drawn.shape.is_apart = true;
    drawn.is_stopped = true;
    drawn.restarts = 0; // who is started meanwhile asks in vain, and may be gone when that is heard
    drawn.shape.compute_ns = 8 * MS_NS + draw(&drawing, 2 * MS_NS);
    drawn.shape.steps = 2 * STEPS;
    drawn.at_ns = 600 * MS_NS + draw(&drawing, 300 * MS_NS);
    drawn.gap_ns = 2 * LOST_AFTER * SECOND_NS + draw(&drawing, SECOND_NS);
    drawn.late_ns = 1 + draw(&drawing, 2 * SECOND_NS); // so that the others are back before
    drawn.early = draw(&drawing, 4) == 0 ? 0 : 3 + (uint32_t)draw(&drawing, 4);
    drawn.early_ns = 200 * MS_NS;
    for (uint32_t i = 0; i < 2; i++) {
        bool is_one = i == 0 || drawn.victims[i] > 0;
        drawn.victims[i] = is_one ? 1 + (uint32_t)draw(&drawing, 6) : 0;
        drawn.victim_ns[i] = drawn.at_ns + drawn.gap_ns - draw(&drawing, SECOND_NS);
    }
    return drawn;
}

/* A worker is lost, and started again half a second later. When it asks to join, or is about to,
 * the coordinator and another worker are killed at once. */
static struct plan draw_joining(uint64_t seed)
{
    static const char *const modes[] = {"ring", "ps-sync", "ps-ssp:2", "ps-async"};
    struct drawing drawing = {seed * 1000199};
    struct plan drawn = draw_plan(seed);
    uint64_t mode = draw(&drawing, 4);
    drawn.shape.mode = modes[mode];
    drawn.shape.order = NULL;
    drawn.shape.workers = 4;
    drawn.shape.servers = mode == 0 ? 0 : 2;
    drawn.shape.is_apart = mode > 0;
    drawn.shape.compute_ns = 8 * MS_NS + draw(&drawing, 2 * MS_NS);
    drawn.shape.steps = 2 * STEPS;
    drawn.restarts = 1 + (uint32_t)draw(&drawing, 4);
    uint32_t first = mode == 0 ? 1 : 3;
    uint64_t early = draw(&drawing, 4), other = (early + 1 + draw(&drawing, 3)) % 4;
    drawn.early = first + (uint32_t)early;
    drawn.early_ns = 200 * MS_NS + draw(&drawing, 100 * MS_NS);
    drawn.at_ns = drawn.early_ns + 450 * MS_NS + draw(&drawing, 300 * MS_NS);
    drawn.victims[0] = first + (uint32_t)other;
    drawn.victims[1] = 0;
    drawn.victim_ns[0] = drawn.at_ns + draw(&drawing, 10 * MS_NS);
    return drawn;
}

/* One that was killed may have begun again, and found no place. */
static bool is_victim(uint32_t rank)
{
    uint32_t number = job_ps_count(&cluster.job) + rank;
    return plan.early == number || plan.victims[0] == number || plan.victims[1] == number;
}

static void judge(uint64_t ended_ns)
{
    float expected[SIM_VALUES_MAX];
    if (!cluster.has_verdict || cluster.verdict != STATUS_OK) {
        story_fail(plan.seed, "the job does not complete");
    }
    if (ended_ns > plan.at_ns + plan.gap_ns + END_NS) {
        story_fail(plan.seed, "somebody has waited for who had ended");
    }
    // The coordinator before had counted the early loss, and no file here tells the next one of it.
    uint32_t most = workers_killed - (plan.early > 0 && !plan.is_stopped);
    if (cluster.workers_lost > most) {
        story_fail(plan.seed, "%u workers are lost, of %u", cluster.workers_lost, most);
    }
    sim_expected(&cluster.job, plan.shape.value_count, plan.shape.steps, expected);
    for (uint32_t i = 0; i < plan.shape.workers; i++) {
        const struct sim_worker *worker = &cluster.trainings[i];
        if (is_victim(i) && (cluster.workers[i]->is_killed || worker->status != STATUS_OK)) {
            continue;
        }
        if (worker->status != STATUS_OK) {
            story_fail(plan.seed, "worker %u ends with %s", i, status_text(worker->status));
        }
        if (memcmp(worker->params, expected, plan.shape.value_count * sizeof(float)) != 0) {
            story_fail(plan.seed, "worker %u ends with other parameters", i);
        }
    }
}

/* Whether all servers are lost. No job goes on without them. */
static bool loses_servers(void)
{
    uint32_t servers = job_ps_count(&cluster.job) - 1; // beside the coordinator
    bool are_both = plan.victims[0] <= 2 && plan.victims[1] > 0 && plan.victims[1] <= 2 &&
                    plan.victims[0] != plan.victims[1];
    return plan.shape.is_apart && servers == 2 && are_both;
}

static void stop_coordinator(void *data)
{
    (void)data;
    story_say("the coordinator is stopped");
    launcher.late_ns = plan.late_ns;
    world_stop(cluster.servers[0], false);
}

static void continue_coordinator(void *data)
{
    (void)data;
    story_say("the coordinator goes on");
    world_continue(cluster.servers[0]);
}

static void plan_absence(void)
{
    if (plan.is_stopped) {
        world_at(plan.at_ns, stop_coordinator, NULL);
        world_at(plan.at_ns + plan.gap_ns, continue_coordinator, NULL);
    } else {
        kill_later(0, plan.at_ns);
    }
}

static bool run(const struct plan *wanted)
{
    plan = *wanted;
    is_fair = false;
    workers_killed = 0;
    story_clear();
    cluster_begin(&cluster, &plan.shape, plan.seed, &plan.costs);
    disk_format();
    sim_launcher_begin(&launcher, &cluster, plan.look_ns, plan.restarts);
    launcher.returns = plan.is_stopped ? 0 : 1;
    launcher.late_ns = plan.is_stopped ? 0 : plan.late_ns;
    launcher.return_after_ns = plan.gap_ns;
    if (plan.early > 0) {
        kill_later(plan.early, plan.early_ns);
    }
    world_at(plan.at_ns - 6 * MS_NS, look_whether_fair, NULL);
    plan_absence();
    for (uint32_t i = 0; i < 2; i++) {
        if (plan.victims[i] > 0) {
            kill_later(plan.victims[i], plan.victim_ns[i]);
        }
    }
    bool has_ended = world_run(sim_launcher_is_over, &launcher, 300 * SECOND_NS);
    bool is_judged = is_fair && launcher.returns == 0 && !loses_servers();
    if (is_judged && !has_ended) {
        story_fail(plan.seed, "it does not end");
    }
    return is_judged;
}

static void judge_all(struct plan (*draw_one)(uint64_t seed), uint64_t usual)
{
    const char *from = getenv("SIM_SEED"), *many = getenv("SIM_SCENARIOS");
    uint64_t first = from != NULL ? strtoull(from, NULL, 10) : 1;
    uint64_t count = many != NULL ? strtoull(many, NULL, 10) : usual;
    uint32_t judged = 0, anew = 0;
    for (uint64_t seed = first; seed < first + count; seed++) {
        const struct plan wanted = draw_one(seed);
        if (run(&wanted)) {
            judge(world_now_ns());
            judged++;
            anew += cluster.generation > 0;
        }
        sim_launcher_end(&launcher);
        world_end();
    }
    print_message("%u scenarios, %u went on with others\n", judged, anew);
    assert_true(count < usual || (judged > count / 2 && anew > count / 4));
}

static void nobody_waits_for_members_that_end_with_the_coordinator(void **state)
{
    (void)state;
    judge_all(draw_plan, SCENARIOS);
}

static void nobody_waits_for_members_that_end_while_the_coordinator_stands_still(void **state)
{
    (void)state;
    judge_all(draw_stopped, ABSENCES);
}

static void nobody_waits_for_one_that_asks_to_join_when_the_coordinator_is_lost(void **state)
{
    (void)state;
    judge_all(draw_joining, SCENARIOS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_waits_for_one_that_asks_to_join_when_the_coordinator_is_lost),
        cmocka_unit_test(nobody_waits_for_members_that_end_with_the_coordinator),
        cmocka_unit_test(nobody_waits_for_members_that_end_while_the_coordinator_stands_still),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
