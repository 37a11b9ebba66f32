/* What machines and their threads are, for the files that have a part of them: `cores` lets threads
 * share cores evenly, `core_slices` gives them cores by slices. */
#ifndef DEPLOY_PREDICT_ENGINE_CORE_STATE_H
#define DEPLOY_PREDICT_ENGINE_CORE_STATE_H

#include "deploy/predict/engine/cores.h"
#include "deploy/predict/engine/heap.h"

#include <float.h>
#include <stdbool.h>
#include <stdint.h>

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
    double seen;     // of `worked` of its core, when it lost that
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
    double *worked;    // (holder_count): seconds that threads have had it; owned
    uint32_t holder_count;
    struct queue queues[LANES];
    struct queue woken;      // since the time of the machine, in their order
    uint32_t next;           // the lane, or the core, that has the first work
    bool is_unsettled;       // some were woken, or have done their work
    uint32_t next_unsettled; // machine + 1; 0: none
};

struct cores {
    struct cores_share share;
    uint32_t *homes;        // (processes), owned as the others: machines
    struct runner *runners; // (processes, CORES_THREADS)
    struct machine *machines;
    uint32_t machine_count;
    bool have_limits;        // some machines have a number of cores
    struct heap_entry *heap; // (heap_count) machines that have work to end, by that
    uint32_t *heap_places;   // (machine_count) of each machine in it
    uint32_t heap_count;
    struct item *items;
    uint32_t item_count, item_room, item_free; // free: item + 1
    uint32_t unsettled;                        // machine + 1, the last of a list; 0: none
    uint64_t order;
};

static inline bool core_computes(uint32_t runner)
{
    return runner % CORES_THREADS == CORES_COMPUTE;
}

static inline struct lane *core_lane(struct machine *machine, uint32_t runner)
{
    return &machine->lanes[core_computes(runner) ? LANE_COMPUTE : LANE_OTHERS];
}

/* How much longer computing takes beside others, and by turns where these have no time of their
 * own. */
static inline double cores_slowness(const struct cores *cores, const struct machine *machine)
{
    double all = machine->cores, own = cores->share.compute_threads;
    double busy = machine->busy < all ? machine->busy : all;
    double others = all > own && busy > own ? (busy - own) / (all - own) : 0;
    bool has_refill = machine->holders != NULL && cores->share.refill_s > 0;
    double turns = machine->computing > all && !has_refill ? 2 * (1 - all / machine->computing) : 0;
    return 1 + (cores->share.crowding - 1) * others + (cores->share.turns - 1) * turns;
}

/* A thread that gets work, or, with -1, has done all of it. */
static inline void cores_count_busy(const struct cores *cores, struct machine *machine,
                                    uint32_t runner, int by)
{
    int threads = core_computes(runner) ? (int)cores->share.compute_threads : 1;
    machine->busy += (uint32_t)(by * threads);
    machine->computing += (uint32_t)(core_computes(runner) ? by * threads : 0);
}

/* Takes the first work of a runner away. */
static inline struct cores_work cores_take_work(struct cores *cores, uint32_t index)
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

/* Puts a machine where it belongs among the others, after its end has changed. */
static inline void cores_place(struct cores *cores, uint32_t index)
{
    const struct machine *machine = &cores->machines[index];
    if (machine->end == DBL_MAX) {
        heap_leave(cores->heap, &cores->heap_count, cores->heap_places, index);
        return;
    }
    uint64_t order =
        machine->holders != NULL ? index : machine->lanes[machine->next].running[0].end.order;
    heap_enter(cores->heap, &cores->heap_count, cores->heap_places,
               &(struct heap_entry){{machine->end, order}, index});
}

#endif
