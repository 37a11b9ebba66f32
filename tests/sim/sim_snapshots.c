/* Takes snapshots of parameters and states, when they are due or asked for. */
#include "tests/sim/sim_snapshots.h"

#include "worker/link/link_checkpoint.h"

#include <stdio.h>
#include <string.h>

static uint64_t request_of(const struct sim_snapshots *of)
{
    uint64_t announced = link_announced(of->link);
    return announced != of->answered ? announced : 0;
}

/* This process's part of what all have. */
static struct span own_part(const struct sim_snapshots *of)
{
    const struct span whole = {0, of->value_count};
    const struct carriers carriers = job_carriers(of->job);
    return span_part(whole, carriers.processes, carriers_process(carriers, of->ranks.first));
}

/* Of the parameters, and of each state. */
static enum status add_parts(struct sim_snapshots *of)
{
    const struct span part = own_part(of);
    enum status status = snapshot_add(&of->snapshot, "params", of->value_count, part);
    for (uint32_t i = 0; i < optimizer_state_count(of->optimizer) && status == STATUS_OK; i++) {
        char name[PIECE_NAME_BYTES];
        snprintf(name, sizeof(name), "state-%u", i + 1);
        status = snapshot_add(&of->snapshot, name, of->value_count, part);
    }
    return status;
}

/* In the same order. */
static void fill_parts(struct sim_snapshots *of)
{
    const struct span part = own_part(of);
    for (uint32_t i = 0; i < of->snapshot.entry_count; i++) {
        const float *from = i == 0 ? of->params : optimizer_state(of->optimizer, i - 1);
        memcpy(snapshot_values(&of->snapshot, i), from + part.offset, part.count * sizeof(float));
    }
}

enum status sim_snapshots_begin(struct sim_snapshots *of)
{
    of->plan = checkpoints_of(of->job, of->samples);
    uint64_t request = request_of(of);
    if (!of->plan.are_on) {
        return STATUS_OK;
    }
    if (request > 0 && request <= of->phase->begin) {
        of->answered = request;
        link_skip_snapshot(of->link, request);
    }
    enum status status = of->makes_updates ? add_parts(of) : STATUS_OK;
    return status == STATUS_OK ? snapshot_allocate(&of->snapshot) : status;
}

static enum status take(struct sim_snapshots *of, uint64_t step)
{
    static const struct wire_report nothing;
    const struct wire_slices slices = {of->ranks.count, of->images, of->loss_sums};
    of->offered = step;
    if (!link_snapshot_is_gone(of->link)) {
        link_skip_snapshot(of->link, step);
        return STATUS_OK;
    }
    enum status status = of->settle(of->context);
    if (status != STATUS_OK) {
        return status;
    }
    fill_parts(of);
    link_offer_snapshot(of->link, &of->snapshot, step, &nothing, &slices);
    return STATUS_OK;
}

enum status sim_snapshots_after_step(struct sim_snapshots *of, uint64_t step)
{
    uint64_t request = of->plan.are_on ? request_of(of) : 0;
    if (!of->plan.are_on || (of->is_race && request == 0)) {
        return STATUS_OK;
    }
    if (of->is_race) {
        of->answered = request;
        return take(of, request);
    }
    if (request > 0 && request <= step) {
        of->answered = request;
    }
    if (request > 0 && request < step) {
        link_skip_snapshot(of->link, request);
    }
    bool is_due = request == step || checkpoints_are_due(&of->plan, of->phases, step);
    // The job's last one is not left out, and waits: sim_snapshots_end.
    return is_due && step < of->plan.total ? take(of, step) : STATUS_OK;
}

enum status sim_snapshots_end(struct sim_snapshots *of)
{
    uint64_t request = of->plan.are_on ? request_of(of) : 0;
    if (request > 0 && request != of->plan.total) {
        link_skip_snapshot(of->link, request);
    }
    if (!of->plan.are_written || of->offered == of->plan.total) {
        return STATUS_OK;
    }
    enum status status = link_await_snapshot(of->link);
    return status == STATUS_OK ? take(of, of->plan.total) : status;
}

void sim_snapshots_finish(struct sim_snapshots *of)
{
    snapshot_finish(&of->snapshot);
}
