/* The workers of one host, which all-reduce in memory that all of them have mapped.
 *
 * Usually that is every worker's gradients, and a board with a few counters for each bucket. A
 * worker that has a bucket ready says so on the board (arrives). Once all have, the bucket is cut
 * into blocks, and each worker with time takes one after the other: it adds up the vectors of all
 * workers, and writes the mean into each of them, while the block is in the cache (blocks.c). So
 * every value is read once and written once for each worker, and no worker waits for one that is
 * not running. A bucket of a few values takes even less (posts.h). Gradients that are not mapped go
 * by way of bounce buffers behind the board (bounce.h).
 *
 * The sum of chunk c of N is taken in the order of ranks c, c+1, ..., whoever takes it: the bits
 * are those of the ring.
 *
 * Nothing here blocks but group_wait, which spins, then yields, then sleeps on a futex. */
#ifndef WORKER_EXCHANGE_SHARED_GROUP_H
#define WORKER_EXCHANGE_SHARED_GROUP_H

#include "common/base/status.h"
#include "common/job/all_reduce.h"
#include "common/vector/layout.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct group;

struct group_options {
    uint32_t rank, world; // world at most ALL_REDUCE_SHARED_MAX
    const struct layout *layout;
    float *own;          // (layout->value_count) this worker's gradients
    float *const *grads; // (world) of each worker, as mapped here; NULL: they go by bounce buffers
    void *board; // (group_board_bytes) aligned to POSTS_ALIGNMENT (posts.h), zeroed before the
                 // first worker came; the same memory for all
};

/* Of a layout's board, for so many workers. A layout whose buckets are merged of this one's needs
 * no more. */
size_t group_board_bytes(const struct layout *layout, uint32_t world, bool has_bounce);

/* Copies options but the layout and what is mapped, which it borrows until group_destroy. */
enum status group_create(const struct group_options *options, struct group **ret_group);
void group_destroy(struct group *group); // NULL is fine

/* This worker's gradients of the bucket are complete: others may read and change them, until
 * group_wait has returned. Then does what can be done without waiting, of this bucket and of those
 * before it. STATUS_MALFORMED: what is on the board cannot be. */
enum status group_arrive(struct group *group, uint32_t bucket);

/* Helps until the bucket holds the mean of all workers. While nothing can be done,
 * is_stopped(context) is asked now and then: if it says so, STATUS_INTERRUPTED. */
enum status group_wait(struct group *group, uint32_t bucket, bool (*is_stopped)(void *context),
                       void *context);

#endif
