/* Spans of a checkpoint's vectors that a member asks the coordinator for, piece by piece, a few at
 * a time. Belongs to the thread of the channel that its messages go by; sends nothing itself. */
#ifndef COMMON_CHANNEL_FETCH_H
#define COMMON_CHANNEL_FETCH_H

#include "common/base/status.h"
#include "common/channel/piece_name.h"
#include "common/channel/wire.h"
#include "common/vector/layout.h"

#include <stdbool.h>
#include <stdint.h>

/* A span that is wanted. */
struct fetch {
    char vector[PIECE_NAME_BYTES];
    uint64_t total;   // floats that the whole vector has to have
    struct span span; // of it
    float *target;    // (span.count), borrowed
    uint64_t asked, taken;
};

struct fetch fetch_of(const char *vector, uint64_t total, struct span span, float *target);

/* The next question, if one may be asked now. Borrows from the fetch. */
bool fetch_next(struct fetch *fetch, struct wire_piece *ret_piece, struct message *ret_message);

/* PIECE. STATUS_MALFORMED: not what was asked for. STATUS_INVALID: the checkpoint has no such
 * vector. */
enum status fetch_take(struct fetch *fetch, const struct message *message);

bool fetch_is_over(const struct fetch *fetch);

#endif
