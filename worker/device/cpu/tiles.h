/* Copies gradients of 1x1 weights from oneDNN's tiles of 16x16 to plain rows.
 *
 * oneDNN's own copy writes to all sixteen rows of a tile in turn, one element each. Rows that are
 * a multiple of 4 KiB long evict one another from the first-level cache: 2048x1024 weights took
 * 2.3 ms on two cores, 7 GB/s, and rows of 2 KiB went at 37 GB/s. This copy finishes a cache line
 * before it begins the next. */
#ifndef WORKER_DEVICE_CPU_TILES_H
#define WORKER_DEVICE_CPU_TILES_H

#include "worker/device/cpu/onednn.h"

/* Whether `layout`, of a convolution's weights, is better read from tiles than by the library. */
bool tiles_are_wanted(const struct onednn_layout *layout);

/* The same weights in tiles: (O/16, I/16, 16 of I, 16 of O). */
struct onednn_layout tiles_layout(const struct onednn_layout *layout);

/* From tiles to rows, (O, I). */
void tiles_to_rows(const struct onednn_layout *layout, const float *tiles, float *rows,
                   uint32_t threads);

#endif
