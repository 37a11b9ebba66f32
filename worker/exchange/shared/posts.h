/* All-reduces a few values of workers that share memory: each posts its values, and adds up those
 * of all.
 *
 * A value crosses from core to core once for each worker, together with the number of its round,
 * and no two workers write to the same place. For few values this takes fewer transfers of cache
 * lines than any division of the work.
 *
 * A worker has two posts and uses them in turn. It writes a post again two rounds later. By then
 * all have posted in the round between, which they do only after they have read this one. */
#ifndef WORKER_EXCHANGE_SHARED_POSTS_H
#define WORKER_EXCHANGE_SHARED_POSTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Processors fetch lines in pairs: a post does not share one with another's.
#define POSTS_ALIGNMENT 128

struct posts {
    // (posts_bytes), aligned to POSTS_ALIGNMENT, zeroed before the first worker came
    unsigned char *start;
    uint32_t rank, world;
    uint64_t count; // values of a worker
};

/* Whether this many values of a worker are few enough. */
bool posts_serve(uint64_t count);

size_t posts_bytes(uint64_t count, uint32_t world);

/* Rounds begin at 1 and wrap around. */
void posts_put(const struct posts *posts, uint32_t round, const float *values);

/* Whether all workers have posted theirs. */
bool posts_are_complete(const struct posts *posts, uint32_t round);

/* Takes the mean of complete posts. The sum of chunk c of N is taken in the order of ranks c, c+1,
 * ... */
void posts_mean(const struct posts *posts, uint32_t round, float *ret_mean);

#endif
