/* The two passes of a scaled image, a row at a time, for each instruction set that machines have.
 * Whole numbers: all variants give the same bytes. */
#ifndef WORKER_DATA_IMAGES_SQUARE_LOOPS_H
#define WORKER_DATA_IMAGES_SQUARE_LOOPS_H

#include "common/vector/variants.h"
#include "worker/data/scale_axis.h"

#include <stddef.h>
#include <stdint.h>

#define SQUARE_CHANNELS 3

struct square_loops {
    /* Scales two rows of pixels (width, 3), behind which a byte can be read, to (3, size) each.
     * Both may be the same. */
    void (*narrow)(const struct scale_axis *axis, uint32_t size, const uint8_t *const from[2],
                   uint8_t *const to[2]);
    /* The same of `size` pixels that stay what they are. */
    void (*part)(const uint8_t *from, uint32_t size, uint8_t *to);
    /* Adds up tap->count rows of `count` bytes that lie `stride` apart. */
    void (*join)(const struct scale_tap *tap, const int32_t *weights, const uint8_t *from,
                 size_t stride, size_t count, uint8_t *to);
};

/* Only what variant_is_supported allows may be called. */
extern const struct square_loops square_loops[VARIANT_COUNT];

#endif
