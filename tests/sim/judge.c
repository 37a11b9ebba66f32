/* Judges how the job of a scenario has ended: scenario.h has what is promised. */
#include "tests/sim/judge.h"

#include "tests/sim/sim_gradients.h"
#include "tests/sim/story.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Faults that are over sooner change nothing but the time: nobody waits for less before it judges,
// and members wait twice as long for a coordinator, which forgives what it did not hear.
#define HARMLESS_COORDINATOR_NS (3 * UINT64_C(1000000000) / 2 * SCENARIO_LOST_AFTER)

static bool may_be_blamed(const struct scenario *scenario, const struct cluster *cluster,
                          const char *role, uint32_t index)
{
    char name[WORLD_NAME_BYTES];
    snprintf(name, sizeof(name), "%s %u", role, index);
    for (uint32_t i = 0; i < scenario->fault_count; i++) {
        const struct fault *fault = &scenario->faults[i];
        bool has_two = fault_has_two(fault);
        if (strcmp(cluster_process(cluster, fault->process)->name, name) == 0 ||
            (has_two && strcmp(cluster_process(cluster, fault->other)->name, name) == 0) ||
            fault->process == 0 || (has_two && fault->other == 0)) {
            return true; // of a coordinator that was away itself anything may be said
        }
    }
    return false;
}

/* What the reason begins with: "worker 2" or "server 1". Others blame nobody. */
static bool is_just(const struct scenario *scenario, const struct cluster *cluster)
{
    static const char *const roles[] = {"worker ", "server "}, *const names[] = {"worker", "ps"};
    for (uint32_t i = 0; i < 2; i++) {
        size_t size = strlen(roles[i]);
        char *end;
        unsigned long index = strtoul(cluster->reason + size, &end, 10);
        if (strncmp(cluster->reason, roles[i], size) == 0 && end != cluster->reason + size) {
            return may_be_blamed(scenario, cluster, names[i], (uint32_t)index);
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
        bool has_two = fault_has_two(fault);
        bool has_part = fault->process == process || (has_two && fault->other == process);
        bool counts = has_part && !(has_two && process == 0);
        sum_ns += !counts || fault->kind == FAULT_SLOW ? 0
                  : fault_ends_something(fault)        ? SCENARIO_FOR_GOOD_NS
                                                       : fault->duration_ns;
    }
    return sum_ns;
}

/* Whether the faults of a process may be the end of it, or of a job that cannot do without it. */
static bool may_be_lost(const struct scenario *scenario, uint32_t process)
{
    return disturbed_ns(scenario, process) >=
           (process == 0 ? HARMLESS_COORDINATOR_NS : SCENARIO_HARMLESS_NS);
}

/* Whether the faults may end a job that does without no worker. */
static bool lasts(const struct scenario *scenario)
{
    uint64_t members_ns = 0, coordinator_ns = 0;
    for (uint32_t i = 0; i < scenario->fault_count; i++) {
        const struct fault *fault = &scenario->faults[i];
        if (fault_ends_something(fault)) {
            return true;
        }
        bool has_one = fault->kind == FAULT_STOP || fault->kind == FAULT_JUMP;
        bool is_coordinator = has_one && fault->process == 0;
        uint64_t lasts_ns = fault->kind == FAULT_SLOW ? 0 : fault->duration_ns;
        *(is_coordinator ? &coordinator_ns : &members_ns) += lasts_ns;
    }
    return members_ns >= SCENARIO_HARMLESS_NS || coordinator_ns >= HARMLESS_COORDINATOR_NS;
}

/* How many workers a job may lose, at most, if none comes back. */
static uint32_t count_losable(const struct scenario *scenario)
{
    uint32_t count = scenario_process_count(&scenario->shape), losable = 0;
    for (uint32_t i = count - scenario->shape.workers; i < count; i++) {
        losable += may_be_lost(scenario, i);
    }
    return losable;
}

/* How often it may lose one, at most: one that has come back may be lost again by its next fault.
 */
static uint32_t count_losses(const struct scenario *scenario)
{
    uint32_t count = scenario_process_count(&scenario->shape), losses = 0;
    for (uint32_t i = count - scenario->shape.workers; i < count; i++) {
        for (uint32_t k = 0; k < scenario->fault_count && may_be_lost(scenario, i); k++) {
            const struct fault *fault = &scenario->faults[k];
            bool has_two = fault_has_two(fault);
            losses += fault->process == i || (has_two && fault->other == i);
        }
    }
    return losses;
}

/* Whether a job may fail that has gathered. */
static bool may_fail(const struct scenario *scenario)
{
    const struct cluster_shape *shape = &scenario->shape;
    if (!shape->redeals) {
        return lasts(scenario);
    }
    // What a server had that ends, the coordinator's takes over.
    if (may_be_lost(scenario, 0)) {
        return true;
    }
    uint32_t min_workers = shape->min_workers > 0 ? shape->min_workers : 1;
    return shape->workers - count_losable(scenario) < min_workers;
}

bool judge_values(const struct cluster *cluster, const struct sim_worker *training)
{
    float expected[SIM_VALUES_MAX];
    const struct cluster_shape *shape = &cluster->shape;
    size_t bytes = shape->value_count * sizeof(float);
    sim_expected(&cluster->job, shape->value_count, shape->steps, expected);
    if (memcmp(training->params, expected, bytes) != 0) {
        return false;
    }
    bool is_needed = shape->has_momentum && cluster->job.mode.kind == MODE_RING;
    if (!is_needed || !training->has_state) {
        return training->has_state == is_needed;
    }
    sim_expected_state(&cluster->job, shape->value_count, shape->steps, expected);
    return memcmp(training->state, expected, bytes) == 0;
}

/* How many steps a worker may begin behind the last one that the slowest has finished. That one may
 * have pushed its next gradient, and not yet have its answer. */
static uint64_t ahead_limit(const struct cluster *cluster)
{
    const struct job *job = &cluster->job;
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
static const char *judge_worker(const struct scenario *scenario, const struct cluster *cluster,
                                uint32_t rank)
{
    const struct sim_worker *training = &cluster->trainings[rank];
    bool is_completed = cluster->has_verdict && cluster->verdict == STATUS_OK;
    bool says_so = training->is_over && training->status == STATUS_OK;
    uint32_t process = scenario_process_count(&scenario->shape) - scenario->shape.workers + rank;
    bool may_differ = scenario->shape.redeals ? may_fail(scenario) || may_be_lost(scenario, process)
                                              : lasts(scenario);
    if (training->ahead_max > ahead_limit(cluster)) {
        return "a worker is further ahead than the mode allows";
    }
    if (!says_so && is_completed && !may_differ) {
        return "a worker takes the job for failed, and the coordinator for completed";
    }
    if (says_so && cluster->has_verdict && !is_completed) {
        return "a worker takes the job for completed, and the coordinator for failed";
    }
    if (says_so && !judge_values(cluster, training)) {
        return "a worker has completed the job with other parameters or states";
    }
    return NULL;
}

/* Whether more workers were lost than may be. */
static bool is_wasteful(const struct scenario *scenario, const struct cluster *cluster)
{
    bool is_completed = cluster->has_verdict && cluster->verdict == STATUS_OK;
    return (is_completed && cluster->workers_left < scenario->shape.min_workers) ||
           (!may_fail(scenario) && cluster->workers_lost > count_losses(scenario));
}

/* Whether members that waited for each other in a circle were judged, and it was not known where a
 * message was lost. */
static bool is_at_a_loss(const struct cluster *cluster)
{
    static const char circle[] = "members wait for each other";
    return strncmp(cluster->reason, circle, strlen(circle)) == 0 ||
           strstr(story_text(), "the job goes on: members wait for each other") != NULL;
}

/* NULL, or which promise was broken. */
const char *judge(const struct scenario *scenario, const struct cluster *cluster, bool has_ended)
{
    if (!has_ended) {
        return "a process has not ended";
    }
    bool is_completed = cluster->has_verdict && cluster->verdict == STATUS_OK;
    bool may_go_on = scenario->shape.redeals && cluster->has_gathered;
    bool has_disk = !cluster->cannot_write || scenario->disk.fault_count == 0;
    if (!is_completed && has_disk && !(may_go_on ? may_fail(scenario) : lasts(scenario))) {
        return may_go_on ? "the job has failed, and enough workers had no fault that lasted"
                         : "the job has failed, and no fault lasted";
    }
    if (cluster->has_verdict && !is_completed && cluster->reason[0] == '\0') {
        return "the job does not say why it has failed";
    }
    if (is_completed && !cluster->has_costs) {
        return "the job does not say what a loss has cost";
    }
    if (cluster->repeats_for_arrival) {
        return "who has come makes the job repeat steps that it has a copy of";
    }
    if (is_at_a_loss(cluster)) {
        return "it was not found where a message was lost";
    }
    if (scenario->shape.redeals && is_wasteful(scenario, cluster)) {
        return "the job has lost more workers than it may";
    }
    for (uint32_t rank = 0; rank < cluster->shape.workers; rank++) {
        const char *broken = judge_worker(scenario, cluster, rank);
        if (broken != NULL) {
            return broken;
        }
    }
    return cluster->has_verdict && !is_completed && !is_just(scenario, cluster)
               ? "an innocent is blamed"
               : NULL;
}
