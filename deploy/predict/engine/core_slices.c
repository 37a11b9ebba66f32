/* Threads that have cores one after the other. */
#include "deploy/predict/engine/core_slices.h"

#include "deploy/predict/engine/core_state.h"

#include <float.h>
#include <stdbool.h>
#include <stdlib.h>

static struct queue *queue_of(struct machine *machine, uint32_t runner)
{
    return &machine->queues[core_computes(runner) ? LANE_COMPUTE : LANE_OTHERS];
}

static void append(struct cores *cores, struct queue *queue, uint32_t runner)
{
    cores->runners[runner].behind = 0;
    *(queue->first > 0 ? &cores->runners[queue->last - 1].behind : &queue->first) = runner + 1;
    queue->last = runner + 1;
}

static void wait_last(struct cores *cores, struct machine *machine, uint32_t runner)
{
    append(cores, queue_of(machine, runner), runner);
}

static void wait_first(struct cores *cores, struct machine *machine, uint32_t runner)
{
    struct queue *queue = queue_of(machine, runner);
    cores->runners[runner].behind = queue->first;
    queue->last = queue->first > 0 ? queue->last : runner + 1;
    queue->first = runner + 1;
}

/* What others have put out of the caches since a thread that computes had its core, by messages as
 * by computing. It fetches that again, on whichever core it goes on: kernels leave a thread the
 * core that it had if they can. */
static double refill_s(const struct cores *cores, const struct machine *machine,
                       const struct runner *runner)
{
    double others_s = machine->worked[runner->core] - runner->seen;
    double share = others_s < cores->share.slice_s ? others_s / cores->share.slice_s : 1;
    return cores->share.refill_s * share;
}

static void hold(struct cores *cores, struct machine *machine, uint32_t core, uint32_t index)
{
    struct runner *runner = &cores->runners[index];
    if (core_computes(index)) {
        runner->left += refill_s(cores, machine, runner);
        runner->seen = machine->worked[core];
    }
    machine->holders[core] = index + 1;
    runner->core = core;
}

/* Gives a core that is free to the first that waits. */
static void pass_on(struct cores *cores, struct machine *machine, uint32_t core)
{
    struct queue *queue =
        &machine->queues[machine->queues[LANE_OTHERS].first > 0 ? LANE_OTHERS : LANE_COMPUTE];
    machine->holders[core] = 0;
    if (queue->first > 0) {
        uint32_t runner = queue->first - 1;
        queue->first = cores->runners[runner].behind;
        hold(cores, machine, core, runner);
    }
}

/* The first core that is free, or, with `has_computing`, that a thread has which computes. Begins
 * to look at `own`. UINT32_MAX: there is none. */
static uint32_t find_core(const struct machine *machine, uint32_t own, bool has_computing)
{
    for (uint32_t i = 0; i < machine->holder_count; i++) {
        uint32_t core = (own + i) % machine->holder_count, holder = machine->holders[core];
        if (has_computing ? holder > 0 && core_computes(holder - 1) : holder == 0) {
            return core;
        }
    }
    return UINT32_MAX;
}

/* A runner has got work: gives it a core, or lets it wait. */
static void wake(struct cores *cores, struct machine *machine, uint32_t index)
{
    struct runner *runner = &cores->runners[index];
    uint32_t core = find_core(machine, runner->core, false);
    runner->used = 0;
    if (core == UINT32_MAX && cores->share.messages_first && !core_computes(index)) {
        core = find_core(machine, runner->core, true);
        if (core != UINT32_MAX) { // its holder goes on with its slice afterwards
            wait_first(cores, machine, machine->holders[core] - 1);
        }
    }
    if (core != UINT32_MAX) {
        hold(cores, machine, core, index);
    } else {
        wait_last(cores, machine, index);
    }
}

static void serve(struct cores *cores, struct machine *machine, double now)
{
    double passed_s = now - machine->since;
    for (uint32_t i = 0; i < machine->holder_count; i++) {
        if (machine->holders[i] > 0) {
            uint32_t index = machine->holders[i] - 1;
            cores->runners[index].left -= passed_s * core_lane(machine, index)->rate;
            cores->runners[index].used += passed_s;
            machine->worked[i] += passed_s;
            if (core_computes(index)) {
                cores->runners[index].seen = machine->worked[i];
            }
        }
    }
    machine->since = now;
}

/* How long the holder of a core keeps it. *ret_goes_on: its work is not done then. */
static double held_s(const struct cores *cores, struct machine *machine, uint32_t core,
                     bool *ret_goes_on)
{
    uint32_t index = machine->holders[core] - 1;
    const struct runner *runner = &cores->runners[index];
    double left_s = runner->left > 0 ? runner->left / core_lane(machine, index)->rate : 0;
    double slice_s = cores->share.slice_s - runner->used;
    bool is_wanted = machine->queues[LANE_OTHERS].first > 0 ||
                     (core_computes(index) && machine->queues[LANE_COMPUTE].first > 0);
    slice_s = slice_s > 0 ? slice_s : 0;
    *ret_goes_on = is_wanted && slice_s < left_s;
    return *ret_goes_on ? slice_s : left_s;
}

/* After threads have got work or a core, or have done theirs. */
static void reckon(struct cores *cores, struct machine *machine)
{
    machine->lanes[LANE_OTHERS].rate = 1;
    machine->lanes[LANE_COMPUTE].rate = 1 / cores_slowness(cores, machine);
    machine->end = DBL_MAX;
    for (uint32_t i = 0; i < machine->holder_count; i++) {
        bool goes_on = false;
        bool has_work =
            machine->holders[i] > 0 && cores->runners[machine->holders[i] - 1].first > 0;
        double end = has_work ? machine->since + held_s(cores, machine, i, &goes_on) : DBL_MAX;
        if (end < machine->end) {
            machine->end = end;
            machine->next = i;
        }
    }
    cores_place(cores, (uint32_t)(machine - cores->machines));
}

/* Lets it be decided who has which core before time goes on. */
static void unsettle(struct cores *cores, struct machine *machine)
{
    if (!machine->is_unsettled) {
        machine->is_unsettled = true;
        machine->next_unsettled = cores->unsettled;
        cores->unsettled = (uint32_t)(machine - cores->machines) + 1;
    }
}

static void leave(struct cores *cores, struct machine *machine, uint32_t core)
{
    cores_count_busy(cores, machine, machine->holders[core] - 1, -1);
    pass_on(cores, machine, core);
}

/* Threads that have got no more work leave their cores to those that waited, and those that were
 * woken meanwhile get a core, or wait. */
static void settle(struct cores *cores, struct machine *machine)
{
    for (uint32_t i = 0; i < machine->holder_count; i++) {
        uint32_t holder = machine->holders[i];
        if (holder > 0 && cores->runners[holder - 1].first == 0) {
            leave(cores, machine, i);
        }
    }
    while (machine->woken.first > 0) {
        uint32_t index = machine->woken.first - 1;
        machine->woken.first = cores->runners[index].behind;
        wake(cores, machine, index);
    }
    machine->is_unsettled = false;
    reckon(cores, machine);
}

void core_slices_settle(struct cores *cores)
{
    while (cores->unsettled > 0) {
        struct machine *machine = &cores->machines[cores->unsettled - 1];
        cores->unsettled = machine->next_unsettled;
        settle(cores, machine);
    }
}

void core_slices_begin(struct cores *cores, struct machine *machine, uint32_t index, double now)
{
    struct runner *runner = &cores->runners[index];
    if (now > machine->since) {
        core_slices_settle(cores);
    }
    bool has_core = machine->holders[runner->core] == index + 1;
    serve(cores, machine, now);
    runner->left = cores->items[runner->first - 1].seconds;
    if (has_core && runner->left <= 0) {
        reckon(cores, machine);
        return;
    }
    if (has_core) {
        leave(cores, machine, runner->core);
    }
    cores_count_busy(cores, machine, index, 1);
    append(cores, &machine->woken, index);
    unsettle(cores, machine);
}

struct cores_work core_slices_end_next(struct cores *cores, struct machine *machine, double now)
{
    bool goes_on = false;
    uint32_t core = machine->next, index = machine->holders[core] - 1;
    struct runner *runner = &cores->runners[index];
    struct cores_work work = {.process = CORES_NOBODY};
    (void)held_s(cores, machine, core, &goes_on);
    serve(cores, machine, now);
    if (goes_on) {
        runner->used = 0;
        pass_on(cores, machine, core);
        wait_last(cores, machine, index);
    } else {
        work = cores_take_work(cores, index);
        if (runner->first > 0) {
            runner->left = cores->items[runner->first - 1].seconds;
        } else {
            unsettle(cores, machine);
        }
    }
    reckon(cores, machine);
    return work;
}

enum status core_slices_allocate(struct cores *cores, uint32_t processes)
{
    for (uint32_t i = 0; i < cores->machine_count; i++) {
        struct machine *machine = &cores->machines[i];
        double most = (double)processes * CORES_THREADS;
        machine->holder_count = (uint32_t)(machine->cores < most ? machine->cores : most);
        if (machine->holder_count > 0) {
            machine->holders = calloc(machine->holder_count, sizeof(*machine->holders));
            machine->worked = calloc(machine->holder_count, sizeof(*machine->worked));
            if (machine->holders == NULL || machine->worked == NULL) {
                return STATUS_NO_MEMORY;
            }
        }
    }
    for (uint32_t i = 0; i < processes * CORES_THREADS; i++) {
        uint32_t process = i / CORES_THREADS;
        uint32_t count = cores->machines[cores->homes[process]].holder_count;
        cores->runners[i].core = count > 0 ? process % count : 0;
    }
    return STATUS_OK;
}
