/* Gradients of the weights of 1x1 windows, from the tiles in which the library computes them.
 *
 * The library's own copy goes across the sixteen rows of a tile with every element. Where rows are
 * a multiple of 4 KiB long, they evict one another from the first cache: of 2048x1024 weights it
 * took 2.3 ms on two cores, 7 GB/s, where rows of 2 KiB went at 37. This one ends a cache line
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
