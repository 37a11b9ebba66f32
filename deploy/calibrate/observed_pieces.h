/* The pieces that steps fall into, and how long each of them takes. Pure.
 *
 * What a piece takes is what it takes at most in the quickest tenth of all steps. Where something
 * else has the core for a while, a piece takes many times as long, which a mean would count as the
 * piece's own. On a busy machine more than half of a long piece's slices are interrupted, so a
 * median would count it too. */
#ifndef DEPLOY_CALIBRATE_OBSERVED_PIECES_H
#define DEPLOY_CALIBRATE_OBSERVED_PIECES_H

#include "common/base/status.h"
#include "common/vector/layout.h"
#include "deploy/predict/basis/costs.h"
#include "deploy/predict/basis/spread.h"

#include <stddef.h>
#include <stdint.h>

enum observed_piece {
    OBSERVED_REST,    // what is no other piece
    OBSERVED_FORWARD, // all of it, but for what lies in layers
    OBSERVED_BUCKETS, // likewise: backward of each bucket
    OBSERVED_LAYERS = OBSERVED_BUCKETS + LAYOUT_BUCKETS_MAX, // of each: forward, then backward
    OBSERVED_PIECES = OBSERVED_LAYERS + 2 * COSTS_LAYERS_MAX
};

/* A slice of a piece in a step. */
struct observed_slice {
    size_t step;
    uint32_t piece;
    double seconds;
};

struct observed_pieces {
    struct observed_slice *list; // (count), owned
    size_t count, room;
};

/* Room for so many slices. observed_pieces_finish frees it. */
enum status observed_pieces_init(struct observed_pieces *pieces, size_t room);
void observed_pieces_finish(struct observed_pieces *pieces); // zeroed is fine

/* Of a step a piece may have several slices. */
void observed_pieces_add(struct observed_pieces *pieces, size_t step, uint32_t piece,
                         double seconds);

/* Of each piece (OBSERVED_PIECES) the seconds that nine of ten steps take at least; a step without
 * a slice of it counts as 0. Sorts the list. */
enum status observed_pieces_tenths(struct observed_pieces *pieces, size_t step_count,
                                   double *ret_seconds);

/* By how much pieces take longer than the least, in all steps. */
struct observed_spreads {
    struct spread forward[COSTS_LAYERS_MAX], backward[COSTS_LAYERS_MAX]; // of each layer
    struct spread others; // of all pieces besides, together
};

/* Of at least one step; a step without a slice of a layer counts as 0. Sorts the list. */
enum status observed_pieces_spreads(struct observed_pieces *pieces, size_t step_count,
                                    struct observed_spreads *ret_spreads);

#endif
