/* Machines with a clock each, which goes as fast as their threads do. */
#include "deploy/predict/engine/cores.h"

#include "deploy/predict/engine/array.h"
#include "deploy/predict/engine/heap.h"

#include <float.h>
#include <stdlib.h>

struct item {
    double seconds;
    uint32_t kind, token;
    uint32_t next; // of its thread, item + 1; 0: none
};

struct runner {
    uint32_t first, last; // items + 1; 0: it is idle
    // With slices:
    double left;     // of its first item, seconds of a core
    double used;     // of its slice
    uint32_t core;   // that it has, or had last
    uint32_t behind; // who waits behind it, runner + 1; 0: nobody
};

/* Runners that wait for a core. */
struct queue {
    uint32_t first, last; // runner + 1; 0: none
};

struct running {
    struct heap_key end; // by the clock of its machine
    uint32_t runner;
};

/* Threads that go on equally fast. */
struct lane {
    double clock;            // seconds that each of them has had, until `since` of the machine
    double rate;             // of the clock
    struct running *running; // a heap, owned
    uint32_t count, room;
};

enum { LANE_COMPUTE, LANE_OTHERS, LANES };

struct machine {
    double cores; // 0: not said
    double since;
    double end;               // of the first work; DBL_MAX: none
    uint32_t busy, computing; // threads with work, and those of them that compute
    struct lane lanes[LANES];
    uint32_t *holders; // with slices: who has each core, runner + 1; 0: nobody; owned
    uint32_t holder_count;
    struct queue queues[LANES];
    uint32_t next;  // the lane, or the core, that has the first work
    uint32_t place; // in the heap of machines
};

struct cores {
    struct cores_share share;
    uint32_t *homes;        // (processes), owned as the others: machines
    struct runner *runners; // (processes, CORES_THREADS)
    struct machine *machines;
    uint32_t machine_count;
    uint32_t *heap; // (machine_count), by their ends
    struct item *items;
    uint32_t item_count, item_room, item_free; // free: item + 1
    uint64_t order;
};

static uint32_t runner_of(uint32_t process, enum cores_thread thread)
{
    return process * CORES_THREADS + (uint32_t)thread;
}

static bool ends_sooner(const void *machines, uint32_t first, uint32_t second)
{
    const struct machine *a = (const struct machine *)machines + first,
                         *b = (const struct machine *)machines + second;
    if (a->holders != NULL || b->holders != NULL) {
        return a->end < b->end || (a->end == b->end && first < second);
    }
    return a->end < b->end ||
           (a->end == b->end && a->end < DBL_MAX &&
            a->lanes[a->next].running[0].end.order < b->lanes[b->next].running[0].end.order);
}

static uint32_t *place_of(void *machines, uint32_t index)
{
    return &((struct machine *)machines)[index].place;
}

static void place(struct cores *cores, uint32_t index)
{
    const struct heap_order order = {cores->machines, ends_sooner, place_of};
    heap_place(cores->heap, cores->machine_count, index, &order);
}

/* How much longer computing takes beside others, and by turns. */
static double slowness_of(const struct cores *cores, const struct machine *machine)
{
    double all = machine->cores, own = cores->share.compute_threads;
    double busy = machine->busy < all ? machine->busy : all;
    double others = all > own && busy > own ? (busy - own) / (all - own) : 0;
    double turns = machine->computing > all ? 2 * (1 - all / machine->computing) : 0;
    return 1 + (cores->share.crowding - 1) * others + (cores->share.turns - 1) * turns;
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
    machine->lanes[LANE_COMPUTE].rate = left / slowness_of(cores, machine);
    double compute_s = end_of(machine, LANE_COMPUTE), others_s = end_of(machine, LANE_OTHERS);
    machine->next = compute_s < others_s ? LANE_COMPUTE : LANE_OTHERS;
    machine->end = compute_s < others_s ? compute_s : others_s;
    place(cores, (uint32_t)(machine - cores->machines));
}

static bool computes(uint32_t runner)
{
    return runner % CORES_THREADS == CORES_COMPUTE;
}

static struct lane *lane_of(struct machine *machine, uint32_t runner)
{
    return &machine->lanes[computes(runner) ? LANE_COMPUTE : LANE_OTHERS];
}

/* A thread that gets work, or, with -1, has done all of it. */
static void count_busy(const struct cores *cores, struct machine *machine, uint32_t runner, int by)
{
    int threads = computes(runner) ? (int)cores->share.compute_threads : 1;
    machine->busy += (uint32_t)(by * threads);
    machine->computing += (uint32_t)(computes(runner) ? by * threads : 0);
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

static struct queue *queue_of(struct machine *machine, uint32_t runner)
{
    return &machine->queues[computes(runner) ? LANE_COMPUTE : LANE_OTHERS];
}

static void wait_last(struct cores *cores, struct machine *machine, uint32_t runner)
{
    struct queue *queue = queue_of(machine, runner);
    cores->runners[runner].behind = 0;
    *(queue->first > 0 ? &cores->runners[queue->last - 1].behind : &queue->first) = runner + 1;
    queue->last = runner + 1;
}

static void wait_first(struct cores *cores, struct machine *machine, uint32_t runner)
{
    struct queue *queue = queue_of(machine, runner);
    cores->runners[runner].behind = queue->first;
    queue->last = queue->first > 0 ? queue->last : runner + 1;
    queue->first = runner + 1;
}

static void hold(struct cores *cores, struct machine *machine, uint32_t core, uint32_t runner)
{
    machine->holders[core] = runner + 1;
    cores->runners[runner].core = core;
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
        if (has_computing ? holder > 0 && computes(holder - 1) : holder == 0) {
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
    if (core == UINT32_MAX && cores->share.messages_first && !computes(index)) {
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

static void serve_slices(struct cores *cores, struct machine *machine, double now)
{
    double passed_s = now - machine->since;
    for (uint32_t i = 0; i < machine->holder_count; i++) {
        if (machine->holders[i] > 0) {
            uint32_t index = machine->holders[i] - 1;
            cores->runners[index].left -= passed_s * lane_of(machine, index)->rate;
            cores->runners[index].used += passed_s;
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
    double left_s = runner->left > 0 ? runner->left / lane_of(machine, index)->rate : 0;
    double slice_s = cores->share.slice_s - runner->used;
    bool is_wanted = machine->queues[LANE_OTHERS].first > 0 ||
                     (computes(index) && machine->queues[LANE_COMPUTE].first > 0);
    slice_s = slice_s > 0 ? slice_s : 0;
    *ret_goes_on = is_wanted && slice_s < left_s;
    return *ret_goes_on ? slice_s : left_s;
}

/* As reckon, with slices. */
static void reckon_slices(struct cores *cores, struct machine *machine)
{
    machine->lanes[LANE_OTHERS].rate = 1;
    machine->lanes[LANE_COMPUTE].rate = 1 / slowness_of(cores, machine);
    machine->end = DBL_MAX;
    for (uint32_t i = 0; i < machine->holder_count; i++) {
        bool goes_on = false;
        double end = machine->holders[i] > 0 ? machine->since + held_s(cores, machine, i, &goes_on)
                                             : DBL_MAX;
        if (end < machine->end) {
            machine->end = end;
            machine->next = i;
        }
    }
    place(cores, (uint32_t)(machine - cores->machines));
}

/* Takes the first work of a runner away. */
static struct cores_work take_work(struct cores *cores, uint32_t index)
{
    struct runner *runner = &cores->runners[index];
    uint32_t first = runner->first - 1;
    const struct item item = cores->items[first];
    runner->first = item.next;
    cores->items[first].next = cores->item_free;
    cores->item_free = first + 1;
    return (struct cores_work){index / CORES_THREADS, (enum cores_thread)(index % CORES_THREADS),
                               item.kind, item.token};
}

/* Ends what ends next: the slice of a core's holder, or its work. */
static struct cores_work end_slice(struct cores *cores, struct machine *machine, double now)
{
    bool goes_on = false;
    uint32_t core = machine->next, index = machine->holders[core] - 1;
    struct runner *runner = &cores->runners[index];
    struct cores_work work = {.process = CORES_NOBODY};
    (void)held_s(cores, machine, core, &goes_on);
    serve_slices(cores, machine, now);
    if (goes_on) {
        runner->used = 0;
        pass_on(cores, machine, core);
        wait_last(cores, machine, index);
    } else {
        work = take_work(cores, index);
        if (runner->first > 0) {
            runner->left = cores->items[runner->first - 1].seconds;
        } else {
            count_busy(cores, machine, index, -1);
            pass_on(cores, machine, core);
        }
    }
    reckon_slices(cores, machine);
    return work;
}

bool cores_add(struct cores *cores, double now, const struct cores_work *work, double seconds)
{
    uint32_t index = runner_of(work->process, work->thread);
    struct runner *runner = &cores->runners[index];
    struct machine *machine = &cores->machines[cores->homes[work->process]];
    struct lane *lane = lane_of(machine, index);
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
        serve_slices(cores, machine, now);
        runner->left = seconds;
        count_busy(cores, machine, index, 1);
        wake(cores, machine, index);
        reckon_slices(cores, machine);
        return true;
    }
    serve(machine, now);
    count_busy(cores, machine, index, 1);
    run_first(cores, lane, index);
    reckon(cores, machine);
    return true;
}

struct cores_work cores_end_next(struct cores *cores, double now)
{
    struct machine *machine = &cores->machines[cores->heap[0]];
    struct lane *lane = &machine->lanes[machine->next];
    struct running running;
    if (machine->holders != NULL) {
        return end_slice(cores, machine, now);
    }
    serve(machine, now);
    heap_take(lane->running, &lane->count, &running, sizeof(running));
    lane->clock = running.end.at; // which rounding may have missed
    struct runner *runner = &cores->runners[running.runner];
    const struct cores_work work = take_work(cores, running.runner);
    if (runner->first > 0) {
        run_first(cores, lane, running.runner);
    } else {
        count_busy(cores, machine, running.runner, -1);
    }
    reckon(cores, machine);
    return work;
}

double cores_next_end(const struct cores *cores)
{
    return cores->machines[cores->heap[0]].end;
}

bool cores_are_limited(const struct cores *cores, uint32_t process)
{
    return cores->machines[cores->homes[process]].cores > 0;
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
    return cores->homes != NULL && cores->runners != NULL && cores->machines != NULL &&
                   cores->heap != NULL
               ? STATUS_OK
               : STATUS_NO_MEMORY;
}

/* Where a thread stands for several, these share cores evenly. */
static enum status allocate_holders(struct cores *cores, uint32_t processes)
{
    for (uint32_t i = 0; i < cores->machine_count; i++) {
        struct machine *machine = &cores->machines[i];
        double most = (double)processes * CORES_THREADS;
        machine->holder_count = (uint32_t)(machine->cores < most ? machine->cores : most);
        if (machine->holder_count > 0) {
            machine->holders = calloc(machine->holder_count, sizeof(*machine->holders));
            if (machine->holders == NULL) {
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
        cores->machines[i] =
            (struct machine){.cores = network->hosts[i].cores, .end = DBL_MAX, .place = i};
        cores->heap[i] = i;
    }
    for (uint32_t i = 0; i < processes; i++) {
        cores->homes[i] = network->hosts[hosts[i]].machine;
    }
    if (cores->share.slice_s > 0 && cores->share.compute_threads == 1 &&
        allocate_holders(cores, processes) != STATUS_OK) {
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
    }
    free(cores->homes);
    free(cores->runners);
    free(cores->machines);
    free(cores->heap);
    free(cores->items);
    free(cores);
}
