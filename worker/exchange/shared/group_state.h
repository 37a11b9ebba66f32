/* What the parts of a group share: group.c (arrive, wait), blocks.c (buckets in blocks) and news.c
 * (how workers wait for each other). */
#ifndef WORKER_EXCHANGE_SHARED_GROUP_STATE_H
#define WORKER_EXCHANGE_SHARED_GROUP_STATE_H

#include "worker/exchange/shared/bounce.h"
#include "worker/exchange/shared/group.h"
#include "worker/exchange/shared/posts.h"

#include <stdatomic.h>

#define GROUP_CACHE_LINE 64

/* Of one bucket. Counters only grow, through all rounds, and wrap around. */
struct counters {
    _Alignas(GROUP_CACHE_LINE) _Atomic uint32_t arrived; // workers that have it ready
    _Atomic uint32_t taken;                              // blocks that somebody works on, or has
    _Atomic uint32_t finished;                           // blocks
};

/* In shared memory. */
struct board {
    _Alignas(GROUP_CACHE_LINE) _Atomic uint32_t event; // changes when there is news for sleepers
    _Atomic uint32_t sleepers;                         // processes that sleep, or are about to
    // Of each worker: the core on which it was when it last arrived, as core_now says it.
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
    struct board *board;
    bool spins;
    uint32_t core_share;   // see spread.h
    uint32_t core;         // on the board
    uint64_t moved_ns;     // when it last left a core to other workers
    struct bounce *bounce; // or NULL
    struct bucket_state *buckets;
    bool has_blocks; // buckets that are summed in blocks
    float *grads[];  // (world), unless there are bounce buffers
};

/* How the mean of a bucket is taken. Nothing here waits. */
struct group_algorithm {
    /* This worker's gradients are there. */
    enum status (*arrive)(struct group *group, uint32_t bucket);
    bool (*is_complete)(const struct group *group, uint32_t bucket);

    /* Writes a complete mean into this worker's gradients; NULL: it is there. */
    void (*take_mean)(struct group *group, uint32_t bucket);
};

/* blocks.c: buckets whose blocks are summed by whoever has time. */
extern const struct group_algorithm group_blocks;
void blocks_plan(struct bucket_state *state, uint64_t value_count);
bool blocks_have_work(const struct group *group); // blocks that nobody works on
enum status blocks_work(struct group *group);     // on all there are, of buckets that are ready

/* news.c: how a worker waits for others, and tells them that it need not go on. */
void news_announce(struct board *board); // something has changed that others may wait for
void news_note_core(struct group *group);
bool news_are_there(const struct group *group, uint32_t bucket); // in group.c
void news_wait(struct group *group, uint32_t bucket);

#endif
