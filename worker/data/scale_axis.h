/* How one axis of an image is scaled: which pixels of the source make each pixel of the result, and
 * by which weights. The filter is a triangle, as wide as a pixel of the result, so nothing is
 * skipped where images shrink; where they grow it is bilinear. Weights are whole numbers, so all
 * machines get the same bits: those of Pillow's BILINEAR. Pure. */
#ifndef WORKER_DATA_SCALE_AXIS_H
#define WORKER_DATA_SCALE_AXIS_H

#include "common/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SCALE_WEIGHT_BITS 22 // behind the point
// Of all weights of a tap: 255 times that rounds to 255.
#define SCALE_WEIGHTS_MAX ((1 << SCALE_WEIGHT_BITS) + 8000)

/* The pixels of an axis of the source that make one of the result. */
struct scale_tap {
    uint32_t first, count;
    size_t weights_at;
};

/* An axis of the result. */
struct scale_axis {
    struct scale_tap *taps; // (size)
    int32_t *weights;       // (capacity), of all taps
    size_t capacity;
};

/* Of the source: from `begin` on, `side` pixels become those of the result; pixels outside of `low`
 * to `high` are not used. */
struct scale_part {
    double begin, side;
    uint32_t low, high;
};

/* How many weights a part needs at most. */
size_t scale_axis_weights(uint32_t size, const struct scale_part *part);

/* Fills taps and weights. There is room for these. A tap neither begins nor ends with a weight of
 * 0, unless it has no other. Its sum is SCALE_WEIGHTS_MAX at most. */
void scale_axis_plan(struct scale_axis *axis, uint32_t size, const struct scale_part *part);

/* Whether pixels stay what they are: those of the result are `size` of the source, one after the
 * other. */
bool scale_axis_is_plain(const struct scale_axis *axis, uint32_t size);

/* A sum of weighted bytes as a byte. */
static inline uint8_t scale_round(int32_t sum)
{
    int32_t value = (sum + (1 << (SCALE_WEIGHT_BITS - 1))) >> SCALE_WEIGHT_BITS;
    return (uint8_t)(value > 255 ? 255 : value);
}

#endif
