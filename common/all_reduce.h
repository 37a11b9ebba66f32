/* Algorithms of the all-reduce that `ring` mode runs. All of them add up chunk c of N in the order
 * of ranks c, c+1, ..., so they end with the same bits. */
#ifndef COMMON_ALL_REDUCE_H
#define COMMON_ALL_REDUCE_H

#include <stdint.h>

#define ALL_REDUCE_SHARED_MAX 128 // workers
#define ALL_REDUCE_DIRECT_MAX 64  // workers that all connect to all, unless that was asked for

enum all_reduce {
    ALL_REDUCE_RING,   // by messages: to the next worker, 2(N-1) times
    ALL_REDUCE_DIRECT, // by messages: to the worker that adds up this part, and back from it
    ALL_REDUCE_SHARED, // in each other's memory: all workers on one host
    ALL_REDUCE_COUNT,
};

/* "ring", "direct", "direct in shared memory" */
const char *all_reduce_name(enum all_reduce algorithm);

/* Up to how many bytes all-reduce by messages takes less time directly than in a ring. Both move as
 * much, but a ring of N waits for 2(N-1) messages one after the other. Beyond so many bytes that is
 * less than a tenth of its time, and the ring is taken: no worker has more than one sender.
 * latency_ns is that of a message, one way; bandwidth in bytes per second. */
uint64_t all_reduce_direct_bytes(uint32_t workers, uint64_t latency_ns, uint64_t bandwidth);

#endif
