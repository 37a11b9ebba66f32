/* Draws faults, runs jobs with them, and makes those smaller that break a promise. */
#include "tests/sim/scenario.h"

#include "tests/sim/aftermath.h"
#include "tests/sim/judge.h"
#include "tests/sim/network.h"
#include "tests/sim/story.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MS_NS     UINT64_C(1000000)
#define SECOND_NS UINT64_C(1000000000)

// Behind the last fault: to give up starting (30 s), or to miss somebody twice over, and to close.
#define END_NS (60 * SECOND_NS)

// When members that came before the coordinator listened try again.
#define SECOND_TRY_NS (100 * MS_NS)

// The longest that somebody slow takes for a message more than others.
#define SLOW_NS (5 * MS_NS)

// By how much longer messages from one host to another may take, always.
#define PAIR_NS (3 * MS_NS)

// What lasts longer has to be noticed while it lasts.
#define NOTICED_NS (30 * SECOND_NS)

/* ============================================================================================
 * Drawing
 * ========================================================================================== */

static const struct {
    const char *mode, *order, *all_reduce;
    uint32_t servers;
} kinds[] = {
    {"ps-sync", NULL, NULL, 1},
    {"ps-sync", NULL, NULL, 2},
    {"ring", NULL, "ring", 0},
    {"ring", NULL, "direct", 0},
    {"ring", NULL, "halving-doubling", 0},
    {"ps-ssp:1", NULL, NULL, 2},
    {"ps-async", NULL, NULL, 1},
    {"ps-async", "seeded:constant:2", NULL, 2},
    {"ps-ssp:1", "seeded:uniform:0..5", NULL, 1},
};

uint32_t scenario_process_count(const struct cluster_shape *shape)
{
    return (shape->servers > 0 ? shape->servers : 1) + shape->workers;
}

/* Short and long ones are as likely. */
static uint64_t draw_duration(struct drawing *drawing)
{
    switch (draw(drawing, 4)) {
    case 0:
        return draw(drawing, 20 * MS_NS);
    case 1:
        return draw(drawing, SCENARIO_HARMLESS_NS);
    case 2:
        return draw(drawing, SECOND_NS * 4 * SCENARIO_LOST_AFTER);
    default:
        return SCENARIO_FOR_GOOD_NS;
    }
}

/* Early in the job; where it may go on with fewer workers, also about when a fault `before` is
 * noticed, because a connection has been closed for a second, or nothing was heard for long enough:
 * so there are faults while such a job shakes hands, begins, and ends. */
static uint64_t draw_time(struct drawing *drawing, bool redeals, const struct fault *before)
{
    uint64_t early_ns = draw(drawing, 60 * MS_NS);
    switch (redeals ? draw(drawing, before != NULL ? 4 : 2) : 0) {
    case 1:
        return SECOND_TRY_NS + early_ns;
    case 2:
        return before->time_ns + SECOND_NS + 4 * early_ns;
    case 3:
        return before->time_ns + SECOND_NS * SCENARIO_LOST_AFTER + 4 * early_ns;
    default:
        return early_ns;
    }
}

/* `before`: NULL, or another fault. */
static struct fault draw_fault(struct drawing *drawing, const struct cluster_shape *shape,
                               const struct fault *before)
{
    uint32_t count = scenario_process_count(shape);
    struct fault fault = {
        .kind = (enum fault_kind)draw(drawing, FAULT_BREAK), // or a break: see draw_network
        .process = (uint32_t)draw(drawing, count),
        .time_ns = draw_time(drawing, shape->redeals, before),
        .duration_ns = draw_duration(drawing),
    };
    if (shape->redeals && draw(drawing, 2) == 0) { // most often a worker
        fault.process = count - 1 - (uint32_t)draw(drawing, shape->workers);
    }
    if (shape->redeals && before == NULL && draw(drawing, 2) == 0) {
        fault.kind = FAULT_KILL; // so that there is a job to go on
    }
    fault.receive_ns = draw(drawing, SLOW_NS);
    fault.other = (fault.process + 1 + (uint32_t)draw(drawing, count - 1)) % count;
    return fault;
}

/* The job writes checkpoints; its coordinator may be killed in the midst of one. */
static void draw_checkpoints(struct drawing *drawing, struct scenario *scenario)
{
    struct cluster_shape *shape = &scenario->shape;
    uint64_t last_ns = SECOND_TRY_NS * (1 + draw(drawing, 2));
    shape->checkpoint_every = 1 + (uint32_t)draw(drawing, 3);
    shape->keep = 1 + (uint32_t)draw(drawing, 3);
    shape->steps += shape->compute_ns <= 10 * MS_NS ? (uint32_t)draw(drawing, 8) : 0;
    scenario->disk = disk_plan_draw(drawing, last_ns);
    if (scenario->fault_count < SCENARIO_FAULTS_MAX && draw(drawing, 2) == 0) {
        scenario->faults[scenario->fault_count++] =
            (struct fault){.kind = FAULT_KILL, .other = 1, .time_ns = draw(drawing, last_ns)};
    }
}

/* In one of four, pairs of hosts differ, and a fault may be that connections break. It comes last,
 * so the others are what they were before there was this. */
static void draw_network(struct drawing *drawing, struct scenario *scenario)
{
    if (draw(drawing, 4) < 3) {
        return;
    }
    scenario->costs.pair_ns = draw(drawing, PAIR_NS);
    if (scenario->fault_count > 0 && draw(drawing, 2) == 0) {
        scenario->faults[draw(drawing, scenario->fault_count)].kind = FAULT_BREAK;
    }
}

struct scenario scenario_draw(uint64_t seed)
{
    static const uint32_t workers[] = {2, 4};
    struct drawing drawing = {seed};
    uint64_t kind = draw(&drawing, sizeof(kinds) / sizeof(kinds[0]));
    struct scenario scenario = {
        .seed = seed,
        .shape = {.mode = kinds[kind].mode,
                  .order = kinds[kind].order,
                  .all_reduce = kinds[kind].all_reduce,
                  .workers = workers[draw(&drawing, 2)],
                  .servers = kinds[kind].servers,
                  .steps = 1 + (uint32_t)draw(&drawing, 6),
                  .bucket_count = 1 + (uint32_t)draw(&drawing, 3),
                  .compute_ns = 1 + draw(&drawing, 10 * MS_NS),
                  .lost_after = SCENARIO_LOST_AFTER},
        .costs = {.latency_ns = 1 + draw(&drawing, MS_NS),
                  .jitter_ns = 1 + draw(&drawing, 2 * MS_NS),
                  .near_ns = 1000},
    };
    struct cluster_shape *shape = &scenario.shape;
    shape->value_count = 7 + (uint32_t)draw(&drawing, 40);
    shape->redeals = draw(&drawing, 2) == 0;
    shape->min_workers = shape->redeals && draw(&drawing, 4) == 0 ? 1 + shape->workers / 2 : 0;
    // Longer than workers may be silent; but not one after the other, or that is a stall.
    if (shape->redeals && draw(&drawing, 16) == 0 && shape->order == NULL) {
        shape->compute_ns = 1 + draw(&drawing, 4 * SECOND_NS * SCENARIO_LOST_AFTER);
    }
    scenario.fault_count = (uint32_t)draw(&drawing, SCENARIO_FAULTS_MAX + (shape->redeals ? 1 : 0));
    for (uint32_t i = 0; i < scenario.fault_count; i++) {
        const struct fault *before = i > 0 ? &scenario.faults[i - 1] : NULL;
        scenario.faults[i] = draw_fault(&drawing, shape, before);
    }
    if (draw(&drawing, 4) == 0) {
        draw_checkpoints(&drawing, &scenario);
    }
    draw_network(&drawing, &scenario);
    shape->has_momentum = draw(&drawing, 2) == 0;
    return scenario;
}

/* ============================================================================================
 * Running
 * ========================================================================================== */

static struct cluster cluster;

static void begin_fault(void *data)
{
    const struct fault *fault = data;
    struct sim_process *process = cluster_process(&cluster, fault->process);
    struct sim_process *other = cluster_process(&cluster, fault->other);
    switch (fault->kind) {
    case FAULT_KILL:
        story_say("%s is killed", process->name);
        world_kill(process);
        break;
    case FAULT_STOP:
        story_say("%s is stopped", process->name);
        world_stop(process, fault->duration_ns == SCENARIO_FOR_GOOD_NS);
        break;
    case FAULT_CUT:
        story_say("the hosts of %s and %s do not reach each other", process->name, other->name);
        network_cut(world_network(), process->host, other->host);
        network_cut(world_network(), other->host, process->host);
        break;
    case FAULT_ONE_WAY:
        story_say("the host of %s does not reach that of %s", process->name, other->name);
        network_cut(world_network(), process->host, other->host);
        break;
    case FAULT_JUMP:
        story_say("the clock of %s jumps ahead by %.3f s", process->name,
                  (double)fault->duration_ns / 1e9);
        process->clock_ns += fault->duration_ns;
        break;
    case FAULT_SLOW:
        story_say("%s takes %.3f ms longer for a message", process->name,
                  (double)fault->receive_ns / 1e6);
        process->receive_ns = fault->receive_ns;
        break;
    case FAULT_BREAK:
        story_say("the connections between %s and %s break", process->name, other->name);
        network_break(world_network(), process->host, other->host);
        break;
    case FAULT_KINDS:
        break;
    }
}

static void end_fault(void *data)
{
    const struct fault *fault = data;
    struct sim_process *process = cluster_process(&cluster, fault->process);
    struct sim_process *other = cluster_process(&cluster, fault->other);
    if (fault->kind == FAULT_STOP) {
        story_say("%s goes on", process->name);
        world_continue(process);
    } else if (fault->kind == FAULT_SLOW) {
        process->receive_ns = 0;
    } else if (fault_has_two(fault) && fault->kind != FAULT_BREAK) {
        story_say("the hosts of %s and %s reach each other again", process->name, other->name);
        network_heal(world_network(), process->host, other->host);
        network_heal(world_network(), other->host, process->host);
    }
}

/* When every process has to have ended, but those that are stopped. */
static uint64_t end_of(const struct scenario *scenario)
{
    uint64_t end_ns = 0;
    for (uint32_t i = 0; i < scenario->fault_count; i++) {
        const struct fault *fault = &scenario->faults[i];
        uint64_t lasts_ns = fault->duration_ns < NOTICED_NS ? fault->duration_ns : NOTICED_NS;
        bool is_over = fault_ends_something(fault) || fault->kind == FAULT_JUMP;
        uint64_t over_ns = fault->time_ns + (is_over ? 0 : lasts_ns);
        end_ns = over_ns > end_ns ? over_ns : end_ns;
    }
    return end_ns + END_NS * (scenario->shape.redeals ? scenario->shape.workers : 1);
}

static uint64_t events;

uint64_t scenario_events(void)
{
    return events;
}

bool scenario_run(const struct scenario *scenario, char ret_text[SCENARIO_TEXT_BYTES])
{
    struct scenario copy = *scenario; // events point into it
    story_clear();
    cluster_begin(&cluster, &copy.shape, copy.seed, &copy.costs);
    for (uint32_t i = 0; i < copy.fault_count; i++) {
        world_at(copy.faults[i].time_ns, begin_fault, &copy.faults[i]);
        world_at(copy.faults[i].time_ns + copy.faults[i].duration_ns, end_fault, &copy.faults[i]);
    }
    if (copy.shape.checkpoint_every > 0) {
        disk_plan_begin(&copy.disk);
    }
    bool has_ended = cluster_run(&cluster, end_of(&copy));
    const char *broken = judge(&copy, &cluster, has_ended);
    if (broken == NULL && copy.shape.checkpoint_every > 0) {
        broken = aftermath_judge(&copy, &cluster);
    }
    if (broken != NULL) {
        snprintf(ret_text, SCENARIO_TEXT_BYTES, "%s", broken);
    }
    events = world_event_count();
    world_end();
    return broken == NULL;
}

/* ============================================================================================
 * Making smaller
 * ========================================================================================== */

static bool breaks(const struct scenario *scenario)
{
    char text[SCENARIO_TEXT_BYTES];
    return !scenario_run(scenario, text);
}

static struct scenario without_fault(const struct scenario *scenario, uint32_t index)
{
    struct scenario smaller = *scenario;
    smaller.fault_count--;
    memmove(&smaller.faults[index], &smaller.faults[index + 1],
            (smaller.fault_count - index) * sizeof(smaller.faults[0]));
    return smaller;
}

/* Takes the smaller one in the place of the scenario if it still breaks a promise. */
static bool take_if_broken(struct scenario *scenario, const struct scenario *smaller)
{
    uint32_t count = scenario_process_count(&smaller->shape);
    if (smaller->shape.min_workers > smaller->shape.workers) {
        return false; // no job begins like that
    }
    for (uint32_t i = 0; i < smaller->fault_count; i++) {
        if (smaller->faults[i].process >= count || smaller->faults[i].other >= count) {
            return false; // a fault of somebody who is not there
        }
    }
    if (memcmp(smaller, scenario, sizeof(*scenario)) == 0 || !breaks(smaller)) {
        return false;
    }
    *scenario = *smaller;
    return true;
}

static bool drop_a_fault(struct scenario *scenario)
{
    for (uint32_t i = 0; i < scenario->fault_count; i++) {
        const struct scenario smaller = without_fault(scenario, i);
        if (take_if_broken(scenario, &smaller)) {
            return true;
        }
    }
    return false;
}

static bool shrink_disk(struct scenario *scenario)
{
    struct scenario smaller = *scenario;
    for (uint32_t i = 0; disk_plan_shrink(&scenario->disk, i, &smaller.disk); i++) {
        if (take_if_broken(scenario, &smaller)) {
            return true;
        }
    }
    smaller = *scenario;
    smaller.shape.checkpoint_every = 0;
    smaller.disk = (struct disk_plan){.write_ns = 0};
    return take_if_broken(scenario, &smaller);
}

static bool shrink_shape(struct scenario *scenario)
{
    struct scenario smaller = *scenario;
    smaller.shape.has_momentum = false;
    if (take_if_broken(scenario, &smaller)) {
        return true;
    }
    uint32_t *const numbers[] = {&smaller.shape.steps, &smaller.shape.bucket_count,
                                 &smaller.shape.servers, &smaller.shape.workers};
    static const uint32_t least[] = {1, 1, 1, 2};
    for (uint32_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        smaller = *scenario;
        if (*numbers[i] > least[i]) {
            *numbers[i] -= 1;
            if (take_if_broken(scenario, &smaller)) {
                return true;
            }
        }
    }
    return false;
}

/* Times that are round, or shorter: a transcript of them is easier to read. */
static bool shrink_times(struct scenario *scenario)
{
    struct scenario smaller = *scenario;
    smaller.costs.jitter_ns = smaller.costs.latency_ns = 1;
    smaller.costs.pair_ns = 0;
    smaller.shape.compute_ns = 1;
    if (take_if_broken(scenario, &smaller)) {
        return true;
    }
    for (uint32_t i = 0; i < scenario->fault_count; i++) {
        smaller = *scenario;
        smaller.faults[i].duration_ns /= 2;
        if (scenario->faults[i].duration_ns > MS_NS && take_if_broken(scenario, &smaller)) {
            return true;
        }
    }
    return false;
}

struct scenario scenario_shrink(const struct scenario *scenario)
{
    struct scenario smallest = *scenario;
    while (shrink_disk(&smallest) || drop_a_fault(&smallest) || shrink_shape(&smallest) ||
           shrink_times(&smallest)) {
    }
    (void)breaks(&smallest); // the story is its
    return smallest;
}

static int describe_fault(const struct fault *fault, char *ret_text, size_t size)
{
    static const char *const names[] = {"kill", "stop", "cut", "one-way", "jump", "slow", "break"};
    char other[48] = "";
    if (fault_has_two(fault)) {
        snprintf(other, sizeof(other), " and %u", fault->other);
    } else if (fault->kind == FAULT_SLOW) {
        snprintf(other, sizeof(other), " (%.3f ms a message)", (double)fault->receive_ns / 1e6);
    }
    return snprintf(ret_text, size, "; %s process %u%s at %.3f ms for %.3f ms", names[fault->kind],
                    fault->process, other, (double)fault->time_ns / 1e6,
                    fault_ends_something(fault) ? 0 : (double)fault->duration_ns / 1e6);
}

void scenario_describe(const struct scenario *scenario, char ret_text[SCENARIO_TEXT_BYTES])
{
    const struct cluster_shape *shape = &scenario->shape;
    int used =
        snprintf(ret_text, SCENARIO_TEXT_BYTES,
                 "seed %llu: %s%s%s, %u workers, %u servers, %u steps, %u buckets%s%s",
                 (unsigned long long)scenario->seed, shape->mode, shape->order != NULL ? ", " : "",
                 shape->order != NULL ? shape->order : "", shape->workers, shape->servers,
                 shape->steps, shape->bucket_count, shape->has_momentum ? ", momentum" : "",
                 !shape->redeals           ? ""
                 : shape->min_workers <= 1 ? ", redeal"
                                           : ", redeal, more than half of the workers at least");
    if (shape->checkpoint_every > 0) {
        used += snprintf(ret_text + used, SCENARIO_TEXT_BYTES - (size_t)used,
                         ", a checkpoint every %u steps of which %u stay", shape->checkpoint_every,
                         shape->keep);
    }
    for (uint32_t i = 0; i < scenario->fault_count && used < SCENARIO_TEXT_BYTES; i++) {
        used += describe_fault(&scenario->faults[i], ret_text + used,
                               SCENARIO_TEXT_BYTES - (size_t)used);
    }
    if (shape->checkpoint_every > 0 && used < SCENARIO_TEXT_BYTES) {
        disk_plan_describe(&scenario->disk, ret_text + used, SCENARIO_TEXT_BYTES - (size_t)used);
    }
}
