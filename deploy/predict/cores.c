/* Machines with a clock each, which goes as fast as their threads do. */
#include "deploy/predict/cores.h"

#include "deploy/predict/array.h"
#include "deploy/predict/heap.h"

#include <float.h>
#include <stdlib.h>

struct item {
    double seconds;
    uint32_t kind, token;
    uint32_t next; // of its thread, item + 1; 0: none
};

struct runner {
    uint32_t first, last; // items + 1; 0: it is idle
};

struct running {
    struct heap_key end; // by the clock of its machine
    uint32_t runner;
};

struct machine {
    double cores;            // 0: not said
    double clock;            // seconds that each thread has had, until `since`
    double rate, since;      // of the clock
    double end;              // of the first work; DBL_MAX: none
    uint32_t busy;           // threads with work
    struct running *running; // a heap, owned
    uint32_t count, room;
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

static bool ends_sooner(const struct machine *a, const struct machine *b)
{
    return a->end < b->end || (a->end == b->end && a->end < DBL_MAX &&
                               a->running[0].end.order < b->running[0].end.order);
}

/* Puts a machine where it belongs, upwards or downwards. */
static void place(struct cores *cores, uint32_t index)
{
    struct machine *machines = cores->machines;
    uint32_t *heap = cores->heap, at = machines[index].place;
    const struct machine *own = &machines[index];
    for (; at > 0 && ends_sooner(own, &machines[heap[(at - 1) / 2]]); at = (at - 1) / 2) {
        heap[at] = heap[(at - 1) / 2];
        machines[heap[at]].place = at;
    }
    for (uint32_t child; (child = 2 * at + 1) < cores->machine_count; at = child) {
        child += child + 1 < cores->machine_count &&
                 ends_sooner(&machines[heap[child + 1]], &machines[heap[child]]);
        if (!ends_sooner(&machines[heap[child]], own)) {
            break;
        }
        heap[at] = heap[child];
        machines[heap[at]].place = at;
    }
    heap[at] = index;
    machines[index].place = at;
}

/* How fast each of its threads goes on. */
static double rate_of(const struct cores *cores, const struct machine *machine)
{
    double all = machine->cores, own = cores->share.compute_threads;
    double busy = machine->busy < all ? machine->busy : all;
    double others = all > own && busy > own ? (busy - own) / (all - own) : 0;
    double share = machine->busy > all ? all / machine->busy : 1;
    return share / (1 + (cores->share.crowding - 1) * others);
}

static void serve(struct machine *machine, double now)
{
    machine->clock += machine->rate * (now - machine->since);
    machine->since = now;
}

/* After threads have got work, or have done theirs. */
static void reckon(struct cores *cores, struct machine *machine)
{
    machine->rate = rate_of(cores, machine);
    machine->end = DBL_MAX;
    if (machine->count > 0) {
        double left = machine->running[0].end.at - machine->clock;
        machine->end = machine->since + (left > 0 ? left / machine->rate : 0);
    }
    place(cores, (uint32_t)(machine - cores->machines));
}

static uint32_t weight_of(const struct cores *cores, uint32_t runner)
{
    return runner % CORES_THREADS == CORES_COMPUTE ? cores->share.compute_threads : 1;
}

/* There is room for it. */
static void run_first(struct cores *cores, struct machine *machine, uint32_t runner)
{
    const struct item *item = &cores->items[cores->runners[runner].first - 1];
    const struct running running = {{machine->clock + item->seconds, cores->order++}, runner};
    heap_add(machine->running, &machine->count, &running, sizeof(running));
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
    uint32_t item = keep(cores, &(struct item){seconds, work->kind, work->token, 0});
    if (item == UINT32_MAX || !array_has_room((void **)&machine->running, machine->count,
                                              &machine->room, sizeof(*machine->running))) {
        return false;
    }
    if (runner->first > 0) {
        cores->items[runner->last - 1].next = item + 1;
        runner->last = item + 1;
        return true;
    }
    runner->first = runner->last = item + 1;
    serve(machine, now);
    machine->busy += weight_of(cores, index);
    run_first(cores, machine, index);
    reckon(cores, machine);
    return true;
}

struct cores_work cores_end_next(struct cores *cores, double now)
{
    struct machine *machine = &cores->machines[cores->heap[0]];
    struct running running;
    serve(machine, now);
    heap_take(machine->running, &machine->count, &running, sizeof(running));
    machine->clock = running.end.at; // which rounding may have missed
    struct runner *runner = &cores->runners[running.runner];
    uint32_t index = runner->first - 1;
    const struct item item = cores->items[index];
    runner->first = item.next;
    cores->items[index].next = cores->item_free;
    cores->item_free = index + 1;
    if (runner->first > 0) {
        run_first(cores, machine, running.runner);
    } else {
        machine->busy -= weight_of(cores, running.runner);
    }
    reckon(cores, machine);
    return (struct cores_work){running.runner / CORES_THREADS,
                               (enum cores_thread)(running.runner % CORES_THREADS), item.kind,
                               item.token};
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
    cores->machine_count = network->host_count;
    if (allocate(cores, processes) != STATUS_OK) {
        cores_destroy(cores);
        return STATUS_NO_MEMORY;
    }
    for (uint32_t i = 0; i < cores->machine_count; i++) {
        cores->machines[i] = (struct machine){
            .cores = network->hosts[i].cores, .rate = 1, .end = DBL_MAX, .place = i};
        cores->heap[i] = i;
    }
    for (uint32_t i = 0; i < processes; i++) {
        cores->homes[i] = network->hosts[hosts[i]].machine;
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
        free(cores->machines[i].running);
    }
    free(cores->homes);
    free(cores->runners);
    free(cores->machines);
    free(cores->heap);
    free(cores->items);
    free(cores);
}
