/* Waits for other workers of the host: spins, yields, moves to another core, then sleeps. */
#include "common/base/clock.h"
#include "common/base/cores.h"
#include "worker/exchange/shared/group_state.h"
#include "worker/exchange/shared/spread.h"

#include <sched.h>

// How long a wait spins if every process has a core, and how long it yields before it sleeps. The
// kernel may have put two processes on one core, where spinning only keeps the other out. At first
// a wait looks as often as it can, because reading the clock alone takes as long as a small
// all-reduce.
#define EAGER_SPINS 100
#define SPIN_NS     1000
#define YIELD_NS    200000

// A move to another core takes some 20 us.
#define MOVE_PAUSE_NS (UINT64_C(10) * 1000 * 1000)

/* The core that this thread runs on, and 1 more; 0: unknown. */
static uint32_t core_now(void)
{
    uint32_t core = cores_current();
    return core != CORES_UNKNOWN ? core + 1 : 0;
}

/* Shows others where this worker runs. The cache line moves only when that changes. */
static void put_core(struct group *group, uint32_t core)
{
    if (core != group->core) {
        group->core = core;
        atomic_store_explicit(&group->board->cores[group->process], core, memory_order_relaxed);
    }
}

/* Goes to another core if this one has more than its share of the workers. */
static void make_room(struct group *group, uint64_t now_ns)
{
    const struct group_options *options = &group->options;
    if (now_ns - group->moved_ns < MOVE_PAUSE_NS) {
        return;
    }
    put_core(group, core_now());
    uint32_t cores[ALL_REDUCE_SHARED_MAX], full[ALL_REDUCE_SHARED_MAX];
    for (uint32_t i = 0; i < options->processes; i++) {
        cores[i] = // 0, which the board begins with, is unknown
            atomic_load_explicit(&group->board->cores[i], memory_order_relaxed) - 1;
    }
    uint32_t full_count =
        spread_full_cores(cores, options->processes, group->core_share, group->process, full);
    if (full_count > 0) {
        group->moved_ns = now_ns;
        put_core(group, 0); // otherwise others would follow
        (void)cores_leave(full, full_count);
        put_core(group, core_now());
    }
}

void news_note_core(struct group *group)
{
    put_core(group, core_now());
}

static bool is_complete(const struct group *group, uint32_t bucket)
{
    return group->buckets[bucket].algorithm->is_complete(group, bucket);
}

/* Whether there is what a worker sleeps for. */
struct wanted {
    const struct group *group;
    uint32_t bucket;
};

static bool wanted_is_there(void *context)
{
    const struct wanted *wanted = context;
    return news_are_there(wanted->group, wanted->bucket);
}

/* Waits for the bucket to be finished, or for work. Spins and yields for as long as that pays, then
 * sleeps. */
void news_wait(struct group *group, uint32_t bucket)
{
    for (int i = 0; group->spins && i < EAGER_SPINS; i++) {
        if (is_complete(group, bucket)) {
            return;
        }
    }
    uint64_t start_ns = clock_now_ns(), waited_ns = 0;
    while (waited_ns < YIELD_NS) {
        if (news_are_there(group, bucket)) {
            return;
        }
        if (group->spins && waited_ns < SPIN_NS) {
            for (int i = 0; i < 16 && !is_complete(group, bucket); i++) {
                bell_pause();
            }
        } else {
            make_room(group, start_ns + waited_ns);
            sched_yield();
        }
        waited_ns = clock_now_ns() - start_ns;
    }
    bell_nap(&group->board->bell, wanted_is_there, &(struct wanted){group, bucket});
}
