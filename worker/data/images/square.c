/* Two passes, along rows and then along columns, with weights of 22 bits behind the point. */
#include "worker/data/images/square.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#define WEIGHT_BITS 22
#define CHANNELS    3

/* The pixels of an axis of the source that make one of the result. */
struct tap {
    uint32_t first, count;
    size_t weights_at;
};

struct axis {
    struct tap *taps; // (size)
    int32_t *weights; // (capacity), of all taps
    size_t capacity;
};

struct square {
    uint32_t size;
    struct axis columns, rows;
    uint8_t *narrow; // (rows of the source, size, 3): after the first pass
    size_t narrow_capacity;
    uint8_t *upright; // (size, size, 3): after the second
};

enum status square_create(uint32_t size, struct square **ret_square)
{
    struct square *square = calloc(1, sizeof(*square));
    if (square == NULL) {
        return STATUS_NO_MEMORY;
    }
    square->size = size;
    square->columns.taps = calloc(size, sizeof(struct tap));
    square->rows.taps = calloc(size, sizeof(struct tap));
    square->upright = calloc((size_t)size * size, CHANNELS);
    if (square->columns.taps == NULL || square->rows.taps == NULL || square->upright == NULL) {
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
    free(square->upright);
    free(square);
}

/* Writes the weights of one tap, whose sum is 1 up to rounding. */
static void fill_weights(struct tap *tap, double centre, double width, int32_t *ret_weights)
{
    double sum = 0;
    for (uint32_t i = 0; i < tap->count; i++) {
        sum += fmax(0, 1 - fabs(tap->first + i + 0.5 - centre) / width);
    }
    for (uint32_t i = 0; i < tap->count; i++) {
        double share = fmax(0, 1 - fabs(tap->first + i + 0.5 - centre) / width) / sum;
        ret_weights[i] = (int32_t)(share * (1 << WEIGHT_BITS) + 0.5);
    }
}

/* Plans an axis: `extent` pixels of the source, the middle `side` of which become `size`. */
static enum status plan_axis(struct axis *axis, uint32_t size, uint32_t extent, uint32_t side)
{
    double scale = (double)side / size, width = fmax(1, scale);
    double begin = (extent - side) / 2.0;
    size_t needed = size * ((size_t)ceil(2 * width) + 2);
    if (needed > axis->capacity) {
        int32_t *weights = realloc(axis->weights, needed * sizeof(*weights));
        if (weights == NULL) {
            return STATUS_NO_MEMORY;
        }
        axis->weights = weights;
        axis->capacity = needed;
    }
    size_t used = 0;
    for (uint32_t i = 0; i < size; i++) {
        double centre = begin + (i + 0.5) * scale;
        double low = fmax(0, centre - width + 0.5), high = fmin(extent, centre + width + 0.5);
        struct tap tap = {.first = (uint32_t)low, .weights_at = used};
        tap.count = (uint32_t)high - tap.first;
        assert(tap.count > 0 && used + tap.count <= axis->capacity);
        fill_weights(&tap, centre, width, axis->weights + used);
        used += tap.count;
        axis->taps[i] = tap;
    }
    return STATUS_OK;
}

static uint8_t round_sum(int32_t sum)
{
    int32_t value = (sum + (1 << (WEIGHT_BITS - 1))) >> WEIGHT_BITS;
    return value > 255 ? 255 : (uint8_t)value;
}

static void narrow_row(const struct square *square, const uint8_t *from, uint8_t *to)
{
    for (uint32_t i = 0; i < square->size; i++) {
        const struct tap *tap = &square->columns.taps[i];
        const int32_t *weights = square->columns.weights + tap->weights_at;
        const uint8_t *pixel = from + (size_t)tap->first * CHANNELS;
        int32_t sums[CHANNELS] = {0};
        for (uint32_t k = 0; k < tap->count; k++, pixel += CHANNELS) {
            sums[0] += weights[k] * pixel[0];
            sums[1] += weights[k] * pixel[1];
            sums[2] += weights[k] * pixel[2];
        }
        for (uint32_t c = 0; c < CHANNELS; c++) {
            to[(size_t)i * CHANNELS + c] = round_sum(sums[c]);
        }
    }
}

/* `narrow` begins at row `first` of the source. */
static void join_rows(const struct square *square, uint32_t first, uint32_t row)
{
    const struct tap *tap = &square->rows.taps[row];
    const int32_t *weights = square->rows.weights + tap->weights_at;
    size_t row_bytes = (size_t)square->size * CHANNELS;
    const uint8_t *from = square->narrow + (tap->first - first) * row_bytes;
    uint8_t *to = square->upright + row * row_bytes;
    for (size_t i = 0; i < row_bytes; i++) {
        int32_t sum = 0;
        for (uint32_t k = 0; k < tap->count; k++) {
            sum += weights[k] * from[k * row_bytes + i];
        }
        to[i] = round_sum(sum);
    }
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

static void write_planes(const struct square *square, uint32_t orientation, uint8_t *ret_pixels)
{
    size_t plane = (size_t)square->size * square->size;
    for (uint32_t row = 0; row < square->size; row++) {
        for (uint32_t column = 0; column < square->size; column++) {
            size_t at = (size_t)row * square->size + column;
            const uint8_t *pixel =
                square->upright + CHANNELS * stored_place(orientation, square->size, row, column);
            ret_pixels[at] = pixel[0];
            ret_pixels[plane + at] = pixel[1];
            ret_pixels[2 * plane + at] = pixel[2];
        }
    }
}

enum status square_make(struct square *square, const struct square_source *source,
                        uint8_t *ret_pixels)
{
    uint32_t size = square->size;
    uint32_t side = source->width < source->height ? source->width : source->height;
    if (plan_axis(&square->columns, size, source->width, side) != STATUS_OK ||
        plan_axis(&square->rows, size, source->height, side) != STATUS_OK) {
        return STATUS_NO_MEMORY;
    }
    uint32_t first = square->rows.taps[0].first;
    uint32_t end = square->rows.taps[size - 1].first + square->rows.taps[size - 1].count;
    size_t row_bytes = (size_t)size * CHANNELS, needed = (end - first) * row_bytes;
    if (needed > square->narrow_capacity) {
        uint8_t *narrow = realloc(square->narrow, needed);
        if (narrow == NULL) {
            return STATUS_NO_MEMORY;
        }
        square->narrow = narrow;
        square->narrow_capacity = needed;
    }
    for (uint32_t row = first; row < end; row++) {
        narrow_row(square, source->pixels + (size_t)row * source->width * CHANNELS,
                   square->narrow + (row - first) * row_bytes);
    }
    for (uint32_t row = 0; row < size; row++) {
        join_rows(square, first, row);
    }
    write_planes(square, source->orientation, ret_pixels);
    return STATUS_OK;
}
