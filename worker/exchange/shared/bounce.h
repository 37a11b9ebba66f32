/* Sums vectors in each worker's own memory by way of bounce buffers, which all workers of the host
 * have mapped.
 *
 * Buckets are cut into pieces. Workers own the pieces in turn, and pieces use the buffers in turn.
 * A worker enters its values of another worker's piece into the buffer, where each worker has a
 * place of its own. Once all have, the owner adds them to the values in its vector, and writes the
 * mean there and into each place. Each worker copies it from there into its own vector, and thereby
 * leaves the buffer. All buffers together are small enough to stay in the caches. So each value is
 * read from memory once and written once, as if workers had mapped each other's vectors.
 *
 * The mean goes into each place because that costs least: its cache lines go to the owner and come
 * back. With a separate place for the mean, two lines would cross instead of one, which takes a
 * fifth more time.
 *
 * A worker enters a piece only after it has left the one that used the buffer before; by then
 * nobody reads its place. Workers have their buckets ready in the same order, and need to agree on
 * nothing else. The sum of chunk c of N is taken in the order of ranks c, c+1, ..., whichever
 * worker owns the piece. Nothing here waits. */
#ifndef WORKER_EXCHANGE_SHARED_BOUNCE_H
#define WORKER_EXCHANGE_SHARED_BOUNCE_H

#include "common/base/status.h"
#include "common/vector/layout.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BOUNCE_ALIGNMENT 64

struct bounce;

struct bounce_options {
    uint32_t rank, world; // world at most ALL_REDUCE_SHARED_MAX
    const struct layout *layout;
    float *vector;        // (layout->value_count) this worker's
    unsigned char *start; // (bounce_bytes) aligned to BOUNCE_ALIGNMENT, zeroed before the first
                          // worker came; the same memory for all
};

size_t bounce_bytes(uint32_t world);

/* Copies the options, except the layout and the memory, which it borrows until bounce_destroy. */
enum status bounce_create(const struct bounce_options *options, struct bounce **ret_bounce);
void bounce_destroy(struct bounce *bounce); // NULL is fine

/* Says that this worker's values of the bucket are ready. They may be changed until the bucket is
 * complete. */
void bounce_arrive(struct bounce *bounce, uint32_t bucket);

enum bounce_did {
    BOUNCE_NOTHING, // there is nothing to do now
    BOUNCE_WORK,
    BOUNCE_NEWS, // it did work that others may have waited for
};

/* Does one thing that needs no waiting, if there is one. */
enum bounce_did bounce_work(struct bounce *bounce);
bool bounce_has_work(const struct bounce *bounce);

/* Whether the vector holds the mean of the bucket, as last said to be ready. */
bool bounce_is_complete(const struct bounce *bounce, uint32_t bucket);

#endif
