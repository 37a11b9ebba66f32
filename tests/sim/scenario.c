/* Draws faults, runs jobs with them, and judges how they end. */
#include "tests/sim/scenario.h"

#include "tests/sim/network.h"
#include "tests/sim/story.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MS_NS     UINT64_C(1000000)
#define SECOND_NS UINT64_C(1000000000)

// The jobs' --lost-after, in seconds.
#define LOST_AFTER 2

// Faults that are over sooner change nothing but the time: nobody waits for less before it judges,
// and members wait twice as long for a coordinator, which forgives what it did not hear.
#define HARMLESS_NS             (SECOND_NS / 2)
#define HARMLESS_COORDINATOR_NS (3 * SECOND_NS / 2 * LOST_AFTER)

// Behind the last fault: to give up starting (30 s), or to miss somebody twice over, and to close.
#define END_NS (60 * SECOND_NS)

// When members that came before the coordinator listened try again.
#define SECOND_TRY_NS (100 * MS_NS)

// What lasts longer has to be noticed while it lasts.
#define NOTICED_NS  (30 * SECOND_NS)
#define FOR_GOOD_NS (1000 * SECOND_NS)

/* ============================================================================================
 * Drawing
 * ========================================================================================== */

static const struct {
    const char *mode, *order, *all_reduce;
    uint32_t servers;
    bool may_redeal;
} kinds[] = {
    {"ps-sync", NULL, NULL, 1, true},
    {"ps-sync", NULL, NULL, 2, true},
    {"ring", NULL, "ring", 0, true},
    {"ring", NULL, "direct", 0, true},
    {"ring", NULL, "halving-doubling", 0, true},
    {"ps-ssp:1", NULL, NULL, 2, false},
    {"ps-async", NULL, NULL, 1, false},
    {"ps-async", "seeded:constant:2", NULL, 2, false},
};

struct drawing {
    uint64_t state;
};

static uint64_t draw(struct drawing *drawing, uint64_t bound)
{
    uint64_t mixed = drawing->state += UINT64_C(0x9E3779B97F4A7C15);
    mixed = (mixed ^ mixed >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    mixed = (mixed ^ mixed >> 27) * UINT64_C(0x94D049BB133111EB);
    return (mixed ^ mixed >> 31) % bound;
}

static uint32_t process_count(const struct cluster_shape *shape)
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
        return draw(drawing, HARMLESS_NS);
    case 2:
        return draw(drawing, SECOND_NS * 4 * LOST_AFTER);
    default:
        return FOR_GOOD_NS;
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
        return before->time_ns + SECOND_NS * LOST_AFTER + 4 * early_ns;
    default:
        return early_ns;
    }
}

/* `before`: NULL, or another fault. */
static struct fault draw_fault(struct drawing *drawing, const struct cluster_shape *shape,
                               const struct fault *before)
{
    uint32_t count = process_count(shape);
    struct fault fault = {
        .kind = (enum fault_kind)draw(drawing, 4),
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
    fault.other = (fault.process + 1 + (uint32_t)draw(drawing, count - 1)) % count;
    return fault;
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
                  .lost_after = LOST_AFTER},
        .costs = {.latency_ns = 1 + draw(&drawing, MS_NS),
                  .jitter_ns = 1 + draw(&drawing, 2 * MS_NS),
                  .near_ns = 1000},
    };
    struct cluster_shape *shape = &scenario.shape;
    shape->value_count = 7 + (uint32_t)draw(&drawing, 40);
    shape->redeals = kinds[kind].may_redeal && draw(&drawing, 2) == 0;
    shape->min_workers = shape->redeals && draw(&drawing, 4) == 0 ? 1 + shape->workers / 2 : 0;
    if (shape->redeals && draw(&drawing, 16) == 0) { // longer than workers may be silent
        shape->compute_ns = 1 + draw(&drawing, 4 * SECOND_NS * LOST_AFTER);
    }
    scenario.fault_count = (uint32_t)draw(&drawing, SCENARIO_FAULTS_MAX + (shape->redeals ? 1 : 0));
    for (uint32_t i = 0; i < scenario.fault_count; i++) {
        const struct fault *before = i > 0 ? &scenario.faults[i - 1] : NULL;
        scenario.faults[i] = draw_fault(&drawing, shape, before);
    }
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
        world_stop(process, fault->duration_ns == FOR_GOOD_NS);
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
    } else if (fault->kind != FAULT_KILL) {
        story_say("the hosts of %s and %s reach each other again", process->name, other->name);
        network_heal(world_network(), process->host, other->host);
        network_heal(world_network(), other->host, process->host);
    }
}

static bool may_be_blamed(const struct scenario *scenario, const char *role, uint32_t index)
{
    char name[WORLD_NAME_BYTES];
    snprintf(name, sizeof(name), "%s %u", role, index);
    for (uint32_t i = 0; i < scenario->fault_count; i++) {
        const struct fault *fault = &scenario->faults[i];
        bool has_two = fault->kind == FAULT_CUT || fault->kind == FAULT_ONE_WAY;
        if (strcmp(cluster_process(&cluster, fault->process)->name, name) == 0 ||
            (has_two && strcmp(cluster_process(&cluster, fault->other)->name, name) == 0) ||
            fault->process == 0 || (has_two && fault->other == 0)) {
            return true; // of a coordinator that was away itself anything may be said
        }
    }
    return false;
}

/* What the reason begins with: "worker 2" or "server 1". Others blame nobody, and a stall says
 * where the job stands. */
static bool is_just(const struct scenario *scenario)
{
    if (strstr(cluster.reason, "(--stall-fail)") != NULL) {
        return true;
    }
    static const char *const roles[] = {"worker ", "server "}, *const names[] = {"worker", "ps"};
    for (uint32_t i = 0; i < 2; i++) {
        size_t size = strlen(roles[i]);
        char *end;
        unsigned long index = strtoul(cluster.reason + size, &end, 10);
        if (strncmp(cluster.reason, roles[i], size) == 0 && end != cluster.reason + size) {
            return may_be_blamed(scenario, names[i], (uint32_t)index);
        }
    }
    return true;
}

/* Adds up how long a process had faults. A cut counts for both, but the coordinator: it is there
 * for the others. */
static uint64_t disturbed_ns(const struct scenario *scenario, uint32_t process)
{
    uint64_t sum_ns = 0;
    for (uint32_t i = 0; i < scenario->fault_count; i++) {
        const struct fault *fault = &scenario->faults[i];
        bool has_two = fault->kind == FAULT_CUT || fault->kind == FAULT_ONE_WAY;
        bool has_part = fault->process == process || (has_two && fault->other == process);
        bool counts = has_part && !(has_two && process == 0);
        sum_ns += !counts ? 0 : fault->kind == FAULT_KILL ? FOR_GOOD_NS : fault->duration_ns;
    }
    return sum_ns;
}

/* Whether the faults of a process may be the end of it, or of a job that cannot do without it. */
static bool may_be_lost(const struct scenario *scenario, uint32_t process)
{
    return disturbed_ns(scenario, process) >=
           (process == 0 ? HARMLESS_COORDINATOR_NS : HARMLESS_NS);
}

/* Whether the faults may end a job that does without no worker. */
static bool lasts(const struct scenario *scenario)
{
    uint64_t members_ns = 0, coordinator_ns = 0;
    for (uint32_t i = 0; i < scenario->fault_count; i++) {
        const struct fault *fault = &scenario->faults[i];
        if (fault->kind == FAULT_KILL) {
            return true;
        }
        bool is_coordinator = fault->kind == FAULT_STOP && fault->process == 0;
        *(is_coordinator ? &coordinator_ns : &members_ns) += fault->duration_ns;
    }
    return members_ns >= HARMLESS_NS || coordinator_ns >= HARMLESS_COORDINATOR_NS;
}

/* How many workers a job may lose, at most. */
static uint32_t count_losable(const struct scenario *scenario)
{
    uint32_t count = process_count(&scenario->shape), losable = 0;
    for (uint32_t i = count - scenario->shape.workers; i < count; i++) {
        losable += may_be_lost(scenario, i);
    }
    return losable;
}

/* Whether two members, none of which has the coordinator, may not have reached each other for so
 * long that the job has stalled. */
static bool may_stall(const struct scenario *scenario)
{
    uint64_t sum_ns = 0;
    for (uint32_t i = 0; i < scenario->fault_count; i++) {
        const struct fault *fault = &scenario->faults[i];
        bool has_two = fault->kind == FAULT_CUT || fault->kind == FAULT_ONE_WAY;
        sum_ns += has_two && fault->process != 0 && fault->other != 0 ? fault->duration_ns : 0;
    }
    return sum_ns >= HARMLESS_NS;
}

/* Whether a job may fail that has gathered. */
static bool may_fail(const struct scenario *scenario)
{
    const struct cluster_shape *shape = &scenario->shape;
    uint32_t servers = process_count(shape) - shape->workers;
    if (!shape->redeals) {
        return lasts(scenario);
    }
    for (uint32_t i = 0; i < servers; i++) {
        if (may_be_lost(scenario, i)) {
            return true;
        }
    }
    uint32_t min_workers = shape->min_workers > 0 ? shape->min_workers : 1;
    return shape->workers - count_losable(scenario) < min_workers || may_stall(scenario);
}

/* When every process has to have ended, but those that are stopped. */
static uint64_t end_of(const struct scenario *scenario)
{
    uint64_t end_ns = 0;
    for (uint32_t i = 0; i < scenario->fault_count; i++) {
        const struct fault *fault = &scenario->faults[i];
        uint64_t lasts_ns = fault->duration_ns < NOTICED_NS ? fault->duration_ns : NOTICED_NS;
        uint64_t over_ns = fault->time_ns + (fault->kind == FAULT_KILL ? 0 : lasts_ns);
        end_ns = over_ns > end_ns ? over_ns : end_ns;
    }
    return end_ns + END_NS * (scenario->shape.redeals ? scenario->shape.workers : 1);
}

static bool has_expected_params(const struct sim_worker *training)
{
    float expected[SIM_VALUES_MAX];
    const struct cluster_shape *shape = &cluster.shape;
    sim_expected(&cluster.job, shape->value_count, shape->steps, expected);
    return memcmp(training->params, expected, shape->value_count * sizeof(float)) == 0;
}

/* How many steps a worker may begin behind the last one that the slowest has finished. That one may
 * have pushed its next gradient, and not yet have its answer. */
static uint64_t ahead_limit(void)
{
    const struct job *job = &cluster.job;
    switch (job->mode.kind) {
    case MODE_PS_SSP:
        return job->mode.slack_steps + 1;
    case MODE_PS_ASYNC:
        return UINT64_MAX;
    case MODE_LOCAL:
    case MODE_RING:
    case MODE_PS_SYNC:
        break;
    }
    return 1;
}

/* Of one worker. NULL, or which promise was broken. */
static const char *judge_worker(const struct scenario *scenario, uint32_t rank)
{
    const struct sim_worker *training = &cluster.trainings[rank];
    bool is_completed = cluster.has_verdict && cluster.verdict == STATUS_OK;
    bool says_so = training->is_over && training->status == STATUS_OK;
    uint32_t process = process_count(&scenario->shape) - scenario->shape.workers + rank;
    bool may_differ = scenario->shape.redeals ? may_fail(scenario) || may_be_lost(scenario, process)
                                              : lasts(scenario);
    if (training->ahead_max > ahead_limit()) {
        return "a worker is further ahead than the mode allows";
    }
    if (!says_so && is_completed && !may_differ) {
        return "a worker takes the job for failed, and the coordinator for completed";
    }
    if (says_so && cluster.has_verdict && !is_completed) {
        return "a worker takes the job for completed, and the coordinator for failed";
    }
    if (says_so && !has_expected_params(training)) {
        return "a worker has completed the job with other parameters";
    }
    return NULL;
}

/* Whether more workers were lost than may be. */
static bool is_wasteful(const struct scenario *scenario)
{
    uint32_t left = scenario->shape.workers - cluster.workers_lost;
    bool is_completed = cluster.has_verdict && cluster.verdict == STATUS_OK;
    return (is_completed && left < scenario->shape.min_workers) ||
           (!may_fail(scenario) && cluster.workers_lost > count_losable(scenario));
}

/* NULL, or which promise was broken. */
static const char *judge(const struct scenario *scenario, bool has_ended)
{
    if (!has_ended) {
        return "a process has not ended";
    }
    bool is_completed = cluster.has_verdict && cluster.verdict == STATUS_OK;
    bool may_go_on = scenario->shape.redeals && cluster.has_gathered;
    if (!is_completed && !(may_go_on ? may_fail(scenario) : lasts(scenario))) {
        return may_go_on ? "the job has failed, and enough workers had no fault that lasted"
                         : "the job has failed, and no fault lasted";
    }
    if (is_completed && !cluster.has_costs) {
        return "the job does not say what a loss has cost";
    }
    if (scenario->shape.redeals && is_wasteful(scenario)) {
        return "the job has lost more workers than it may";
    }
    for (uint32_t rank = 0; rank < cluster.shape.workers; rank++) {
        const char *broken = judge_worker(scenario, rank);
        if (broken != NULL) {
            return broken;
        }
    }
    return cluster.has_verdict && !is_completed && !is_just(scenario) ? "an innocent is blamed"
                                                                      : NULL;
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
    bool has_ended = cluster_run(&cluster, end_of(&copy));
    const char *broken = judge(&copy, has_ended);
    if (broken != NULL) {
        snprintf(ret_text, SCENARIO_TEXT_BYTES, "%s", broken);
    }
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

/* Tries one change after the other; true: one of them still breaks a promise. */
static bool shrink_once(struct scenario *scenario)
{
    for (uint32_t i = 0; i < scenario->fault_count; i++) {
        struct scenario smaller = without_fault(scenario, i);
        if (breaks(&smaller)) {
            *scenario = smaller;
            return true;
        }
    }
    uint32_t *const numbers[] = {&scenario->shape.steps, &scenario->shape.bucket_count};
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t before = *numbers[i];
        if (before > 1) {
            *numbers[i] = before - 1;
            if (breaks(scenario)) {
                return true;
            }
            *numbers[i] = before;
        }
    }
    return false;
}

struct scenario scenario_shrink(const struct scenario *scenario)
{
    struct scenario smallest = *scenario;
    while (shrink_once(&smallest)) {
    }
    (void)breaks(&smallest); // the story is its
    return smallest;
}

static int describe_fault(const struct fault *fault, char *ret_text, size_t size)
{
    static const char *const names[] = {"kill", "stop", "cut", "one-way"};
    bool has_two = fault->kind == FAULT_CUT || fault->kind == FAULT_ONE_WAY;
    char other[32] = "";
    if (has_two) {
        snprintf(other, sizeof(other), " and %u", fault->other);
    }
    return snprintf(ret_text, size, "; %s process %u%s at %.3f ms for %.3f ms", names[fault->kind],
                    fault->process, other, (double)fault->time_ns / 1e6,
                    fault->kind == FAULT_KILL ? 0 : (double)fault->duration_ns / 1e6);
}

void scenario_describe(const struct scenario *scenario, char ret_text[SCENARIO_TEXT_BYTES])
{
    const struct cluster_shape *shape = &scenario->shape;
    int used =
        snprintf(ret_text, SCENARIO_TEXT_BYTES,
                 "seed %llu: %s%s%s, %u workers, %u servers, %u steps, %u buckets%s",
                 (unsigned long long)scenario->seed, shape->mode, shape->order != NULL ? ", " : "",
                 shape->order != NULL ? shape->order : "", shape->workers, shape->servers,
                 shape->steps, shape->bucket_count,
                 !shape->redeals           ? ""
                 : shape->min_workers <= 1 ? ", redeal"
                                           : ", redeal, more than half of the workers at least");
    for (uint32_t i = 0; i < scenario->fault_count && used < SCENARIO_TEXT_BYTES; i++) {
        used += describe_fault(&scenario->faults[i], ret_text + used,
                               SCENARIO_TEXT_BYTES - (size_t)used);
    }
}
