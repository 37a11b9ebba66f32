/* The loops of square.c, for each instruction set that machines have. Whole numbers: all variants
 * give the same bytes.
 *
 * Rows are scaled along by bands: a band is turned, so that its bytes of one column lie together,
 * and a pixel of the result is a sum of such columns, as it is across rows. Then it is turned
 * back. */
#ifndef WORKER_DATA_IMAGES_SQUARE_LOOPS_H
#define WORKER_DATA_IMAGES_SQUARE_LOOPS_H

#include "common/vector/variants.h"
#include "worker/data/scale_axis.h"

#include <stddef.h>
#include <stdint.h>

#define SQUARE_CHANNELS 3
#define SQUARE_BAND     32 // rows
#define SQUARE_BEHIND   15 // bytes behind a row of the source that are read, for nothing

/* Bytes of a channel in a row that was scaled along; those behind its size are anything. */
static inline size_t square_pitch(uint32_t size)
{
    return ((size_t)size + SQUARE_BAND - 1) / SQUARE_BAND * SQUARE_BAND;
}

/* Room for a band that is turned. */
static inline size_t square_room_source(uint32_t columns)
{
    return (columns * (size_t)SQUARE_CHANNELS + SQUARE_BEHIND) * SQUARE_BAND;
}

static inline size_t square_room_result(uint32_t size)
{
    return square_pitch(size) * SQUARE_CHANNELS * SQUARE_BAND;
}

/* What scales a band along. */
struct square_band {
    const struct scale_axis *axis; // borrowed
    uint32_t size;
    uint32_t first, end; // columns of the source that the axis takes from
    uint8_t *source;     // (square_room_source), borrowed
    uint8_t *result;     // (square_room_result), borrowed; it has values
};

struct square_loops {
    /* Scales rows of pixels (width, 3), behind each of which SQUARE_BEHIND bytes can be read, to
     * (SQUARE_BAND, 3, pitch). Rows may be the same. */
    void (*narrow)(const struct square_band *band, const uint8_t *const from[SQUARE_BAND],
                   uint8_t *to);
    /* `size` pixels that stay what they are, to (3, pitch). */
    void (*part)(const uint8_t *from, uint32_t size, size_t pitch, uint8_t *to);
    /* Adds up tap->count rows of `count` bytes that lie `stride` apart, behind which a whole pitch
     * can be read. */
    void (*join)(const struct scale_tap *tap, const int32_t *weights, const uint8_t *from,
                 size_t stride, size_t count, uint8_t *to);
};

/* Only what variant_is_supported allows may be called. */
extern const struct square_loops square_loops[VARIANT_COUNT];

#endif
