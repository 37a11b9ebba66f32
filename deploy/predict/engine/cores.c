/* Machines with a clock each, which goes as fast as their threads do. */
#include "deploy/predict/engine/cores.h"

#include "deploy/predict/engine/array.h"
#include "deploy/predict/engine/core_slices.h"
#include "deploy/predict/engine/core_state.h"

#include <float.h>
#include <stdlib.h>

static uint32_t runner_of(uint32_t process, enum cores_thread thread)
{
    return process * CORES_THREADS + (uint32_t)thread;
}

static void serve(struct machine *machine, double now)
{
    for (uint32_t i = 0; i < LANES; i++) {
        machine->lanes[i].clock += machine->lanes[i].rate * (now - machine->since);
    }
    machine->since = now;
}

/* When the first work of a lane is done. */
static double end_of(const struct machine *machine, uint32_t lane)
{
    const struct lane *own = &machine->lanes[lane];
    if (own->count == 0) {
        return DBL_MAX;
    }
    double left = own->running[0].end.at - own->clock;
    return left <= 0 ? machine->since : own->rate > 0 ? machine->since + left / own->rate : DBL_MAX;
}

/* Of so many cores, what each of some threads has. */
static double share_of(double cores, double threads)
{
    return threads > cores ? (cores > 0 ? cores / threads : 0) : 1;
}

/* After threads have got work, or have done theirs. */
static void reckon(struct cores *cores, struct machine *machine)
{
    double computing = machine->computing, others = machine->busy - computing;
    double share = share_of(machine->cores, cores->share.messages_first ? others : machine->busy);
    double left = share_of(machine->cores - others * share, computing);
    machine->lanes[LANE_OTHERS].rate = share;
    machine->lanes[LANE_COMPUTE].rate = left / cores_slowness(cores, machine);
    double compute_s = end_of(machine, LANE_COMPUTE), others_s = end_of(machine, LANE_OTHERS);
    machine->next = compute_s < others_s ? LANE_COMPUTE : LANE_OTHERS;
    machine->end = compute_s < others_s ? compute_s : others_s;
    cores_place(cores, (uint32_t)(machine - cores->machines));
}

/* There is room for it. */
static void run_first(struct cores *cores, struct lane *lane, uint32_t runner)
{
    const struct item *item = &cores->items[cores->runners[runner].first - 1];
    const struct running running = {{lane->clock + item->seconds, cores->order++}, runner};
    heap_add(lane->running, &lane->count, &running, sizeof(running));
}

/* UINT32_MAX: no memory. */
static uint32_t keep(struct cores *cores, const struct item *item)
{
    uint32_t index = cores->item_free - 1;
    if (cores->item_free > 0) {
        cores->item_free = cores->items[index].next;
    } else if (array_has_room((void **)&cores->items, cores->item_count, &cores->item_room,
                              sizeof(*item))) {
        index = cores->item_count++;
    } else {
        return UINT32_MAX;
    }
    cores->items[index] = *item;
    return index;
}

bool cores_add(struct cores *cores, double now, const struct cores_work *work, double seconds)
{
    uint32_t index = runner_of(work->process, work->thread);
    struct runner *runner = &cores->runners[index];
    struct machine *machine = &cores->machines[cores->homes[work->process]];
    struct lane *lane = core_lane(machine, index);
    uint32_t item = keep(cores, &(struct item){seconds, work->kind, work->token, 0});
    if (item == UINT32_MAX || !array_has_room((void **)&lane->running, lane->count, &lane->room,
                                              sizeof(*lane->running))) {
        return false;
    }
    if (runner->first > 0) {
        cores->items[runner->last - 1].next = item + 1;
        runner->last = item + 1;
        return true;
    }
    runner->first = runner->last = item + 1;
    if (machine->holders != NULL) {
        core_slices_begin(cores, machine, index, now);
        return true;
    }
    serve(machine, now);
    cores_count_busy(cores, machine, index, 1);
    run_first(cores, lane, index);
    reckon(cores, machine);
    return true;
}

struct cores_work cores_end_next(struct cores *cores, double now)
{
    struct machine *machine = &cores->machines[cores->heap[0].index];
    struct lane *lane = &machine->lanes[machine->next];
    struct running running;
    if (machine->holders != NULL) {
        return core_slices_end_next(cores, machine, now);
    }
    serve(machine, now);
    heap_take(lane->running, &lane->count, &running, sizeof(running));
    lane->clock = running.end.at; // which rounding may have missed
    struct runner *runner = &cores->runners[running.runner];
    const struct cores_work work = cores_take_work(cores, running.runner);
    if (runner->first > 0) {
        run_first(cores, lane, running.runner);
    } else {
        cores_count_busy(cores, machine, running.runner, -1);
    }
    reckon(cores, machine);
    return work;
}

double cores_next_end(struct cores *cores)
{
    core_slices_settle(cores);
    return cores->heap_count > 0 ? cores->heap[0].key.at : DBL_MAX;
}

bool cores_are_limited(const struct cores *cores, uint32_t process)
{
    return cores->have_limits && cores->machines[cores->homes[process]].cores > 0;
}

bool cores_is_idle(const struct cores *cores, uint32_t process, enum cores_thread thread)
{
    return cores->runners[runner_of(process, thread)].first == 0;
}

static enum status allocate(struct cores *cores, uint32_t processes)
{
    cores->homes = calloc(processes, sizeof(*cores->homes));
    cores->runners = calloc((size_t)processes * CORES_THREADS, sizeof(*cores->runners));
    cores->machines = calloc(cores->machine_count, sizeof(*cores->machines));
    cores->heap = calloc(cores->machine_count, sizeof(*cores->heap));
    cores->heap_places = calloc(cores->machine_count, sizeof(*cores->heap_places));
    return cores->homes != NULL && cores->runners != NULL && cores->machines != NULL &&
                   cores->heap != NULL && cores->heap_places != NULL
               ? STATUS_OK
               : STATUS_NO_MEMORY;
}

enum status cores_create(const struct network *network, const uint32_t *hosts, uint32_t processes,
                         const struct cores_share *share, struct cores **ret_cores)
{
    struct cores *cores = calloc(1, sizeof(*cores));
    if (cores == NULL) {
        return STATUS_NO_MEMORY;
    }
    cores->share = *share;
    cores->share.compute_threads += cores->share.compute_threads == 0;
    cores->share.crowding = share->crowding > 1 ? share->crowding : 1;
    cores->share.turns = share->turns > 1 ? share->turns : 1;
    cores->machine_count = network->host_count;
    if (allocate(cores, processes) != STATUS_OK) {
        cores_destroy(cores);
        return STATUS_NO_MEMORY;
    }
    for (uint32_t i = 0; i < cores->machine_count; i++) {
        cores->machines[i] = (struct machine){.cores = network->hosts[i].cores, .end = DBL_MAX};
        cores->heap_places[i] = HEAP_NOWHERE;
        cores->have_limits = cores->have_limits || network->hosts[i].cores > 0;
    }
    for (uint32_t i = 0; i < processes; i++) {
        cores->homes[i] = network->hosts[hosts[i]].machine;
    }
    if (cores->share.slice_s > 0 && cores->share.compute_threads == 1 &&
        core_slices_allocate(cores, processes) != STATUS_OK) {
        cores_destroy(cores);
        return STATUS_NO_MEMORY;
    }
    *ret_cores = cores;
    return STATUS_OK;
}

void cores_destroy(struct cores *cores)
{
    if (cores == NULL) {
        return;
    }
    for (uint32_t i = 0; cores->machines != NULL && i < cores->machine_count; i++) {
        free(cores->machines[i].lanes[LANE_COMPUTE].running);
        free(cores->machines[i].lanes[LANE_OTHERS].running);
        free(cores->machines[i].holders);
        free(cores->machines[i].worked);
    }
    free(cores->homes);
    free(cores->runners);
    free(cores->machines);
    free(cores->heap);
    free(cores->heap_places);
    free(cores->items);
    free(cores);
}

double cores_bytes(const struct cores *cores)
{
    return (double)cores->item_count * sizeof(*cores->items);
}
