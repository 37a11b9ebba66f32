/* Jobs that lose members while they begin, in virtual time: drawn from seeds.
 *
 * The coordinator is killed at any time until the first workers train, with another server or
 * without it, and both are started again. Nothing has been computed that anybody could go on from.
 * So this holds:
 *
 *     it ends         every process that is left ends
 *     it is true      the job completes, on every worker with the parameters of an undisturbed one
 *     it is a start   if nobody had begun, all are in the first generation: nobody goes on from
 *                     anything, and no loss is told of
 *
 * Or all workers are killed, all servers but the coordinator's, or both, at about the same time, at
 * any moment from the start to a while into training, and then once more: whoever is started again,
 * and whoever has been told to go on. A launcher tells of it, and starts them again if it may.
 * Then:
 *
 *     it ends         within seconds, either way: nobody waits for what does not come
 *     it is true      it completes as above, or says who was lost; each lost worker counts once
 *
 * SIM_SCENARIOS is how many of these are drawn, SIM_SEED the first one's seed. */
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
#define SCENARIOS 240
#define MASSACRES 800
#define ENDS_NS   (3 * SECOND_NS) // behind the last kill, at most, besides pauses before restarts

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

static uint64_t number_of(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name); // NOLINT(concurrency-mt-unsafe): there is one thread
    return text != NULL ? strtoull(text, NULL, 10) : otherwise;
}

struct massacre {
    uint64_t seed;
    struct cluster_shape shape;
    struct world_costs costs;
    uint64_t look_ns, at_ns, spread_ns; // of the launcher; of each wave, and between its kills
    uint64_t again_ns;                  // the next wave, behind the first; 0: there is none
    uint64_t late_ns;                   // that what the launcher says is on its way
    bool kills_workers, kills_servers;
    uint32_t restarts;
};

static struct massacre massacre;
static struct sim_launcher launcher;
static uint64_t last_kill_ns;

static void kill_member(void *data)
{
    struct sim_process *process = cluster_process(&cluster, (uint32_t)(uintptr_t)data);
    if (process->state != PROCESS_ENDED) {
        story_say("%s is killed", process->name);
        last_kill_ns = world_now_ns();
        world_kill(process);
    }
}

static void kill_all(void *data)
{
    uint32_t servers = job_ps_count(&cluster.job);
    for (uint32_t i = 1; cluster_process(&cluster, i) != NULL; i++) {
        if (i < servers ? massacre.kills_servers : massacre.kills_workers) {
            world_at(world_now_ns() + 1 + world_draw(massacre.spread_ns), kill_member,
                     (void *)(uintptr_t)i); // NOLINT(performance-no-int-to-ptr): a number
        }
    }
    if (data != NULL) {
        world_at(world_now_ns() + massacre.again_ns, kill_all, NULL);
    }
}

static struct massacre draw_massacre(uint64_t seed)
{
    static const uint64_t until[] = {3 * MS_NS, 20 * MS_NS, 60 * MS_NS, 400 * MS_NS};
    static const uint64_t spreads[] = {1, MS_NS, 10 * MS_NS, 80 * MS_NS};
    static const uint64_t later[] = {10 * MS_NS, 100 * MS_NS, 550 * MS_NS, 3 * SECOND_NS};
    static const uint64_t late[] = {5 * MS_NS, 100 * MS_NS, 700 * MS_NS};
    static const char *const modes[] = {"ring", "ps-sync", "ps-ssp:1", "ps-async"};
    struct drawing drawing = {seed * 1000133};
    uint64_t mode = draw(&drawing, 4), whom = draw(&drawing, 3);
    struct massacre drawn = {
        .seed = seed,
        .shape = {.mode = modes[mode],
                  .order = mode >= 2 ? "seeded:constant:1" : NULL,
                  .workers = 2 + (uint32_t)draw(&drawing, 3),
                  .servers = mode == 0 ? 0 : 1 + (uint32_t)draw(&drawing, 3),
                  .steps = 20,
                  .value_count = 7 + (uint32_t)draw(&drawing, 40),
                  .bucket_count = 1 + (uint32_t)draw(&drawing, 3),
                  .compute_ns = 1 + draw(&drawing, 20 * MS_NS),
                  .redeals = draw(&drawing, 4) > 0,
                  .outlast = 60},
        .costs = {.latency_ns = 1 + draw(&drawing, MS_NS),
                  .jitter_ns = 1 + draw(&drawing, 2 * MS_NS),
                  .near_ns = 1000},
        .look_ns = 1 + draw(&drawing, 5 * MS_NS),
        .at_ns = 1 + draw(&drawing, until[draw(&drawing, 4)]),
        .spread_ns = spreads[draw(&drawing, 4)],
        .restarts = (uint32_t)draw(&drawing, 12),
    };
    drawn.again_ns = draw(&drawing, 2) == 0 ? 1 + draw(&drawing, later[draw(&drawing, 4)]) : 0;
    drawn.kills_servers = whom > 0 && drawn.shape.servers > 1;
    drawn.kills_workers = whom < 2 || !drawn.kills_servers;
    drawn.late_ns = draw(&drawing, 2) == 0 ? 1 + draw(&drawing, late[draw(&drawing, 3)]) : 0;
    return drawn;
}

/* The story is longer than what cmocka prints. */
static void fail_with_story(const char *what)
{
    fprintf(stderr, "seed %llu:\n%s\n", (unsigned long long)massacre.seed, story_text());
    fail_msg("seed %llu: %s", (unsigned long long)massacre.seed, what);
}

/* Whoever has not been killed at last has the parameters of an undisturbed job. */
static void check_parameters(void)
{
    float expected[SIM_VALUES_MAX];
    sim_expected(&cluster.job, massacre.shape.value_count, massacre.shape.steps, expected);
    for (uint32_t i = 0; i < massacre.shape.workers; i++) {
        const struct sim_worker *worker = &cluster.trainings[i];
        if (cluster.workers[i]->is_killed || worker->status != STATUS_OK) {
            continue;
        }
        if (memcmp(worker->params, expected, massacre.shape.value_count * sizeof(float)) != 0) {
            fail_with_story("a worker ends with other parameters");
        }
    }
}

/* As long as those that are started again are waited for. */
static uint64_t pauses_ns(void)
{
    return (massacre.restarts - launcher.restarts) * SECOND_NS / 2;
}

/* Workers that have made all their steps, and are not missed. */
static uint32_t count_killed_when_done(void)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < massacre.shape.workers && cluster.verdict == STATUS_OK; i++) {
        count += cluster.workers[i]->is_killed && cluster.trainings[i].step == massacre.shape.steps;
    }
    return count;
}

static void judge_massacre(void)
{
    if (!cluster.has_verdict ||
        (cluster.verdict != STATUS_OK && cluster.verdict != STATUS_UNREACHABLE)) {
        fail_with_story("it has no verdict, or a strange one");
    }
    if (cluster.verdict == STATUS_OK) {
        check_parameters();
    }
    if (launcher.over_ns > last_kill_ns + ENDS_NS + pauses_ns()) {
        fail_with_story("somebody has waited for nothing");
    }
    // What the launcher says of an end is there before it starts another one, half a second later.
    bool are_told = massacre.late_ns < 2 * SECOND_NS / 5;
    // If so, all that were started had found the coordinator.
    if (launcher.late_count > 0 && cluster.has_gathered && are_told) {
        fail_with_story("members were not told that the job ends");
    }
    uint32_t lost = cluster.workers_lost, killed = launcher.workers_killed;
    // One that is killed before it has joined, in the place of another one, may not be missed.
    // Nor is one whose end is told when the next one is there, or when the job has failed.
    bool may_miss = !cluster.has_gathered || !are_told ||
                    (massacre.late_ns > 0 && cluster.verdict != STATUS_OK);
    bool are_all = may_miss || lost + count_killed_when_done() >= killed;
    if (lost > killed || !are_all) {
        story_say("%u workers are lost, and %u were killed", lost, killed);
        fail_with_story("not each worker that was killed counts as lost, once");
    }
}

static void whoever_is_killed_while_a_job_begins_nobody_waits_in_vain(void **state)
{
    uint64_t first = number_of("SIM_SEED", 1), count = number_of("SIM_SCENARIOS", MASSACRES);
    uint32_t completed = 0, gone_on = 0;
    (void)state;
    for (uint64_t seed = first; seed < first + count; seed++) {
        massacre = draw_massacre(seed);
        last_kill_ns = 0;
        story_clear();
        cluster_begin(&cluster, &massacre.shape, massacre.seed, &massacre.costs);
        disk_format();
        sim_launcher_begin(&launcher, &cluster, massacre.look_ns, massacre.restarts);
        launcher.late_ns = massacre.late_ns;
        world_at(massacre.at_ns, kill_all, massacre.again_ns > 0 ? &massacre : NULL);
        if (!world_run(sim_launcher_is_over, &launcher, 300 * SECOND_NS)) {
            fail_with_story("it does not end");
        }
        judge_massacre();
        completed += cluster.verdict == STATUS_OK;
        gone_on += cluster.generation > 0;
        sim_launcher_end(&launcher);
        world_end();
    }
    print_message("%u jobs were completed, %u had gone on with others\n", completed, gone_on);
    assert_true(count < MASSACRES ||
                (completed > count / 4 && completed < count && gone_on > count / 20));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whoever_is_killed_while_a_job_begins_nobody_waits_in_vain),
        cmocka_unit_test(a_job_that_has_not_begun_begins_with_the_next_coordinator),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
