/* When a worker is told that its push was taken, so that it may make another. Pure.
 *
 * Where an update waits for all workers, none gets ahead of the one that has pushed least by more
 * than the window that it may have on its way: on a link that all share, bytes of a worker that is
 * ahead are of no use before the others' have come, and delay these. Otherwise it is told at once.
 *
 * The worker that has pushed least is always told at once, so none waits for ever, whatever the
 * order in which workers push their buckets. */
#ifndef PS_SERVER_SHARD_CREDITS_H
#define PS_SERVER_SHARD_CREDITS_H

#include "common/base/status.h"

#include <stdbool.h>
#include <stdint.h>

struct credit {
    uint64_t step, bytes;
    uint32_t rank, bucket;
};

/* Zeroed: nobody has pushed. */
struct credits {
    uint32_t worker_count, bucket_count;
    bool is_level;          // nobody gets ahead
    uint64_t *pushed_bytes; // (worker_count), owned
    uint64_t *taken_bytes;  // (worker_count): of those it was told of; owned
    struct credit *waiting; // (worker_count, bucket_count) pushes nobody was told of; owned
    uint32_t *first, *waiting_count; // (worker_count) of each worker's, in a circle; owned
};

/* For a phase; forgets the one before. */
enum status credits_begin(struct credits *credits, uint32_t worker_count, uint32_t bucket_count,
                          bool is_level);
void credits_finish(struct credits *credits); // zeroed is fine

/* A push has come. */
void credits_add(struct credits *credits, const struct credit *push);

/* The next push that its worker is to be told of; false if there is none. */
bool credits_take(struct credits *credits, struct credit *ret_push);

#endif
