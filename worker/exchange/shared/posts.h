/* Small all-reduces of workers that share memory: each posts its values, and adds up everybody's.
 *
 * A value crosses from core to core once on its way to each worker, together with the number of its
 * round, and nobody writes where another one writes: fewer transfers of cache lines than any
 * division of the work would take, as long as there are few values to add.
 *
 * A worker has two posts and takes them by turns. It writes one again two rounds later, and by then
 * all have posted in the round between, which they do once they have read this one. */
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

/* Whether so many values of a worker are few enough. */
bool posts_serve(uint64_t count);

size_t posts_bytes(uint64_t count, uint32_t world);

/* Rounds begin at 1 and wrap around. */
void posts_put(const struct posts *posts, uint32_t round, const float *values);

/* Whether all have put theirs. */
bool posts_are_complete(const struct posts *posts, uint32_t round);

/* Of complete posts. The sum of chunk c of N is taken in the order of ranks c, c+1, ... */
void posts_mean(const struct posts *posts, uint32_t round, float *ret_mean);

#endif
