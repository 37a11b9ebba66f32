/* Copies 16x16 elements at a time. */
#include "worker/device/cpu/tiles.h"

#define SIDE       16
#define ROWS_APART 1024 // elements, of which multiples collide

bool tiles_are_wanted(const struct onednn_layout *layout)
{
    return layout->dims[2] == 1 && layout->dims[3] == 1 && layout->dims[0] % SIDE == 0 &&
           layout->dims[1] % ROWS_APART == 0;
}

struct onednn_layout tiles_layout(const struct onednn_layout *layout)
{
    struct onednn_layout tiles = *layout;
    tiles.tag = dnnl_ABcd16b16a;
    return tiles;
}

static void tile_to_rows(const float *restrict tile, float *restrict rows, size_t row_length)
{
    for (size_t row = 0; row < SIDE; row++) {
        for (size_t column = 0; column < SIDE; column++) {
            rows[row * row_length + column] = tile[column * SIDE + row];
        }
    }
}

void tiles_to_rows(const struct onednn_layout *layout, const float *tiles, float *rows,
                   uint32_t threads)
{
    size_t row_length = (size_t)layout->dims[1], across = row_length / SIDE;
    size_t count = (size_t)layout->dims[0] / SIDE * across;
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(static)
    for (size_t i = 0; i < count; i++) {
        tile_to_rows(tiles + i * SIDE * SIDE,
                     rows + i / across * SIDE * row_length + i % across * SIDE, row_length);
    }
}
