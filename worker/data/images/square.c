/* Two passes, along rows and then along columns, by scale_axis.h. */
#include "worker/data/images/square.h"

#include "worker/data/images/square_loops.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define CHANNELS SQUARE_CHANNELS

struct square {
    uint32_t size;
    struct scale_axis columns, rows;
    const struct square_loops *loops; // for this machine
    uint8_t *narrow;                  // (rows of the source, 3, size): after the first pass
    size_t narrow_capacity;
    uint8_t *stored; // (3, size, size): after the second, of an image that has to be turned
    uint8_t *last;   // (width of the source, 3) and a byte: the last row
    size_t last_capacity;
};

enum status square_create(uint32_t size, struct square **ret_square)
{
    struct square *square = calloc(1, sizeof(*square));
    if (square == NULL) {
        return STATUS_NO_MEMORY;
    }
    square->size = size;
    square->loops = &square_loops[variant_best()];
    square->columns.taps = calloc(size, sizeof(struct scale_tap));
    square->rows.taps = calloc(size, sizeof(struct scale_tap));
    square->stored = calloc((size_t)size * size, CHANNELS);
    if (square->columns.taps == NULL || square->rows.taps == NULL || square->stored == NULL) {
        square_destroy(square);
        return STATUS_NO_MEMORY;
    }
    *ret_square = square;
    return STATUS_OK;
}

void square_destroy(struct square *square)
{
    if (square == NULL) {
        return;
    }
    free(square->columns.taps);
    free(square->columns.weights);
    free(square->rows.taps);
    free(square->rows.weights);
    free(square->narrow);
    free(square->last);
    free(square->stored);
    free(square);
}

/* The pixels of an axis, of `extent`, that are used: the middle `side` of them, or a part. */
static struct scale_part middle_of(uint32_t extent, uint32_t side)
{
    return (struct scale_part){.begin = (extent - side) / 2.0, .side = side, .high = extent};
}

static struct scale_part part_of(uint32_t extent, double begin, double side)
{
    double end = fmin(extent, ceil(begin + side));
    return (struct scale_part){begin, side, (uint32_t)begin, (uint32_t)end};
}

static enum status plan_axis(struct scale_axis *axis, uint32_t size, struct scale_part part)
{
    size_t needed = scale_axis_weights(size, &part);
    if (needed > axis->capacity) {
        int32_t *weights = realloc(axis->weights, needed * sizeof(*weights));
        if (weights == NULL) {
            return STATUS_NO_MEMORY;
        }
        axis->weights = weights;
        axis->capacity = needed;
    }
    scale_axis_plan(axis, size, &part);
    return STATUS_OK;
}

static enum status plan_axes(struct square *square, const struct square_source *source)
{
    const struct square_part *part = &source->part;
    uint32_t side = source->width < source->height ? source->width : source->height;
    bool is_middle = part->width <= 0;
    enum status status = plan_axis(&square->columns, square->size,
                                   is_middle ? middle_of(source->width, side)
                                             : part_of(source->width, part->left, part->width));
    return status != STATUS_OK
               ? status
               : plan_axis(&square->rows, square->size,
                           is_middle ? middle_of(source->height, side)
                                     : part_of(source->height, part->top, part->height));
}

/* Where the pixel (row, column) of the upright image lies in the stored one. */
static size_t stored_place(uint32_t orientation, uint32_t size, uint32_t row, uint32_t column)
{
    uint32_t last = size - 1;
    bool is_turned = orientation >= 5; // rows are columns
    bool flips_rows = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
    bool flips_columns =
        orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
    uint32_t stored_row = is_turned ? column : row, stored_column = is_turned ? row : column;
    stored_row = flips_rows ? last - stored_row : stored_row;
    stored_column = flips_columns ? last - stored_column : stored_column;
    return (size_t)stored_row * size + stored_column;
}

static void turn_upright(const struct square *square, uint32_t orientation, uint8_t *ret_pixels)
{
    size_t plane = (size_t)square->size * square->size;
    for (uint32_t row = 0; row < square->size; row++) {
        for (uint32_t column = 0; column < square->size; column++) {
            size_t at = (size_t)row * square->size + column;
            const uint8_t *pixel =
                square->stored + stored_place(orientation, square->size, row, column);
            for (size_t c = 0; c < CHANNELS; c++) {
                ret_pixels[c * plane + at] = pixel[c * plane];
            }
        }
    }
}

static enum status make_room(uint8_t **bytes, size_t *capacity, size_t needed)
{
    if (needed <= *capacity) {
        return STATUS_OK;
    }
    uint8_t *grown = realloc(*bytes, needed);
    if (grown == NULL) {
        return STATUS_NO_MEMORY;
    }
    *bytes = grown;
    *capacity = needed;
    return STATUS_OK;
}

/* A row, behind which a byte can be read. */
static const uint8_t *row_of(const struct square *square, const struct square_source *source,
                             uint32_t row)
{
    size_t row_bytes = (size_t)source->width * CHANNELS;
    const uint8_t *pixels = source->pixels + row * row_bytes;
    if (row + 1 < source->height) {
        return pixels;
    }
    memcpy(square->last, pixels, row_bytes);
    square->last[row_bytes] = 0;
    return square->last;
}

/* Behind the last row or column of the source that an axis needs. */
static uint32_t end_of(const struct scale_axis *axis, uint32_t size)
{
    return axis->taps[size - 1].first + axis->taps[size - 1].count;
}

/* Along rows: of those from `first` to `end`. */
static void narrow_rows(const struct square *square, const struct square_source *source,
                        uint32_t first, uint32_t end)
{
    uint32_t size = square->size;
    size_t row_bytes = (size_t)size * CHANNELS;
    if (scale_axis_is_plain(&square->columns, size)) {
        size_t left = (size_t)square->columns.taps[0].first * CHANNELS;
        for (uint32_t row = first; row < end; row++) {
            square->loops->part(row_of(square, source, row) + left, size,
                                square->narrow + (row - first) * row_bytes);
        }
        return;
    }
    for (uint32_t row = first; row < end; row += 2) {
        uint32_t next = row + 1 < end ? row + 1 : row; // where one is left, it is made twice
        const uint8_t *const from[2] = {row_of(square, source, row), row_of(square, source, next)};
        uint8_t *const to[2] = {square->narrow + (row - first) * row_bytes,
                                square->narrow + (next - first) * row_bytes};
        square->loops->narrow(&square->columns, size, from, to);
    }
}

/* Both passes; the result is as it was stored, not turned. */
static void scale(const struct square *square, const struct square_source *source,
                  uint8_t *ret_pixels)
{
    const struct scale_axis *rows = &square->rows;
    uint32_t size = square->size, first = rows->taps[0].first;
    size_t row_bytes = (size_t)size * CHANNELS, plane = (size_t)size * size;
    narrow_rows(square, source, first, end_of(rows, size));
    bool has_plain_rows = scale_axis_is_plain(rows, size);
    for (uint32_t row = 0; row < size; row++) {
        const struct scale_tap *tap = &rows->taps[row];
        const uint8_t *from = square->narrow + (tap->first - first) * row_bytes;
        for (size_t c = 0; c < CHANNELS; c++) {
            if (has_plain_rows) {
                memcpy(ret_pixels + c * plane + (size_t)row * size, from + c * size, size);
                continue;
            }
            square->loops->join(tap, rows->weights + tap->weights_at, from + c * size, row_bytes,
                                size, ret_pixels + c * plane + (size_t)row * size);
        }
    }
}

enum status square_make(struct square *square, const struct square_source *source,
                        uint8_t *ret_pixels)
{
    uint32_t size = square->size;
    bool is_upright = source->orientation == 1;
    if (plan_axes(square, source) != STATUS_OK ||
        make_room(&square->last, &square->last_capacity, (size_t)source->width * CHANNELS + 1) !=
            STATUS_OK) {
        return STATUS_NO_MEMORY;
    }
    uint32_t row_count = end_of(&square->rows, size) - square->rows.taps[0].first;
    if (make_room(&square->narrow, &square->narrow_capacity, (size_t)row_count * size * CHANNELS) !=
        STATUS_OK) {
        return STATUS_NO_MEMORY;
    }
    scale(square, source, is_upright ? ret_pixels : square->stored);
    if (!is_upright) {
        turn_upright(square, source->orientation, ret_pixels);
    }
    return STATUS_OK;
}
