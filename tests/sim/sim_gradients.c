/* Draws gradients from what they are of, and adds them up as a job does. */
#include "tests/sim/sim_gradients.h"

#include "common/job/consistency.h"
#include "common/job/job_modes.h"
#include "common/plan/order.h"

#include <stdlib.h>
#include <string.h>

#define SIM_UPDATES_MAX 1024 // of a seeded order

static uint64_t mix(uint64_t value)
{
    value = (value ^ value >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    value = (value ^ value >> 27) * UINT64_C(0x94D049BB133111EB);
    return value ^ value >> 31;
}

static float small_number(uint64_t drawn)
{
    return (float)((int)(mix(drawn) % 17) - 8) / 64.0f;
}

float sim_gradient(uint32_t rank, uint64_t step, uint64_t at, float param)
{
    uint32_t bits;
    memcpy(&bits, &param, sizeof(bits));
    return small_number(mix(bits + (step << 32)) + (uint64_t)rank * 7919 + at * 104729);
}

float sim_gradient_of_race(uint64_t at)
{
    return small_number(at * 104729);
}

float sim_first_param(uint64_t at)
{
    return (float)(at % 5) / 4.0f;
}

bool sim_is_race(const struct job *job)
{
    return job_is_unsynchronised(job) && strcmp(job->order, "free") == 0;
}

/* The version that a gradient is computed on, by the rules of common/plan/order.h and the bound on
 * how far ranks are apart. */
static uint64_t version_of(const struct job *job, uint32_t rank, uint64_t step)
{
    struct order order;
    struct consistency consistency;
    char why[256];
    if (order_parse(job->order, &order, why, sizeof(why)) != STATUS_OK ||
        consistency_find(job->mode, &consistency) != STATUS_OK) {
        abort();
    }
    uint64_t slack = consistency.slack_steps, before = step * job->workers + rank;
    uint64_t tau = order_staleness(&order, job->seed, job->workers, before + 1);
    uint64_t drawn = before > tau ? before - tau : 0;
    uint64_t bound = step > slack ? (step - slack) * job->workers : 0;
    return drawn > bound ? drawn : bound;
}

/* A parameter, and its state of the optimizer. */
struct element {
    float param, velocity;
};

static void update(const struct job *job, struct element *element, float grad)
{
    bool has_momentum = job->optimizer == OPTIMIZER_MOMENTUM;
    float kept = has_momentum ? (float)job->settings.momentum * element->velocity : 0;
    element->velocity = kept + grad;
    element->param -= (float)job->lr * element->velocity;
}

/* After so many steps of a seeded order, of which each gradient is an update. */
static struct element expected_of_order(const struct job *job, uint64_t at, uint64_t steps)
{
    float versions[SIM_UPDATES_MAX + 1] = {sim_first_param(at)};
    struct element element = {.param = versions[0]};
    if (steps * job->workers > SIM_UPDATES_MAX) {
        abort();
    }
    for (uint64_t made = 0; made < steps * job->workers; made++) {
        uint32_t rank = (uint32_t)(made % job->workers);
        uint64_t step = made / job->workers;
        float read = versions[version_of(job, rank, step)];
        update(job, &element, sim_gradient(rank, step, at, read));
        versions[made + 1] = element.param;
    }
    return element;
}

/* Likewise where each update has the gradients of all workers. */
static struct element expected_of_all(const struct job *job, uint64_t at, uint64_t steps)
{
    struct element element = {.param = sim_first_param(at)};
    for (uint64_t step = 0; step < steps; step++) {
        float sum = 0;
        for (uint32_t rank = 0; rank < job->workers; rank++) {
            sum += sim_gradient(rank, step, at, element.param);
        }
        update(job, &element, sum * (1.0f / (float)job->workers));
    }
    return element;
}

/* Likewise in a race, where each gradient is an update, and all are the same. */
static struct element expected_of_race(const struct job *job, uint64_t at, uint64_t steps)
{
    struct element element = {.param = sim_first_param(at)};
    for (uint64_t made = 0; made < steps * job->workers; made++) {
        update(job, &element, sim_gradient_of_race(at));
    }
    return element;
}

static struct element expected(const struct job *job, uint64_t at, uint64_t steps)
{
    if (sim_is_race(job)) {
        return expected_of_race(job, at, steps);
    }
    return job_is_unsynchronised(job) ? expected_of_order(job, at, steps)
                                      : expected_of_all(job, at, steps);
}

void sim_expected(const struct job *job, uint32_t value_count, uint64_t steps, float *ret_params)
{
    for (uint32_t i = 0; i < value_count; i++) {
        ret_params[i] = expected(job, i, steps).param;
    }
}

void sim_expected_state(const struct job *job, uint32_t value_count, uint64_t steps,
                        float *ret_state)
{
    for (uint32_t i = 0; i < value_count; i++) {
        ret_state[i] = expected(job, i, steps).velocity;
    }
}
