/* Algorithms of the all-reduce that `ring` mode runs. All of them add up chunk c of N in the order
 * of ranks c, c+1, ..., so they end with the same bits. */
#ifndef COMMON_ALL_REDUCE_H
#define COMMON_ALL_REDUCE_H

#include <stdbool.h>

#define ALL_REDUCE_DIRECT_MAX 128 // workers

enum all_reduce {
    ALL_REDUCE_RING,   // to the next worker, 2(N-1) times
    ALL_REDUCE_DIRECT, // in each other's memory: all workers on one host
    ALL_REDUCE_COUNT,
};

/* "ring" */
const char *all_reduce_name(enum all_reduce algorithm);

/* False if there is none of that name. */
bool all_reduce_find(const char *name, enum all_reduce *ret_algorithm);

#endif
