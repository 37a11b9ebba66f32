/* Two passes, along rows and then along columns, by scale_axis.h. */
#include "worker/data/images/square.h"

#include "worker/data/images/square_loops.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define CHANNELS SQUARE_CHANNELS

/* Memory that grows as images need it. */
struct room {
    uint8_t *bytes; // owned
    size_t capacity;
};

/* An axis, and what it was planned for: images of a size have the same. */
struct planned {
    struct scale_axis axis;
    struct scale_part part;
};

struct square {
    uint32_t size;
    struct planned columns, rows;
    const struct square_loops *loops; // for this machine
    struct room narrow;               // (rows of the source, 3, pitch): after the first pass
    struct room band;                 // of the source, turned
    uint8_t *result;                  // (square_room_result): a band of the first pass, turned
    uint8_t *stored;  // (3, size, size): after the second, of an image that has to be turned
    struct room last; // the last rows of the source and SQUARE_BEHIND bytes
};

enum status square_create(uint32_t size, struct square **ret_square)
{
    struct square *square = calloc(1, sizeof(*square));
    if (square == NULL) {
        return STATUS_NO_MEMORY;
    }
    square->size = size;
    square->loops = &square_loops[variant_best()];
    square->columns.axis.taps = calloc(size, sizeof(struct scale_tap));
    square->rows.axis.taps = calloc(size, sizeof(struct scale_tap));
    square->result = calloc(1, square_room_result(size));
    square->stored = calloc((size_t)size * size, CHANNELS);
    if (square->columns.axis.taps == NULL || square->rows.axis.taps == NULL ||
        square->result == NULL || square->stored == NULL) {
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
    free(square->columns.axis.taps);
    free(square->columns.axis.weights);
    free(square->rows.axis.taps);
    free(square->rows.axis.weights);
    free(square->narrow.bytes);
    free(square->band.bytes);
    free(square->result);
    free(square->last.bytes);
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

static bool is_same(const struct scale_part *one, const struct scale_part *other)
{
    return one->begin == other->begin && one->side == other->side && one->low == other->low &&
           one->high == other->high;
}

static enum status plan_axis(struct planned *planned, uint32_t size, struct scale_part part)
{
    if (is_same(&planned->part, &part)) {
        return STATUS_OK;
    }
    struct scale_axis *axis = &planned->axis;
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
    planned->part = part;
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

/* ---- passes ---- */

static enum status make_room(struct room *room, size_t needed)
{
    if (needed <= room->capacity) {
        return STATUS_OK;
    }
    uint8_t *grown = realloc(room->bytes, needed);
    if (grown == NULL) {
        return STATUS_NO_MEMORY;
    }
    room->bytes = grown;
    room->capacity = needed;
    return STATUS_OK;
}

/* Behind the last row or column of the source that an axis needs. */
static uint32_t end_of(const struct scale_axis *axis, uint32_t size)
{
    return axis->taps[size - 1].first + axis->taps[size - 1].count;
}

/* How many of the last rows have too few bytes of others behind them. */
static uint32_t count_last(const struct square_source *source)
{
    size_t row_bytes = (size_t)source->width * CHANNELS;
    size_t count = (SQUARE_BEHIND + row_bytes - 1) / row_bytes;
    return count < source->height ? (uint32_t)count : source->height;
}

/* Bands are whole: room for rows that there are not. */
static enum status make_rooms(struct square *square, const struct square_source *source)
{
    const struct scale_axis *columns = &square->columns.axis, *rows = &square->rows.axis;
    uint32_t size = square->size, last = count_last(source);
    uint32_t row_count = end_of(rows, size) - rows->taps[0].first;
    uint32_t column_count = end_of(columns, size) - columns->taps[0].first;
    size_t row_bytes = (size_t)source->width * CHANNELS;
    size_t narrow = ((size_t)row_count + SQUARE_BAND - 1) * square_pitch(size) * CHANNELS;
    if (make_room(&square->narrow, narrow) != STATUS_OK ||
        make_room(&square->band, square_room_source(column_count)) != STATUS_OK ||
        make_room(&square->last, last * row_bytes + SQUARE_BEHIND) != STATUS_OK) {
        return STATUS_NO_MEMORY;
    }
    memcpy(square->last.bytes, source->pixels + (source->height - last) * row_bytes,
           last * row_bytes);
    memset(square->last.bytes + last * row_bytes, 0, SQUARE_BEHIND);
    return STATUS_OK;
}

/* A row, behind which SQUARE_BEHIND bytes can be read. */
static const uint8_t *row_of(const struct square *square, const struct square_source *source,
                             uint32_t row)
{
    size_t row_bytes = (size_t)source->width * CHANNELS;
    uint32_t others = source->height - count_last(source);
    return row < others ? source->pixels + row * row_bytes
                        : square->last.bytes + (row - others) * row_bytes;
}

/* Along rows: of those from `first` to `end`. */
static void narrow_rows(const struct square *square, const struct square_source *source,
                        uint32_t first, uint32_t end)
{
    const struct scale_axis *columns = &square->columns.axis;
    uint32_t size = square->size;
    size_t pitch = square_pitch(size), row_bytes = pitch * CHANNELS;
    if (scale_axis_is_plain(columns, size)) {
        size_t left = (size_t)columns->taps[0].first * CHANNELS;
        for (uint32_t row = first; row < end; row++) {
            square->loops->part(row_of(square, source, row) + left, size, pitch,
                                square->narrow.bytes + (row - first) * row_bytes);
        }
        return;
    }
    const struct square_band band = {.axis = columns,
                                     .size = size,
                                     .first = columns->taps[0].first,
                                     .end = end_of(columns, size),
                                     .source = square->band.bytes,
                                     .result = square->result};
    for (uint32_t row = first; row < end; row += SQUARE_BAND) {
        const uint8_t *from[SQUARE_BAND];
        for (uint32_t i = 0; i < SQUARE_BAND; i++) {
            // The last one again where there are no more.
            from[i] = row_of(square, source, row + i < end ? row + i : end - 1);
        }
        square->loops->narrow(&band, from, square->narrow.bytes + (row - first) * row_bytes);
    }
}

/* Both passes; the result is as it was stored, not turned. */
static void scale(const struct square *square, const struct square_source *source,
                  uint8_t *ret_pixels)
{
    const struct scale_axis *rows = &square->rows.axis;
    uint32_t size = square->size, first = rows->taps[0].first;
    size_t pitch = square_pitch(size), row_bytes = pitch * CHANNELS, plane = (size_t)size * size;
    narrow_rows(square, source, first, end_of(rows, size));
    bool has_plain_rows = scale_axis_is_plain(rows, size);
    for (uint32_t row = 0; row < size; row++) {
        const struct scale_tap *tap = &rows->taps[row];
        const uint8_t *from = square->narrow.bytes + (tap->first - first) * row_bytes;
        for (size_t c = 0; c < CHANNELS; c++) {
            if (has_plain_rows) {
                memcpy(ret_pixels + c * plane + (size_t)row * size, from + c * pitch, size);
                continue;
            }
            square->loops->join(tap, rows->weights + tap->weights_at, from + c * pitch, row_bytes,
                                size, ret_pixels + c * plane + (size_t)row * size);
        }
    }
}

enum status square_make(struct square *square, const struct square_source *source,
                        uint8_t *ret_pixels)
{
    bool is_upright = source->orientation == 1;
    if (plan_axes(square, source) != STATUS_OK || make_rooms(square, source) != STATUS_OK) {
        return STATUS_NO_MEMORY;
    }
    scale(square, source, is_upright ? ret_pixels : square->stored);
    if (!is_upright) {
        turn_upright(square, source->orientation, ret_pixels);
    }
    return STATUS_OK;
}
