/* Keeps the states of the job's optimizer for a program that commits. */
#include "worker/library/committed.h"

#include "common/job/carriers.h"

#include <stdlib.h>
#include <string.h>

/* Of the optimizer that the job has. */
static uint32_t state_count(const struct ringside *ringside)
{
    bool has_states =
        job_may_commit(&ringside->job) && !ringside->makes_updates && !ringside->has_no_model;
    return has_states ? optimizer_states_of(ringside->job.optimizer) : 0;
}

static size_t state_bytes(const struct ringside *ringside)
{
    return ringside->layout.value_count * sizeof(float);
}

/* Zeros, where there is none yet. */
static enum status make(const struct ringside *ringside, float **states)
{
    for (uint32_t i = 0; i < state_count(ringside); i++) {
        if (states[i] == NULL) {
            states[i] = calloc(ringside->layout.value_count, sizeof(float));
        }
        if (states[i] == NULL) {
            return STATUS_NO_MEMORY;
        }
    }
    return STATUS_OK;
}

/* One state, from whoever makes the updates. */
static enum status draw_state(struct ringside *ringside, uint32_t index)
{
    float *to = ringside->drawn[index];
    if (handle_servers_update(ringside)) {
        return exchange_pull_state(ringside->exchange, 1 + index, to);
    }
    memcpy(to, optimizer_state(ringside->optimizer, index), state_bytes(ringside));
    return STATUS_OK;
}

enum status committed_draw(struct ringside *ringside)
{
    if (ringside->exchange == NULL || ringside->makes_updates) {
        return STATUS_OK; // it has not started, or has all by itself
    }
    enum status status = make(ringside, ringside->drawn);
    if (status == STATUS_OK && ringside->exchange->options.is_unsynchronised) {
        status = exchange_pull(ringside->exchange, 0); // no update is under way
    }
    for (uint32_t i = 0; i < state_count(ringside) && status == STATUS_OK; i++) {
        status = draw_state(ringside, i);
    }
    ringside->has_drawn = status == STATUS_OK;
    return status;
}

void committed_keep(struct ringside *ringside)
{
    for (uint32_t i = 0; i < OPTIMIZER_STATES_MAX && ringside->has_drawn; i++) {
        float *kept = ringside->kept[i];
        ringside->kept[i] = ringside->drawn[i];
        ringside->drawn[i] = kept;
    }
    ringside->has_drawn = false;
}

/* Whether all go on from the same step. If they do not, the coordinator says so. */
static enum ringside_status begin_alike(struct ringside *ringside, bool *ret_is_alike)
{
    static const struct ringside_among all = {.label = "ringside_start"};
    uint64_t *steps = calloc(ringside->job.workers, sizeof(*steps));
    if (steps == NULL) {
        return handle_fail(NULL, STATUS_NO_MEMORY);
    }
    enum ringside_status is = ringside_all_gather_among(ringside, &all, &ringside->begin_step,
                                                        sizeof(ringside->begin_step), steps);
    *ret_is_alike = is == RINGSIDE_OK;
    for (uint32_t i = 0; i < ringside->job.workers && is == RINGSIDE_OK; i++) {
        *ret_is_alike = *ret_is_alike && steps[i] == ringside->begin_step;
    }
    free(steps);
    return is;
}

enum ringside_status committed_share(struct ringside *ringside)
{
    static const struct ringside_among all = {.label = "ringside_start"};
    bool is_alike = false;
    uint32_t count = state_count(ringside);
    if (count == 0 || link_generation(ringside->link) == 0) {
        return RINGSIDE_OK;
    }
    enum ringside_status is = begin_alike(ringside, &is_alike);
    if (is != RINGSIDE_OK || !is_alike || ringside->begin_step == 0) {
        return is;
    }
    if (make(ringside, ringside->kept) != STATUS_OK) {
        return handle_fail(NULL, STATUS_NO_MEMORY);
    }
    for (uint32_t i = 0; i < count && is == RINGSIDE_OK; i++) {
        is = ringside_broadcast_among(ringside, &all, ringside->kept[i], state_bytes(ringside), 0);
    }
    return is;
}

enum status committed_restore(struct ringside *ringside)
{
    if (ringside->begin_step == 0) {
        return STATUS_OK;
    }
    enum status status = make(ringside, ringside->kept);
    for (uint32_t i = 0;
         status == STATUS_OK && ringside->optimizer != NULL && i < state_count(ringside); i++) {
        memcpy(optimizer_state(ringside->optimizer, i), ringside->kept[i], state_bytes(ringside));
    }
    return status;
}

uint32_t committed_count(const struct ringside *ringside)
{
    return ringside->begin_step > 0 ? state_count(ringside) : 0;
}
