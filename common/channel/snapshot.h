/* A member's share of a checkpoint, in memory: spans of vectors as they were between two steps, and
 * how far they have been sent. Opens and sends nothing.
 *
 * All memory is taken at create, so a step copies and nothing else. The owner sees to it that one
 * thread at a time uses it: whoever fills it, then whoever sends it. */
#ifndef COMMON_CHANNEL_SNAPSHOT_H
#define COMMON_CHANNEL_SNAPSHOT_H

#include "common/base/status.h"
#include "common/channel/piece_name.h"
#include "common/channel/wire.h"
#include "common/vector/layout.h"

#include <stdbool.h>
#include <stdint.h>

#define SNAPSHOT_PIECE_FLOATS (UINT64_C(256) * 1024) // a mebibyte
#define SNAPSHOT_CREDITS      4                      // pieces on their way

struct snapshot_entry {
    char vector[PIECE_NAME_BYTES];
    uint64_t total;   // floats of the whole vector
    struct span span; // of it
    uint64_t start;   // in the memory
};

struct snapshot {
    struct snapshot_entry *entries; // (entry_count), owned
    uint32_t entry_count, capacity;
    float *memory; // (value_count), owned
    uint64_t value_count;
    uint64_t step; // that it is of

    // What was sent.
    uint32_t entry;
    uint64_t offset; // of that entry's span
    uint64_t sent_count;
    uint32_t credits;
    bool is_over; // also the closing piece
};

/* Zeroed is empty. Adds a span of a vector; an empty one is left out. */
enum status snapshot_add(struct snapshot *snapshot, const char *vector, uint64_t total,
                         struct span span);

/* Once all are added: takes memory for them. */
enum status snapshot_allocate(struct snapshot *snapshot);
void snapshot_finish(struct snapshot *snapshot); // zeroed is fine

/* Where an entry's values go. */
float *snapshot_values(struct snapshot *snapshot, uint32_t entry);

/* It is filled: nothing of it was sent. */
void snapshot_rewind(struct snapshot *snapshot, uint64_t step);

/* The next piece, if there is one and a credit for it. Borrows from the snapshot. */
bool snapshot_next(struct snapshot *snapshot, struct wire_piece *ret_piece,
                   struct message *ret_message);

#endif
