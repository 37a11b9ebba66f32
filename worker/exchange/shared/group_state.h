/* The state that the parts of a group share: group.c (arrive, wait), blocks.c (buckets in blocks)
 * and news.c (how workers wait for each other). */
#ifndef WORKER_EXCHANGE_SHARED_GROUP_STATE_H
#define WORKER_EXCHANGE_SHARED_GROUP_STATE_H

#include "common/job/carriers.h"
#include "worker/exchange/shared/bell.h"
#include "worker/exchange/shared/bounce.h"
#include "worker/exchange/shared/devices.h"
#include "worker/exchange/shared/group.h"
#include "worker/exchange/shared/posts.h"

#include <stdatomic.h>

#define GROUP_CACHE_LINE 64

/* The counters of one bucket. They only grow, through all rounds, and wrap around. */
struct counters {
    _Alignas(GROUP_CACHE_LINE) _Atomic uint32_t arrived; // workers that have it ready
    _Atomic uint32_t taken;                              // blocks that a worker has taken
    _Atomic uint32_t finished;                           // blocks
};

/* In shared memory. */
struct board {
    _Alignas(GROUP_CACHE_LINE) struct bell bell;
    // Of each worker, by its number: the core on which it was when it last arrived, as core_now
    // says it.
    _Alignas(GROUP_CACHE_LINE) _Atomic uint32_t cores[ALL_REDUCE_SHARED_MAX];
    struct counters buckets[]; // one for each
};

struct group_algorithm;

/* A bucket, as this worker sees it. */
struct bucket_state {
    const struct group_algorithm *algorithm;
    struct posts posts;    // of a small bucket
    uint64_t block_floats; // of one in blocks
    uint32_t block_count;
    uint32_t round;     // how often this worker has arrived
    bool is_unfinished; // in this round
};

struct group {
    struct group_options options;
    struct rank_block ranks; // that this worker carries
    uint32_t process;        // its number among the workers
    struct board *board;
    bool spins;
    uint32_t core_share;   // see spread.h
    uint32_t core;         // on the board
    uint64_t moved_ns;     // when it last left a core to other workers
    struct bounce *bounce; // or NULL
    struct bucket_state *buckets;
    bool has_blocks;        // buckets that are summed in blocks
    struct devices devices; // which may sum in the place of all that
    float *grads[];         // (world), unless there are bounce buffers
};

/* An algorithm for the mean of a bucket. Nothing here waits. */
struct group_algorithm {
    /* Handles that this worker's gradients are there. */
    enum status (*arrive)(struct group *group, uint32_t bucket);
    bool (*is_complete)(const struct group *group, uint32_t bucket);

    /* Writes a complete mean into this worker's gradients. NULL: it is there already. */
    void (*take_mean)(struct group *group, uint32_t bucket);
};

/* blocks.c: buckets whose blocks are summed by idle workers. */
extern const struct group_algorithm group_blocks;
void blocks_plan(struct bucket_state *state, uint64_t value_count);
bool blocks_have_work(const struct group *group); // there are blocks that no worker has taken
enum status blocks_work(struct group *group);     // works on all blocks of ready buckets

/* news.c: how a worker waits for others. */
void news_note_core(struct group *group);

bool news_are_there(const struct group *group, uint32_t bucket); // in group.c
void news_wait(struct group *group, uint32_t bucket);

#endif
