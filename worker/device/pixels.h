/* Images as a dataset stores them, and how pixels are made of them: a device that does it itself is
 * sent a quarter of the bytes, and where images are scaled up a small part of them. All do the same
 * arithmetic in the same order, so the bits are the same.
 *
 *     v(row, column) = byte * scale + shift                      of a channel, as stored
 *     along columns, then along rows: low + (high - low) * weight */
#ifndef WORKER_DEVICE_PIXELS_H
#define WORKER_DEVICE_PIXELS_H

#include <stdint.h>

#define PIXELS_CHANNELS_MAX 3

/* Between which two stored rows, or columns, one of the sample lies. */
struct pixels_tap {
    uint32_t low, high;
    float weight; // of high
};

struct pixels_source {
    uint32_t channels, rows, columns; // stored, (C, H, W), a byte each
    float scale[PIXELS_CHANNELS_MAX], shift[PIXELS_CHANNELS_MAX];
    const struct pixels_tap *row_taps, *column_taps; // by rows and columns of the sample, borrowed;
                                                     // NULL, both: it has the stored size
};

/* Bytes of a stored sample. */
static inline uint64_t pixels_bytes(const struct pixels_source *source)
{
    return (uint64_t)source->channels * source->rows * source->columns;
}

#endif
