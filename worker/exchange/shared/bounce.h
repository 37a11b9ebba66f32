/* All-reduce of workers on one host whose vectors lie in memory of their own: by way of a stage
 * that all of them have mapped.
 *
 * Buckets are cut into pieces, which belong to the workers by turns, and take the stage's slots by
 * turns. Whom a piece does not belong to enters its values into the slot, where each has a place of
 * its own. Once all have, the owner adds them to those in its vector, and writes the mean there and
 * into each place; from there each copies it into its own vector, and with that leaves the slot.
 * All slots together are so small that they stay in the caches: each value is read from memory once
 * and written once, as by workers that have mapped each other's vectors.
 *
 * That a place becomes the mean, and not a place for all, is what costs least: a cache line of it
 * goes to the owner and comes back. (A mean of its own would have two lines cross instead of one,
 * which takes a fifth more time.)
 *
 * A worker enters a piece only when it has left the one that had the slot before; its place is read
 * by nobody then. Workers have their buckets ready in the same order; that is all they agree upon.
 * The sum of chunk c of N is taken in the order of ranks c, c+1, ..., whoever owns it. Nothing here
 * waits. */
#ifndef WORKER_EXCHANGE_SHARED_STAGE_H
#define WORKER_EXCHANGE_SHARED_STAGE_H

#include "common/base/status.h"
#include "common/vector/layout.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STAGE_ALIGNMENT 64

struct stage;

struct stage_options {
    uint32_t rank, world; // world at most ALL_REDUCE_SHARED_MAX
    const struct layout *layout;
    float *vector;        // (layout->value_count) this worker's
    unsigned char *start; // (stage_bytes) aligned to STAGE_ALIGNMENT, zeroed before the first
                          // worker came; the same memory for all
};

size_t stage_bytes(uint32_t world);

/* Copies options but the layout and the memory, which it borrows until stage_destroy. */
enum status stage_create(const struct stage_options *options, struct stage **ret_stage);
void stage_destroy(struct stage *stage); // NULL is fine

/* This worker's values of the bucket are there, and are the stage's until it is complete. */
void stage_arrive(struct stage *stage, uint32_t bucket);

enum stage_did {
    STAGE_NOTHING, // there is nothing to do now
    STAGE_WORK,
    STAGE_NEWS, // work, which others may have waited for
};

/* Does one thing, if there is one that can be done without waiting. */
enum stage_did stage_work(struct stage *stage);
bool stage_has_work(const struct stage *stage);

/* Whether the vector holds the mean of the bucket that was last said to be ready. */
bool stage_is_complete(const struct stage *stage, uint32_t bucket);

#endif
