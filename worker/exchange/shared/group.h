/* All-reduces among the workers of one host, in memory that all of them have mapped.
 *
 * Usually that is every worker's gradients, and a board with a few counters for each bucket. A
 * worker that has a bucket ready says so on the board (arrives). Once all have, the bucket is cut
 * into blocks, and each idle worker takes one after another: it adds up the vectors of all workers,
 * and writes the mean into each of them while the block is in the cache (blocks.c). So every value
 * is read once and written once for each worker, and no worker waits for one that is not running. A
 * bucket of a few values needs even less (posts.h). Gradients that are not mapped go through bounce
 * buffers behind the board (bounce.h).
 *
 * Gradients that stay on devices are summed there, if all workers' devices can (devices.h); the
 * board then has a seat for each worker, and the flags of the devices.
 *
 * The sum of chunk c of N is taken in the order of ranks c, c+1, ..., whichever worker takes it, so
 * the bits are those of the ring.
 *
 * A worker may carry several ranks. Then it arrives when all of them have the bucket, and the mean
 * goes to the vectors of all. Bounce buffers and devices are for workers that carry one each.
 *
 * Nothing here blocks but group_meet, and group_wait, which spins, then yields, then sleeps on a
 * futex. */
#ifndef WORKER_EXCHANGE_SHARED_GROUP_H
#define WORKER_EXCHANGE_SHARED_GROUP_H

#include "common/base/status.h"
#include "common/job/all_reduce.h"
#include "common/job/carriers.h"
#include "common/vector/layout.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct exchange_device;
struct group;

struct group_options {
    uint32_t rank, world; // the first rank of this worker; world at most ALL_REDUCE_SHARED_MAX
    uint32_t processes;   // that carry the ranks (carriers.h); 0: one for each
    struct rank_list left_out;
    const struct layout *layout;
    float *own;            // (layout->value_count) this worker's gradients, of its last rank
    float *const *vectors; // the same of each rank that it carries; NULL: own alone
    float *const *grads;   // (world) of each rank, as mapped here; NULL: they go by bounce buffers
    void *board; // (group_board_bytes) aligned to POSTS_ALIGNMENT (posts.h), zeroed before the
                 // first worker came; the same memory for all
};

/* Returns the bytes of a layout's board for `world` workers. A layout whose buckets are merged from
 * this one's needs no more. */
size_t group_board_bytes(const struct layout *layout, uint32_t world, bool has_bounce);

/* Copies the options, except the layout and what is mapped, which it borrows until
 * group_destroy. */
enum status group_create(const struct group_options *options, struct group **ret_group);
void group_destroy(struct group *group); // NULL is fine

/* Returns whether the workers' devices sum. All workers call it before the first bucket. Later
 * calls return the first answer. is_stopped is as in group_wait. The device is borrowed until
 * group_destroy. */
enum status group_meet(struct group *group, const struct exchange_device *device,
                       bool (*is_stopped)(void *context), void *context, bool *ret_has_met);

/* Ends the waits of devices when a job is over. Any thread. */
void group_release(struct group *group);

/* Says that this worker's gradients of the bucket are complete. Others may read and change them
 * until group_wait returns. Then does what needs no waiting, of this bucket and earlier ones.
 * STATUS_MALFORMED: the board's contents are impossible. */
enum status group_arrive(struct group *group, uint32_t bucket);

/* Helps until the bucket holds the mean of all workers. While there is nothing to do, asks
 * is_stopped(context) now and then, and returns STATUS_INTERRUPTED if it says so. */
enum status group_wait(struct group *group, uint32_t bucket, bool (*is_stopped)(void *context),
                       void *context);

#endif
