/* The two passes of a scaled image, a row at a time, for each instruction set that machines have.
 * Whole numbers: all variants give the same bytes. */
#ifndef WORKER_DATA_IMAGES_SQUARE_LOOPS_H
#define WORKER_DATA_IMAGES_SQUARE_LOOPS_H

#include "common/vector/variants.h"

#include <stddef.h>
#include <stdint.h>

#define SQUARE_CHANNELS    3
#define SQUARE_WEIGHT_BITS 22 // behind the point

/* The pixels of an axis of the source that make one of the result. */
struct square_tap {
    uint32_t first, count;
    size_t weights_at;
};

/* An axis of the result. */
struct square_axis {
    struct square_tap *taps; // (size)
    int32_t *weights;        // (capacity), of all taps
    size_t capacity;
};

struct square_loops {
    /* Scales a row of pixels (width, 3), behind which a byte can be read, to (3, size). */
    void (*narrow)(const struct square_axis *axis, uint32_t size, const uint8_t *from, uint8_t *to);
    /* Adds up tap->count rows of `count` bytes that lie `stride` apart. */
    void (*join)(const struct square_tap *tap, const int32_t *weights, const uint8_t *from,
                 size_t stride, size_t count, uint8_t *to);
};

/* Only what variant_is_supported allows may be called. */
extern const struct square_loops square_loops[VARIANT_COUNT];

#endif
