/* The board, and who takes which block. */
#include "worker/exchange/shared/group.h"

#include "common/base/clock.h"
#include "common/base/cores.h"
#include "worker/exchange/ring_mean.h"
#include "worker/exchange/shared/posts.h"
#include "worker/exchange/shared/spread.h"
#include "worker/exchange/shared/stage.h"

#include <assert.h>
#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

// A block is small enough to stay in a cache while its mean is written, and large enough to be
// worth taking; of small buckets it is smaller, so that there is one for everybody. In floats.
#define BLOCK_FLOATS       (UINT64_C(16) * 1024)
#define SMALL_BLOCK_FLOATS (UINT64_C(2) * 1024)
#define SMALL_BUCKET       (8 * BLOCK_FLOATS)

// How long a wait spins, where every process has a core, and how long it yields before it sleeps.
// The kernel may well have put two processes on one core: there spinning only keeps the other out.
// At first it looks as often as it can: reading the clock alone takes as long as a small
// all-reduce.
#define EAGER_SPINS 100
#define SPIN_NS     1000
#define YIELD_NS    200000
#define NAP_MS      100 // longest sleep before is_stopped is asked again

// A move to another core takes some 20 us.
#define MOVE_PAUSE_NS (UINT64_C(10) * 1000 * 1000)

#define CACHE_LINE 64

/* Of one bucket. Counters only grow, through all rounds, and wrap around. */
struct slot {
    _Alignas(CACHE_LINE) _Atomic uint32_t arrived; // workers that have it ready
    _Atomic uint32_t taken;                        // blocks that somebody works on, or has
    _Atomic uint32_t finished;                     // blocks
};

struct board {
    _Alignas(CACHE_LINE) _Atomic uint32_t event; // changes when there is news for who sleeps
    _Atomic uint32_t sleepers;                   // processes that do, or are about to
    // Of each worker: the core on which it was when it last arrived, as core_now says it.
    _Alignas(CACHE_LINE) _Atomic uint32_t cores[ALL_REDUCE_SHARED_MAX];
    struct slot slots[]; // one for each bucket
};

/* A bucket, as this worker sees it. */
struct progress {
    struct posts posts; // of a small bucket; else start is NULL
    uint64_t block_floats;
    uint32_t block_count; // 0: of a bucket that has posts or goes by the stage
    uint32_t round;       // how often this worker has arrived
    bool is_unfinished;   // in this round
};

struct group {
    struct group_options options;
    struct board *board;
    bool spins;
    uint32_t core_share; // see spread.h
    uint32_t core;       // on the board
    uint64_t moved_ns;   // when it last left a core to other workers
    struct stage *stage; // or NULL
    struct progress *buckets;
    float *grads[]; // (world), unless there is a stage
};

#if defined(__x86_64__)
/* Leaves the core to its other thread for a moment. */
static void spin_pause(void)
{
    __builtin_ia32_pause();
}
#else
static void spin_pause(void)
{
}
#endif

static size_t slots_bytes(const struct layout *layout)
{
    size_t bytes = sizeof(struct board) + layout->bucket_count * sizeof(struct slot);
    return (bytes + POSTS_ALIGNMENT - 1) / POSTS_ALIGNMENT * POSTS_ALIGNMENT;
}

static size_t all_posts_bytes(const struct layout *layout, uint32_t world)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < layout->bucket_count; i++) {
        uint64_t count = layout->buckets[i].count;
        bytes += posts_serve(count) ? posts_bytes(count, world) : 0;
    }
    return bytes;
}

size_t group_board_bytes(const struct layout *layout, uint32_t world, bool has_stage)
{
    return slots_bytes(layout) + all_posts_bytes(layout, world) +
           (has_stage ? stage_bytes(world) : 0);
}

static void init_progress(struct group *group)
{
    const struct layout *layout = group->options.layout;
    unsigned char *posts = (unsigned char *)group->board + slots_bytes(layout);
    for (uint32_t i = 0; i < layout->bucket_count; i++) {
        struct progress *progress = &group->buckets[i];
        uint64_t count = layout->buckets[i].count;
        if (posts_serve(count)) {
            progress->posts =
                (struct posts){posts, group->options.rank, group->options.world, count};
            posts += posts_bytes(count, group->options.world);
            continue;
        }
        if (group->stage != NULL) {
            continue;
        }
        uint64_t block = count <= SMALL_BUCKET ? SMALL_BLOCK_FLOATS : BLOCK_FLOATS;
        progress->block_floats = block;
        progress->block_count = (uint32_t)((count + block - 1) / block);
    }
}

static enum status create_stage(struct group *group)
{
    const struct group_options *options = &group->options;
    const struct stage_options stage = {
        .rank = options->rank,
        .world = options->world,
        .layout = options->layout,
        .vector = options->own,
        .start = (unsigned char *)options->board + slots_bytes(options->layout) +
                 all_posts_bytes(options->layout, options->world),
    };
    return stage_create(&stage, &group->stage);
}

enum status group_create(const struct group_options *options, struct group **ret_group)
{
    assert(options->world >= 1 && options->world <= ALL_REDUCE_SHARED_MAX);
    const struct layout *layout = options->layout;
    struct group *group = calloc(1, sizeof(*group) + options->world * sizeof(group->grads[0]));
    if (group == NULL) {
        return STATUS_NO_MEMORY;
    }
    group->options = *options;
    group->board = options->board;
    group->spins = (long)options->world <= sysconf(_SC_NPROCESSORS_ONLN);
    group->core_share = spread_share(options->world, cores_available());
    group->buckets = calloc(layout->bucket_count, sizeof(*group->buckets));
    enum status status = group->buckets != NULL ? STATUS_OK : STATUS_NO_MEMORY;
    if (status == STATUS_OK && options->grads == NULL) {
        status = create_stage(group);
    }
    if (status != STATUS_OK) {
        group_destroy(group);
        return status;
    }
    for (uint32_t i = 0; options->grads != NULL && i < options->world; i++) {
        group->grads[i] = options->grads[i];
    }
    init_progress(group);
    *ret_group = group;
    return STATUS_OK;
}

void group_destroy(struct group *group)
{
    if (group != NULL) {
        stage_destroy(group->stage);
        free(group->buckets);
        free(group);
    }
}

static long futex(_Atomic uint32_t *word, int operation, uint32_t value,
                  const struct timespec *timeout)
{
    return syscall(SYS_futex, word, operation, value, timeout, NULL, 0);
}

/* Something has changed that others may wait for. Who goes to sleep says so before it looks again,
 * so one of the two sees the other. */
static void announce(struct board *board)
{
    if (atomic_load(&board->sleepers) > 0) {
        atomic_fetch_add(&board->event, 1);
        (void)futex(&board->event, FUTEX_WAKE, ALL_REDUCE_SHARED_MAX, NULL);
    }
}

/* The mean of a block, into all vectors. */
static void reduce_block(const struct group *group, uint32_t bucket, uint32_t block)
{
    uint32_t world = group->options.world;
    struct span whole = group->options.layout->buckets[bucket];
    uint64_t start = block * group->buckets[bucket].block_floats;
    uint64_t rest = whole.count - start, most = group->buckets[bucket].block_floats;
    struct span span = {whole.offset + start, rest < most ? rest : most};
    float *vectors[ALL_REDUCE_SHARED_MAX];
    for (uint32_t rank = 0; rank < world; rank++) {
        vectors[rank] = group->grads[rank] + span.offset;
    }
    ring_mean(whole, span, vectors, world);
}

/* Takes a block that nobody has, if there is one. */
static enum status take(const struct progress *progress, struct slot *slot, uint32_t *ret_block,
                        bool *ret_has_block)
{
    uint32_t end = progress->round * progress->block_count;
    uint32_t taken = atomic_load(&slot->taken);
    *ret_has_block = false;
    do {
        if (taken == end) {
            return STATUS_OK;
        }
        if (end - taken > progress->block_count) {
            return STATUS_MALFORMED; // who shares this memory has overwritten the board
        }
    } while (!atomic_compare_exchange_weak(&slot->taken, &taken, taken + 1));
    *ret_block = progress->block_count - (end - taken);
    *ret_has_block = true;
    return STATUS_OK;
}

/* Works on a bucket as long as it has blocks, if all workers have arrived. A single block is left
 * to the last of them. */
static enum status work_on(struct group *group, uint32_t bucket)
{
    struct progress *progress = &group->buckets[bucket];
    struct slot *slot = &group->board->slots[bucket];
    if (progress->block_count <= 1 ||
        atomic_load(&slot->arrived) != progress->round * group->options.world) {
        return STATUS_OK;
    }
    for (;;) {
        uint32_t block;
        bool has_block;
        enum status status = take(progress, slot, &block, &has_block);
        if (status != STATUS_OK || !has_block) {
            return status;
        }
        reduce_block(group, bucket, block);
        uint32_t finished = atomic_fetch_add(&slot->finished, 1) + 1;
        if (finished == progress->round * progress->block_count) {
            announce(group->board);
        }
    }
}

static bool is_finished(const struct group *group, uint32_t bucket)
{
    const struct progress *progress = &group->buckets[bucket];
    if (progress->posts.start != NULL) {
        return posts_are_complete(&progress->posts, progress->round);
    }
    if (group->stage != NULL) {
        return stage_is_complete(group->stage, bucket);
    }
    return atomic_load(&group->board->slots[bucket].finished) ==
           progress->round * progress->block_count;
}

/* Whether there are blocks that nobody works on. */
static bool has_work(const struct group *group)
{
    if (group->stage != NULL) {
        return stage_has_work(group->stage);
    }
    for (uint32_t i = 0; i < group->options.layout->bucket_count; i++) {
        const struct progress *progress = &group->buckets[i];
        const struct slot *slot = &group->board->slots[i];
        if (progress->is_unfinished && progress->block_count > 1 &&
            atomic_load(&slot->arrived) == progress->round * group->options.world &&
            atomic_load(&slot->taken) != progress->round * progress->block_count) {
            return true;
        }
    }
    return false;
}

/* Whatever can be done on the stage. */
static void work_on_stage(struct group *group)
{
    enum stage_did did;
    while ((did = stage_work(group->stage)) != STAGE_NOTHING) {
        if (did == STAGE_NEWS) {
            announce(group->board);
        }
    }
}

/* Whatever can be done of the buckets that this worker has ready; they become ready in order. */
static enum status help(struct group *group)
{
    if (group->stage != NULL) {
        work_on_stage(group);
        return STATUS_OK;
    }
    for (uint32_t i = 0; i < group->options.layout->bucket_count; i++) {
        if (!group->buckets[i].is_unfinished) {
            continue;
        }
        enum status status = work_on(group, i);
        if (status != STATUS_OK) {
            return status;
        }
    }
    return STATUS_OK;
}

/* The core that this thread runs on, and 1 more; 0: unknown. */
static uint32_t core_now(void)
{
    uint32_t core = cores_current();
    return core != CORES_UNKNOWN ? core + 1 : 0;
}

/* For others to see where this worker runs. The line changes hands only when that changes. */
static void put_core(struct group *group, uint32_t core)
{
    if (core != group->core) {
        group->core = core;
        atomic_store_explicit(&group->board->cores[group->options.rank], core,
                              memory_order_relaxed);
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
    for (uint32_t rank = 0; rank < options->world; rank++) {
        cores[rank] = // 0, which the board begins with, is unknown
            atomic_load_explicit(&group->board->cores[rank], memory_order_relaxed) - 1;
    }
    uint32_t full_count =
        spread_full_cores(cores, options->world, group->core_share, options->rank, full);
    if (full_count > 0) {
        group->moved_ns = now_ns;
        put_core(group, 0); // or others would follow
        (void)cores_leave(full, full_count);
        put_core(group, core_now());
    }
}

enum status group_arrive(struct group *group, uint32_t bucket)
{
    struct progress *progress = &group->buckets[bucket];
    assert(!progress->is_unfinished);
    put_core(group, core_now());
    progress->round++;
    progress->is_unfinished = true;
    if (progress->posts.start != NULL) {
        struct span span = group->options.layout->buckets[bucket];
        posts_put(&progress->posts, progress->round, group->options.own + span.offset);
        if (is_finished(group, bucket)) {
            announce(group->board);
        }
        return help(group);
    }
    if (group->stage != NULL) {
        stage_arrive(group->stage, bucket);
        return help(group);
    }
    struct slot *slot = &group->board->slots[bucket];
    uint32_t arrived = atomic_fetch_add(&slot->arrived, 1) + 1;
    bool is_last = arrived == progress->round * group->options.world;
    if (is_last && progress->block_count == 1) {
        // Nobody else could do anything of it: no need to agree on who does.
        reduce_block(group, bucket, 0);
        atomic_store(&slot->taken, progress->round);
        atomic_store(&slot->finished, progress->round);
        announce(group->board);
    } else if (is_last) {
        announce(group->board); // who sleeps can help
    }
    return help(group);
}

static bool has_news(const struct group *group, uint32_t bucket)
{
    return is_finished(group, bucket) || has_work(group);
}

/* Until there is news, or for a while. */
static void nap(const struct group *group, uint32_t bucket)
{
    static const struct timespec timeout = {.tv_nsec = NAP_MS * 1000000L};
    struct board *board = group->board;
    atomic_fetch_add(&board->sleepers, 1);
    uint32_t seen = atomic_load(&board->event);
    if (!has_news(group, bucket)) {
        // The kernel compares again: an event between here and there is not missed.
        (void)futex(&board->event, FUTEX_WAIT, seen, &timeout);
    }
    atomic_fetch_sub(&board->sleepers, 1);
}

/* Waits for the bucket to be finished, or for work: as long as it pays by spinning or yielding,
 * then asleep. */
static void wait_for_news(struct group *group, uint32_t bucket)
{
    for (int i = 0; group->spins && i < EAGER_SPINS; i++) {
        if (is_finished(group, bucket)) {
            return;
        }
    }
    uint64_t start_ns = clock_now_ns(), waited_ns = 0;
    while (waited_ns < YIELD_NS) {
        if (has_news(group, bucket)) {
            return;
        }
        if (group->spins && waited_ns < SPIN_NS) {
            for (int i = 0; i < 16 && !is_finished(group, bucket); i++) {
                spin_pause();
            }
        } else {
            make_room(group, start_ns + waited_ns);
            sched_yield();
        }
        waited_ns = clock_now_ns() - start_ns;
    }
    nap(group, bucket);
}

/* What is left of a finished bucket for this worker to do. */
static void finish(struct group *group, uint32_t bucket)
{
    struct progress *progress = &group->buckets[bucket];
    if (progress->posts.start != NULL) {
        struct span span = group->options.layout->buckets[bucket];
        posts_mean(&progress->posts, progress->round, group->options.own + span.offset);
    }
    progress->is_unfinished = false;
}

enum status group_wait(struct group *group, uint32_t bucket, bool (*is_stopped)(void *context),
                       void *context)
{
    enum status status = STATUS_OK;
    while (!is_finished(group, bucket)) {
        status = help(group);
        if (status != STATUS_OK || is_finished(group, bucket)) {
            break;
        }
        if (is_stopped(context)) {
            return STATUS_INTERRUPTED;
        }
        wait_for_news(group, bucket);
    }
    if (status == STATUS_OK) {
        finish(group, bucket);
    }
    return status;
}
