/* Which bytes of a vector have been written. Pieces come in any order, and must not overlap. Pure.
 */
#ifndef COMMON_CHECKPOINT_PIECES_H
#define COMMON_CHECKPOINT_PIECES_H

#include "common/base/status.h"

#include <stdint.h>

#define PIECES_MAX 65536 // spans with gaps between them

struct piece {
    uint64_t begin, end; // in bytes; begin < end
};

/* Zeroed: nothing is there. Spans are ascending, and do not touch. */
struct pieces {
    struct piece *spans; // owns
    uint32_t count, room;
};

void pieces_finish(struct pieces *pieces); // zeroed is fine

/* Adds begin .. end - 1. STATUS_MALFORMED if some of it is there, or if there are more gaps than
 * anybody leaves who sends a vector; STATUS_NO_MEMORY. Then nothing has changed. */
enum status pieces_add(struct pieces *pieces, uint64_t begin, uint64_t end);

/* The first byte that is not there. */
uint64_t pieces_first_gap(const struct pieces *pieces);

/* The end of what is there. */
uint64_t pieces_end(const struct pieces *pieces);

#endif
