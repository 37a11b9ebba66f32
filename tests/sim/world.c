/* Switches between fibers, and lets virtual time pass. */
#include "tests/sim/world.h"

#include "tests/sim/context.h"
#include "tests/sim/drawing.h"
#include "tests/sim/network.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define STACK_BYTES (512u << 10)
#define STACKS_MAX  64

// Clocks begin at different times, as those of hosts that were started at different times do.
#define CLOCKS_APART_NS (100 * UINT64_C(1000000000))

enum fiber_state { FIBER_READY, FIBER_WAITING, FIBER_ENDED };

struct fiber {
    struct sim_process *process;
    struct fiber *next; // of the process
    struct context *context;
    void *stack; // NULL once it has ended
    void *(*run)(void *data);
    int (*main)(void *data); // in the place of run, of a process's first fiber
    void *data, *result;
    enum fiber_state state;
    const void *what; // that it waits for; NULL: only for a time
    uint64_t wait_id; // tells one wait of the fiber from the next
    bool was_woken;
};

/* Something that is due at a time: the end of a wait, or a call. */
struct due {
    uint64_t time_ns, order;
    struct fiber *fiber; // NULL: it is a call
    uint64_t wait_id;
    void (*act)(void *data);
    void *data;
};

struct world {
    uint64_t now_ns, event_count, order;
    struct drawing drawing;
    struct world_costs costs;
    uint64_t seed;
    struct network *network;
    struct sim_process processes[WORLD_PROCESSES_MAX];
    uint32_t process_count;
    struct fiber *current;
    struct sim_process *acting; // where nothing is current: for whom something is done
    struct fiber **ready; // (ready_count) of ready_size; of processes that are not stopped or ended
    uint32_t ready_count, ready_size;
    struct due *dues; // (due_count) of due_size, a heap: the next one first
    uint32_t due_count, due_size;
    struct context *context; // of the scheduler
};

static struct world *world;

// Of fibers that have ended.
static void *stacks[STACKS_MAX];
static uint32_t stack_count;

/* ============================================================================================
 * Chance and time
 * ========================================================================================== */

uint64_t world_draw(uint64_t bound)
{
    assert(bound > 0);
    return draw(&world->drawing, bound);
}

uint64_t world_now_ns(void)
{
    return world->now_ns;
}

uint64_t world_event_count(void)
{
    return world->event_count;
}

const struct world_costs *world_costs(void)
{
    return &world->costs;
}

uint64_t world_latency_ns(uint32_t from, uint32_t to)
{
    const struct world_costs *costs = &world->costs;
    struct drawing drawing = {~world->seed ^ ((uint64_t)from << 32 | to)};
    uint64_t pair_ns = costs->pair_ns > 0 ? draw(&drawing, costs->pair_ns) : 0;
    return from == to ? costs->near_ns : costs->latency_ns + pair_ns;
}

struct network *world_network(void)
{
    return world->network;
}

void *world_grow(void *memory, uint32_t *size, size_t item_bytes)
{
    uint32_t larger = *size > 0 ? 2 * *size : 64;
    void *moved = realloc(memory, larger * item_bytes);
    if (moved == NULL) {
        abort();
    }
    *size = larger;
    return moved;
}

static bool is_before(const struct due *a, const struct due *b)
{
    return a->time_ns != b->time_ns ? a->time_ns < b->time_ns : a->order < b->order;
}

static void add_due(struct due due)
{
    if (world->due_count == world->due_size) {
        world->dues = world_grow(world->dues, &world->due_size, sizeof(*world->dues));
    }
    due.order = world->order++;
    uint32_t at = world->due_count++;
    while (at > 0 && is_before(&due, &world->dues[(at - 1) / 2])) {
        world->dues[at] = world->dues[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    world->dues[at] = due;
}

static struct due take_due(void)
{
    struct due first = world->dues[0];
    struct due last = world->dues[--world->due_count];
    uint32_t at = 0;
    for (;;) {
        uint32_t child = 2 * at + 1;
        if (child >= world->due_count) {
            break;
        }
        if (child + 1 < world->due_count &&
            is_before(&world->dues[child + 1], &world->dues[child])) {
            child++;
        }
        if (!is_before(&world->dues[child], &last)) {
            break;
        }
        world->dues[at] = world->dues[child];
        at = child;
    }
    world->dues[at] = last;
    return first;
}

void world_at(uint64_t time_ns, void (*act)(void *data), void *data)
{
    uint64_t when = time_ns > world->now_ns ? time_ns : world->now_ns;
    add_due((struct due){.time_ns = when, .act = act, .data = data});
}

/* ============================================================================================
 * Fibers
 * ========================================================================================== */

static void make_ready(struct fiber *fiber)
{
    fiber->state = FIBER_READY;
    fiber->wait_id++;
    if (fiber->process->state != PROCESS_RUNS) {
        return; // world_continue finds it
    }
    if (world->ready_count == world->ready_size) {
        world->ready = world_grow(world->ready, &world->ready_size, sizeof(struct fiber *));
    }
    world->ready[world->ready_count++] = fiber;
}

static void switch_to_scheduler(void)
{
    struct fiber *fiber = world->current;
    context_switch(fiber->context, world->context);
}

static void run_fiber(void)
{
    struct fiber *fiber = world->current;
    if (fiber->main != NULL) {
        fiber->process->exit_status = fiber->main(fiber->data);
    } else {
        fiber->result = fiber->run(fiber->data);
    }
    fiber->state = FIBER_ENDED;
    switch_to_scheduler();
    abort(); // nobody resumes it
}

/* Stacks are used again: to map one takes longer than most fibers run. */
static void *take_stack(void)
{
    if (stack_count > 0) {
        return stacks[--stack_count];
    }
    void *stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (stack == MAP_FAILED) {
        abort();
    }
    return stack;
}

static void free_stack(struct fiber *fiber)
{
    if (fiber->stack == NULL) {
        return;
    }
    if (stack_count < STACKS_MAX) {
        stacks[stack_count++] = fiber->stack;
    } else {
        munmap(fiber->stack, STACK_BYTES);
    }
    context_destroy(fiber->context);
    fiber->stack = NULL;
    fiber->context = NULL;
}

static struct fiber *create_fiber(struct sim_process *process)
{
    struct fiber *fiber = calloc(1, sizeof(*fiber));
    if (fiber == NULL) {
        abort();
    }
    fiber->stack = take_stack();
    fiber->context = context_create_on(fiber->stack, STACK_BYTES, run_fiber);
    fiber->process = process;
    fiber->next = process->fibers;
    process->fibers = fiber;
    return fiber;
}

struct sim_process *world_current(void)
{
    return world->current != NULL ? world->current->process : world->acting;
}

struct sim_process *world_act_as(struct sim_process *process)
{
    struct sim_process *before = world->acting;
    world->acting = process;
    return before;
}

struct fiber *world_start_fiber(void *(*run)(void *data), void *data)
{
    struct fiber *fiber = create_fiber(world->current->process);
    fiber->run = run;
    fiber->data = data;
    make_ready(fiber);
    return fiber;
}

bool world_wait(const void *what, uint64_t until_ns)
{
    struct fiber *fiber = world->current;
    fiber->state = FIBER_WAITING;
    fiber->what = what;
    fiber->was_woken = false;
    if (until_ns != WORLD_NEVER) {
        add_due((struct due){.time_ns = until_ns > world->now_ns ? until_ns : world->now_ns,
                             .fiber = fiber,
                             .wait_id = fiber->wait_id});
    }
    switch_to_scheduler();
    return fiber->was_woken;
}

void world_wake(const struct sim_process *process, const void *what, bool all)
{
    for (struct fiber *fiber = process->fibers; fiber != NULL; fiber = fiber->next) {
        if (fiber->state == FIBER_WAITING && fiber->what == what) {
            fiber->was_woken = true;
            make_ready(fiber);
            if (!all) {
                return;
            }
        }
    }
}

void world_yield(void)
{
    make_ready(world->current);
    switch_to_scheduler();
}

void world_spend(uint64_t time_ns)
{
    if (time_ns > 0) {
        world_wait(NULL, world->now_ns + time_ns);
    }
}

void *world_join_fiber(struct fiber *fiber)
{
    while (fiber->state != FIBER_ENDED) {
        world_wait(fiber, WORLD_NEVER);
    }
    return fiber->result;
}

/* ============================================================================================
 * Processes
 * ========================================================================================== */

struct sim_process *world_start(const char *name, uint32_t host, int (*main)(void *data),
                                void *data)
{
    assert(world->process_count < WORLD_PROCESSES_MAX);
    struct sim_process *process = &world->processes[world->process_count++];
    *process = (struct sim_process){
        .host = host, .id = world->process_count, .clock_ns = world_draw(CLOCKS_APART_NS)};
    snprintf(process->name, sizeof(process->name), "%s", name);
    struct fiber *fiber = create_fiber(process);
    fiber->main = main;
    fiber->data = data;
    make_ready(fiber);
    return process;
}

struct sim_process *world_find(uint32_t process_id)
{
    return process_id > 0 && process_id <= world->process_count ? &world->processes[process_id - 1]
                                                                : NULL;
}

static void remove_ready(const struct sim_process *process)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < world->ready_count; i++) {
        if (world->ready[i]->process != process) {
            world->ready[kept++] = world->ready[i];
        }
    }
    world->ready_count = kept;
}

/* What its fibers hold is lost, as it is to a process; that memory goes with the program. */
static void end_process(struct sim_process *process)
{
    remove_ready(process);
    for (struct fiber *fiber = process->fibers; fiber != NULL; fiber = fiber->next) {
        if (fiber->state != FIBER_ENDED) {
            fiber->state = FIBER_ENDED;
            fiber->wait_id++;
            free_stack(fiber);
        }
    }
    process->state = PROCESS_ENDED;
    network_process_ended(world->network, process);
}

void world_kill(struct sim_process *process)
{
    assert(world->current == NULL || world->current->process != process);
    if (process->state != PROCESS_ENDED) {
        process->is_killed = true;
        end_process(process);
    }
}

void world_stop(struct sim_process *process, bool for_good)
{
    if (process->state == PROCESS_ENDED) {
        return;
    }
    process->state = PROCESS_STOPPED;
    process->is_stopped_for_good = process->is_stopped_for_good || for_good;
    remove_ready(process);
}

void world_continue(struct sim_process *process)
{
    if (process->state != PROCESS_STOPPED || process->is_stopped_for_good) {
        return;
    }
    process->state = PROCESS_RUNS;
    for (struct fiber *fiber = process->fibers; fiber != NULL; fiber = fiber->next) {
        if (fiber->state == FIBER_READY) {
            make_ready(fiber);
        }
    }
}

/* ============================================================================================
 * The scheduler
 * ========================================================================================== */

/* A process ends with its first fiber. */
static void note_end(struct fiber *fiber)
{
    free_stack(fiber);
    if (fiber->main != NULL) {
        end_process(fiber->process);
    } else {
        world_wake(fiber->process, fiber, true);
    }
}

static void resume_one(void)
{
    uint32_t at = world->ready_count > 1 ? (uint32_t)world_draw(world->ready_count) : 0;
    struct fiber *fiber = world->ready[at];
    world->ready[at] = world->ready[--world->ready_count];
    world->current = fiber;
    context_switch(world->context, fiber->context);
    world->current = NULL;
    if (fiber->state == FIBER_ENDED) {
        note_end(fiber);
    }
}

static void handle_due(const struct due *due)
{
    if (due->fiber == NULL) {
        due->act(due->data);
    } else if (due->fiber->state == FIBER_WAITING && due->fiber->wait_id == due->wait_id) {
        make_ready(due->fiber);
    }
}

bool world_run(bool (*is_over)(void *data), void *data, uint64_t until_ns)
{
    while (!is_over(data)) {
        world->event_count++;
        if (world->ready_count > 0) {
            resume_one();
            continue;
        }
        if (world->due_count == 0 || world->dues[0].time_ns > until_ns) {
            return false;
        }
        const struct due due = take_due();
        world->now_ns = due.time_ns;
        handle_due(&due);
    }
    return true;
}

void world_begin(uint64_t seed, const struct world_costs *costs)
{
    world_end();
    world = calloc(1, sizeof(*world));
    if (world == NULL) {
        abort();
    }
    world->drawing.state = world->seed = seed;
    world->costs = *costs;
    world->context = context_create();
    world->network = network_create();
}

static void free_fibers(struct sim_process *process)
{
    while (process->fibers != NULL) {
        struct fiber *fiber = process->fibers;
        process->fibers = fiber->next;
        free_stack(fiber);
        free(fiber);
    }
}

void world_end(void)
{
    if (world == NULL) {
        return;
    }
    network_destroy(world->network);
    for (uint32_t i = 0; i < world->process_count; i++) {
        free_fibers(&world->processes[i]);
    }
    context_destroy(world->context);
    free(world->ready);
    free(world->dues);
    free(world);
    world = NULL;
}
