/* Jobs whose coordinator is lost and comes back, in virtual time: drawn from seeds.
 *
 * It is lost once or twice, first at any time while all workers train. It is killed, and another
 * one listens in its place after a while; or it is stopped, or nobody reaches it, and after a while
 * it is there again, and knows what it knew. Then this holds:
 *
 *     it ends         every process that is left ends
 *     it is true      the job completes, on every worker with the parameters of an undisturbed one
 *     it is frugal    no step is made again where the coordinator has no shard, and no worker
 *                     leaves its generation; elsewhere no process ends, and each loss makes one
 *                     generation
 *     it is one       one that was away gives up nobody, whatever it had decided
 *     it is honest    where training goes on, it says how long it was away, and how many steps were
 *                     made meanwhile; each absence counts once
 *     it is bounded   without another coordinator, members end when --outlast is over
 *
 * SIM_SCENARIOS is how many of each kind are drawn, SIM_SEED the first one's seed. Seeds that have
 * once found something have tests of their own. */
#include "tests/sim/cluster.h"
#include "tests/sim/disk.h"
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
#define SCENARIOS 240

#define OUTLAST  20              // seconds
#define KNOCK_NS (5 * SECOND_NS) // of members that nobody answers: from one to the next

#define COORDINATOR_HOST 1

enum way { KILLED, STOPPED, CUT_OFF };

struct plan {
    uint64_t seed;
    enum way way;
    struct cluster_shape shape;
    struct world_costs costs;
    uint32_t kills; // 1 or 2
    uint64_t wait_ns[2], gap_ns[2];
    uint64_t write_ns; // that the disk takes for a call, at most
    bool returns;
};

static struct cluster cluster;
static struct plan plan;
static uint32_t killed;
static uint64_t lost_ns, found_ns; // when that happened last
static uint64_t first_lost_ns, first_found_ns;
static bool is_away; // it was lost, and nothing has come back yet
static uint64_t lost_step, found_step;
static bool is_fair; // whenever it was killed, all workers trained

static void kill_it(void *data);

/* With the coordinator. */
static bool loses_shard(const struct cluster_shape *shape)
{
    return shape->servers > 0 && !shape->is_apart;
}

/* Nobody reaches the coordinator, and it nobody; or that is over. */
static void cut(bool is_cut)
{
    uint32_t hosts = plan.shape.workers + plan.shape.servers + 1;
    for (uint32_t other = COORDINATOR_HOST + 1; other <= COORDINATOR_HOST + hosts; other++) {
        (is_cut ? network_cut : network_heal)(world_network(), COORDINATOR_HOST, other);
        (is_cut ? network_cut : network_heal)(world_network(), other, COORDINATOR_HOST);
    }
}

static uint64_t most_steps(void)
{
    uint64_t most = 0;
    for (uint32_t i = 0; i < plan.shape.workers; i++) {
        most = cluster.trainings[i].step > most ? cluster.trainings[i].step : most;
    }
    return most;
}

static void lose_it(void)
{
    lost_ns = world_now_ns();
    first_lost_ns = killed == 1 ? lost_ns : first_lost_ns;
    is_away = true;
    lost_step = most_steps();
    static const char *const said[] = {"is killed", "is stopped", "is cut off"};
    story_say("the coordinator %s", said[plan.way]);
    if (plan.way == KILLED) {
        world_kill(cluster.servers[0]);
    } else if (plan.way == STOPPED) {
        world_stop(cluster.servers[0], !plan.returns);
    } else {
        cut(true);
    }
}

/* It was there between two losses for less than the time between two knocks. Members may have met
 * nobody then, and for them it was away all the time: longer than they have promised to wait. */
static bool was_away_too_long(void)
{
    return killed == 2 && lost_ns - first_found_ns < KNOCK_NS &&
           found_ns - first_lost_ns >= OUTLAST * SECOND_NS;
}

static void find_it(void)
{
    static const char *const said[] = {"is started in its place", "goes on", "is reached again"};
    found_ns = world_now_ns();
    first_found_ns = killed == 1 ? found_ns : first_found_ns;
    is_away = false;
    is_fair = is_fair && !was_away_too_long();
    found_step = most_steps();
    story_say("a coordinator %s", said[plan.way]);
    if (plan.way == KILLED) {
        cluster_return_coordinator(&cluster);
    } else if (plan.way == STOPPED) {
        world_continue(cluster.servers[0]);
    } else {
        // Its verdict may have been on its way: nobody can know that the others have heard it.
        is_fair = is_fair && !cluster.has_verdict;
        cut(false);
    }
}

static void come_back(void *data)
{
    (void)data;
    find_it();
    if (killed < plan.kills) {
        world_at(world_now_ns() + plan.wait_ns[1], kill_it, NULL);
    }
}

static void kill_it(void *data)
{
    (void)data;
    for (uint32_t i = 0; i < plan.shape.workers; i++) {
        const struct sim_worker *worker = &cluster.trainings[i];
        bool trains = worker->step > 0 || (killed > 0 && loses_shard(&plan.shape));
        is_fair = is_fair && trains && !worker->is_over;
    }
    if (!is_fair || cluster.has_verdict) {
        is_fair = is_fair && !cluster.has_verdict;
        return;
    }
    killed++;
    lose_it();
    if (plan.returns) {
        world_at(world_now_ns() + plan.gap_ns[killed - 1], come_back, NULL);
    }
}

static struct plan draw_plan(uint64_t seed)
{
    static const char *const algorithms[] = {"ring", "direct", "halving-doubling"};
    struct drawing drawing = {seed};
    struct plan drawn = {
        .seed = seed,
        .shape = {.mode = "ring",
                  .all_reduce = algorithms[draw(&drawing, 3)],
                  .workers = draw(&drawing, 2) == 0 ? 2 : 4,
                  .steps = 20 + (uint32_t)draw(&drawing, 200),
                  .value_count = 7 + (uint32_t)draw(&drawing, 40),
                  .bucket_count = 1 + (uint32_t)draw(&drawing, 3),
                  .compute_ns = 1 + draw(&drawing, 20 * MS_NS),
                  .lost_after = 2,
                  .redeals = draw(&drawing, 2) == 0,
                  .sum_every = (uint32_t)draw(&drawing, 3) * 7,
                  .outlast = OUTLAST},
        .costs = {.latency_ns = 1 + draw(&drawing, MS_NS),
                  .jitter_ns = 1 + draw(&drawing, 2 * MS_NS),
                  .near_ns = 1000},
        .kills = 1 + (uint32_t)draw(&drawing, 2),
        .returns = true,
    };
    for (uint32_t i = 0; i < 2; i++) {
        drawn.wait_ns[i] = draw(&drawing, draw(&drawing, 2) == 0 ? SECOND_NS : 3 * SECOND_NS);
        drawn.gap_ns[i] = draw(&drawing, draw(&drawing, 2) == 0 ? 10 * MS_NS : 4 * SECOND_NS);
    }
    drawn.shape.checkpoint_every = (uint32_t)draw(&drawing, 3) * 3;
    drawn.shape.keep = 2;
    drawn.write_ns = draw(&drawing, 2) == 0 ? 1 : 1 + draw(&drawing, 100 * MS_NS);
    return drawn;
}

/* Likewise with servers, of which the coordinator is one. */
static struct plan draw_servers(uint64_t seed)
{
    static const struct {
        const char *mode, *order;
    } kinds[] = {{"ps-sync", NULL},
                 {"ps-ssp:2", "seeded:constant:2"},
                 {"ps-async", "seeded:uniform:0..3"},
                 {"ps-async", NULL}};
    struct drawing drawing = {seed * 1000003};
    uint64_t kind = draw(&drawing, 4);
    struct plan drawn = draw_plan(seed);
    drawn.shape.mode = kinds[kind].mode;
    drawn.shape.order = kinds[kind].order;
    drawn.shape.servers = 1 + (uint32_t)draw(&drawing, 3);
    drawn.shape.sum_every = kind == 0 ? drawn.shape.sum_every : 0;
    return drawn;
}

/* Likewise where it is none of them. */
static struct plan draw_apart(uint64_t seed)
{
    struct plan drawn = draw_servers(seed);
    drawn.shape.is_apart = true;
    return drawn;
}

/* Likewise where nothing says that it is lost. Members miss it after twice --lost-after. */
static struct plan silent(struct plan drawn, enum way way)
{
    struct drawing drawing = {drawn.seed * 1000033 + way};
    drawn.way = way;
    for (uint32_t i = 0; i < 2; i++) {
        drawn.gap_ns[i] = 1 + draw(&drawing, (draw(&drawing, 2) == 0 ? 6 : 16) * SECOND_NS);
    }
    return drawn;
}

static struct plan draw_stopped(uint64_t seed)
{
    return silent(seed % 2 == 0 ? draw_plan(seed) : draw_apart(seed), STOPPED);
}

static struct plan draw_cut(uint64_t seed)
{
    return silent(seed % 2 == 0 ? draw_plan(seed) : draw_apart(seed), CUT_OFF);
}

static struct plan draw_silent_servers(uint64_t seed)
{
    return silent(draw_servers(seed), seed % 2 == 0 ? STOPPED : CUT_OFF);
}

/* False: it was lost too early or too late to count. */
static bool run(const struct plan *wanted)
{
    plan = *wanted;
    killed = 0;
    is_fair = true;
    is_away = false;
    story_clear();
    cluster_begin(&cluster, &plan.shape, plan.seed, &plan.costs);
    disk_format();
    disk_health()->write_ns = plan.write_ns;
    world_at(200 * MS_NS + plan.wait_ns[0], kill_it, NULL);
    bool has_ended = cluster_run(&cluster, 300 * SECOND_NS);
    if (is_fair && killed > 0 && !has_ended) {
        story_fail(plan.seed, "it does not end");
    }
    return is_fair && killed > 0;
}

/* Its last sign may be a heartbeat older than its loss, and its end is seen within a turn. Those
 * that were cut off knock every five seconds. */
static void judge_absence(const struct plan *wanted)
{
    double away_s = (double)(found_ns - lost_ns) / 1e9;
    double late_s = wanted->way == CUT_OFF ? 8 : 2;
    bool is_long = cluster.away_s >= away_s - 0.2 && cluster.away_s <= away_s + late_s;
    if (cluster.trained_on && wanted->kills == 1 &&
        (!is_long || cluster.steps_meanwhile + 2 < found_step - lost_step)) {
        story_fail(plan.seed, "it was away for %.3f s and %llu steps, and says %.3f s and %llu",
                   away_s, (unsigned long long)(found_step - lost_step), cluster.away_s,
                   (unsigned long long)cluster.steps_meanwhile);
    }
}

/* Whether it was killed right behind its verdict, which was on its way, and has reached all: they
 * end without another one, or before that one has met any of them. */
static bool is_told(void)
{
    bool have_all_heard = true;
    for (uint32_t i = 0; i < plan.shape.workers; i++) {
        have_all_heard = have_all_heard && cluster.trainings[i].status == STATUS_OK;
    }
    return plan.way == KILLED && (is_away || (have_all_heard && !cluster.has_gathered));
}

static void judge(const struct plan *wanted)
{
    float expected[SIM_VALUES_MAX];
    uint32_t generations = loses_shard(&wanted->shape) ? killed : 0;
    if (!is_told() && (!cluster.has_verdict || cluster.verdict != STATUS_OK)) {
        story_fail(plan.seed, "the job does not complete");
    }
    if (wanted->way != KILLED && cluster.workers_lost > 0) {
        story_fail(plan.seed, "a worker was given up");
    }
    if (wanted->way != KILLED && cluster.restarts > killed) {
        story_fail(plan.seed, "an absence counts twice");
    }
    sim_expected(&cluster.job, wanted->shape.value_count, wanted->shape.steps, expected);
    for (uint32_t i = 0; i < wanted->shape.workers; i++) {
        const struct sim_worker *worker = &cluster.trainings[i];
        if (worker->status != STATUS_OK || worker->generation > generations) {
            story_fail(plan.seed, "worker %u ends with %s in generation %u", i,
                       status_text(worker->status), worker->generation);
        }
        if (memcmp(worker->params, expected, wanted->shape.value_count * sizeof(float)) != 0) {
            story_fail(plan.seed, "worker %u ends with other parameters", i);
        }
    }
    judge_absence(wanted);
}

static uint64_t number_of(const char *variable, uint64_t otherwise)
{
    const char *text = getenv(variable);
    return text != NULL ? strtoull(text, NULL, 10) : otherwise;
}

static void judge_all(struct plan (*draw_one)(uint64_t seed), uint32_t scenarios)
{
    uint32_t judged = 0, twice = 0;
    uint64_t first = number_of("SIM_SEED", 1), count = number_of("SIM_SCENARIOS", scenarios);
    for (uint64_t seed = first; seed < first + count; seed++) {
        const struct plan wanted = draw_one(seed);
        if (run(&wanted)) {
            judge(&wanted);
            judged++;
            twice += killed == 2;
        }
        world_end();
    }
    print_message("%u scenarios, the coordinator was lost twice in %u\n", judged, twice);
    assert_true(count < scenarios || (judged > count / 4 && twice > count / 20));
}

static void a_ring_outlasts_its_coordinator(void **state)
{
    (void)state;
    judge_all(draw_plan, SCENARIOS);
}

static void workers_and_servers_outlast_their_coordinator(void **state)
{
    (void)state;
    judge_all(draw_servers, SCENARIOS / 2);
}

static void workers_and_servers_train_on_without_a_coordinator_apart(void **state)
{
    (void)state;
    judge_all(draw_apart, SCENARIOS / 2);
}

static void a_coordinator_that_was_stopped_takes_its_members_in_again(void **state)
{
    (void)state;
    judge_all(draw_stopped, SCENARIOS);
}

static void a_coordinator_that_was_cut_off_takes_its_members_in_again(void **state)
{
    (void)state;
    judge_all(draw_cut, SCENARIOS);
}

static void with_a_shard_it_begins_anew_with_them(void **state)
{
    (void)state;
    judge_all(draw_silent_servers, SCENARIOS / 2);
}

static void judge_seed(struct plan (*draw_one)(uint64_t seed), uint64_t seed, bool is_judged)
{
    const struct plan wanted = draw_one(seed);
    bool is_counted = run(&wanted);
    if (is_counted) {
        judge(&wanted);
    }
    world_end();
    assert_int_equal(is_counted, is_judged);
}

static void one_killed_right_behind_its_verdict_leaves_nobody_waiting(void **state)
{
    (void)state;
    judge_seed(draw_servers, 1062, true);
    judge_seed(draw_apart, 508, true);
    judge_seed(draw_apart, 4356, true); // another one is there before they have ended
}

static void one_that_is_there_for_less_than_a_knock_was_away_all_the_time(void **state)
{
    (void)state;
    judge_seed(draw_stopped, 963, false);
    judge_seed(draw_silent_servers, 1178, false);
}

static void workers_that_have_given_up_the_connection_hear_the_verdict_when_they_knock(void **state)
{
    (void)state;
    judge_seed(draw_cut, 332, true);
}

static void one_that_is_cut_off_again_while_members_come_back_gives_up_nobody(void **state)
{
    (void)state;
    judge_seed(draw_cut, 3334, true);
    judge_seed(draw_cut, 2964, false); // it is away for longer than they wait
}

static void steps_count_of_workers_that_servers_were_quicker_than_to_miss_it(void **state)
{
    (void)state;
    judge_seed(draw_cut, 805295, true);
}

static void without_another_one_members_end_in_time(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct plan wanted = seed % 2 == 0 ? draw_plan(seed) : draw_servers(seed);
        wanted.returns = false;
        wanted.way = seed % 4 < 2 ? KILLED : STOPPED;
        wanted.wait_ns[0] = 50 * MS_NS;
        wanted.shape.steps = 100;
        wanted.shape.compute_ns = 20 * MS_NS;
        assert_true(run(&wanted));
        assert_true(world_now_ns() < (OUTLAST + 10) * SECOND_NS);
        for (uint32_t i = 0; i < wanted.shape.workers; i++) {
            assert_int_equal(cluster.trainings[i].status, STATUS_UNREACHABLE);
        }
        world_end();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_ring_outlasts_its_coordinator),
        cmocka_unit_test(workers_and_servers_outlast_their_coordinator),
        cmocka_unit_test(workers_and_servers_train_on_without_a_coordinator_apart),
        cmocka_unit_test(a_coordinator_that_was_stopped_takes_its_members_in_again),
        cmocka_unit_test(a_coordinator_that_was_cut_off_takes_its_members_in_again),
        cmocka_unit_test(with_a_shard_it_begins_anew_with_them),
        cmocka_unit_test(one_killed_right_behind_its_verdict_leaves_nobody_waiting),
        cmocka_unit_test(one_that_is_there_for_less_than_a_knock_was_away_all_the_time),
        cmocka_unit_test(
            workers_that_have_given_up_the_connection_hear_the_verdict_when_they_knock),
        cmocka_unit_test(one_that_is_cut_off_again_while_members_come_back_gives_up_nobody),
        cmocka_unit_test(steps_count_of_workers_that_servers_were_quicker_than_to_miss_it),
        cmocka_unit_test(without_another_one_members_end_in_time),
    };
    cmocka_set_test_filter(getenv("SIM_TEST")); // a pattern of names; NULL: all
    return cmocka_run_group_tests(tests, NULL, NULL);
}
