/* Loops over tensors of bfloat16. */
#include "worker/device/cpu/bf16.h"

#include "common/vector/variants.h"

#include <math.h>

// What one thread takes at once. In elements.
#define BLOCK 16384

/* ==========================================================================================
 * Element by element
 * ========================================================================================== */

VARIANT_TARGET_AVX512 static void mask(uint16_t *restrict grad, const uint16_t *restrict data,
                                       size_t count)
{
    for (size_t i = 0; i < count; i++) {
        grad[i] = bf16_load(data[i]) > 0 ? grad[i] : 0;
    }
}

VARIANT_TARGET_AVX512 static void relu(uint16_t *data, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        data[i] = bf16_load(data[i]) < 0 ? 0 : data[i];
    }
}

VARIANT_TARGET_AVX512 static void add(uint16_t *restrict to, const uint16_t *restrict from,
                                      size_t count)
{
    for (size_t i = 0; i < count; i++) {
        to[i] = bf16_store(bf16_load(to[i]) + bf16_load(from[i]));
    }
}

static size_t block_at(size_t index, size_t count)
{
    size_t rest = count - index * BLOCK;
    return rest < BLOCK ? rest : BLOCK;
}

void bf16_mask_positive(uint16_t *grad, const uint16_t *data, size_t count, uint32_t threads)
{
    size_t blocks = (count + BLOCK - 1) / BLOCK;
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(static)
    for (size_t i = 0; i < blocks; i++) {
        mask(grad + i * BLOCK, data + i * BLOCK, block_at(i, count));
    }
}

void bf16_relu(uint16_t *data, size_t count, uint32_t threads)
{
    size_t blocks = (count + BLOCK - 1) / BLOCK;
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(static)
    for (size_t i = 0; i < blocks; i++) {
        relu(data + i * BLOCK, block_at(i, count));
    }
}

void bf16_add(uint16_t *to, const uint16_t *from, size_t count, uint32_t threads)
{
    size_t blocks = (count + BLOCK - 1) / BLOCK;
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(static)
    for (size_t i = 0; i < blocks; i++) {
        add(to + i * BLOCK, from + i * BLOCK, block_at(i, count));
    }
}

/* ==========================================================================================
 * From and to plain floats
 * ========================================================================================== */

VARIANT_TARGET_AVX512 static void sample_from_plain(struct shape shape, const float *restrict from,
                                                    uint16_t *restrict to)
{
    size_t pixels = (size_t)shape.rows * shape.columns, channels = shape.channels;
    for (size_t i = 0; i < pixels; i++) {
        for (size_t c = 0; c < channels; c++) {
            to[i * channels + c] = bf16_store(from[c * pixels + i]);
        }
    }
}

VARIANT_TARGET_AVX512 static void sample_to_plain(struct shape shape, const uint16_t *restrict from,
                                                  float *restrict to)
{
    size_t pixels = (size_t)shape.rows * shape.columns, channels = shape.channels;
    for (size_t i = 0; i < pixels; i++) {
        for (size_t c = 0; c < channels; c++) {
            to[c * pixels + i] = bf16_load(from[i * channels + c]);
        }
    }
}

static size_t sample_count(struct shape shape)
{
    return (size_t)shape.channels * shape.rows * shape.columns;
}

void bf16_from_plain(const struct tensor *tensor, const float *from, uint16_t *to, uint32_t threads)
{
    size_t stride = sample_count(tensor->shape);
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(static)
    for (size_t n = 0; n < tensor->batch; n++) {
        sample_from_plain(tensor->shape, from + n * stride, to + n * stride);
    }
}

void bf16_to_plain(const struct tensor *tensor, const uint16_t *from, float *to, uint32_t threads)
{
    size_t stride = sample_count(tensor->shape);
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(static)
    for (size_t n = 0; n < tensor->batch; n++) {
        sample_to_plain(tensor->shape, from + n * stride, to + n * stride);
    }
}

/* ==========================================================================================
 * Max pooling
 * ========================================================================================== */

#define LANES 16

typedef int16_t lanes_t __attribute__((vector_size(LANES * sizeof(int16_t))));

/* Orders elements as their values are, not-a-number above all, so that the loss shows it. */
VARIANT_BODY void rank(const lanes_t *bits, lanes_t *ret_ranks)
{
    lanes_t magnitudes = *bits & 0x7FFF;
    lanes_t is_negative = *bits < 0;
    lanes_t is_nan = magnitudes > 0x7F80;
    lanes_t ranks = (magnitudes ^ is_negative) - is_negative;
    *ret_ranks = (ranks & ~is_nan) | (is_nan & 0x7FFF);
}

/* Some channels of one result. */
VARIANT_BODY void pool_lanes(const struct op *op, const uint16_t *corner, uint16_t *y,
                             uint8_t *indices, uint32_t count)
{
    lanes_t best = {0}, value = {0}, index = {0}, ranks, other;
    memcpy(&best, corner, count * sizeof(*corner));
    rank(&best, &ranks);
    for (uint32_t tap = 1; tap < op->window * op->window; tap++) {
        size_t step = (size_t)(tap / op->window) * op->x.columns + tap % op->window;
        memcpy(&value, corner + step * op->x.channels, count * sizeof(*corner));
        rank(&value, &other);
        lanes_t is_better = other > ranks; // of equal ones the first
        best = (best & ~is_better) | (value & is_better);
        ranks = (ranks & ~is_better) | (other & is_better);
        index = (index & ~is_better) | (is_better & (int16_t)tap);
    }
    memcpy(y, &best, count * sizeof(*y));
    for (uint32_t lane = 0; lane < count; lane++) {
        indices[lane] = (uint8_t)index[lane];
    }
}

/* One row of results: y and indices (Q, C). */
VARIANT_TARGET_AVX512 static void pool_row(const struct op *op, const uint16_t *x, uint16_t *y,
                                           uint8_t *indices)
{
    size_t channels = op->x.channels;
    for (size_t q = 0; q < op->y.columns; q++) {
        for (size_t c = 0; c < channels; c += LANES) {
            const uint16_t *corner = x + q * op->stride * channels + c;
            size_t at = q * channels + c;
            if (c + LANES <= channels) {
                pool_lanes(op, corner, y + at, indices + at, LANES);
            } else {
                pool_lanes(op, corner, y + at, indices + at, (uint32_t)(channels - c));
            }
        }
    }
}

void bf16_max_pool(const struct bf16_pool *pool, const uint16_t *x, uint16_t *y)
{
    const struct op *op = pool->op;
    size_t row = (size_t)op->y.columns * op->y.channels;
    size_t x_row = (size_t)op->x.columns * op->x.channels;
#pragma omp parallel for num_threads(pool->threads) if (pool->threads > 1) schedule(static)
    for (size_t i = 0; i < (size_t)pool->batch * op->y.rows; i++) {
        size_t n = i / op->y.rows, p = i % op->y.rows;
        pool_row(op, x + (n * op->x.rows + p * op->stride) * x_row, y + i * row,
                 pool->indices + i * row);
    }
}

/* Adds to `sums` (C) what one window hands to its tap. */
VARIANT_TARGET_AVX512 static void add_from_window(const uint16_t *restrict dy,
                                                  const uint8_t *restrict indices, uint8_t tap,
                                                  float *restrict sums, size_t channels)
{
    for (size_t c = 0; c < channels; c++) {
        sums[c] += indices[c] == tap ? bf16_load(dy[c]) : 0;
    }
}

VARIANT_TARGET_AVX512 static void store_row(uint16_t *restrict to, const float *restrict sums,
                                            size_t channels)
{
    for (size_t c = 0; c < channels; c++) {
        to[c] = bf16_store(sums[c]);
    }
}

#define CHANNELS_AT_ONCE 256

/* A pixel of x, and some of its channels. */
struct pixel {
    size_t row, column, channels;
};

/* The gradient of a pixel: from the windows whose largest element it was. */
static void gather_pixel(const struct op *op, const uint16_t *dy, const uint8_t *indices,
                         const struct pixel *pixel, uint16_t *dx)
{
    float sums[CHANNELS_AT_ONCE];
    memset(sums, 0, pixel->channels * sizeof(*sums));
    for (uint32_t tap = 0; tap < op->window * op->window; tap++) {
        size_t down = tap / op->window, right = tap % op->window;
        bool is_corner = pixel->row >= down && pixel->column >= right &&
                         (pixel->row - down) % op->stride == 0 &&
                         (pixel->column - right) % op->stride == 0;
        size_t p = (pixel->row - down) / op->stride, q = (pixel->column - right) / op->stride;
        if (is_corner && p < op->y.rows && q < op->y.columns) {
            size_t at = (p * op->y.columns + q) * op->y.channels;
            add_from_window(dy + at, indices + at, (uint8_t)tap, sums, pixel->channels);
        }
    }
    store_row(dx, sums, pixel->channels);
}

/* A row of gradients, (columns, C), of windows that overlap; dy and indices are the sample's. */
static void gather_row(const struct op *op, const uint16_t *dy, const uint8_t *indices, size_t row,
                       uint16_t *dx)
{
    size_t channels = op->x.channels;
    for (size_t column = 0; column < op->x.columns; column++) {
        for (size_t c = 0; c < channels; c += CHANNELS_AT_ONCE) {
            size_t rest = channels - c;
            struct pixel pixel = {
                .row = row,
                .column = column,
                .channels = rest < CHANNELS_AT_ONCE ? rest : CHANNELS_AT_ONCE,
            };
            gather_pixel(op, dy + c, indices + c, &pixel, dx + column * channels + c);
        }
    }
}

/* The same where each pixel is in one window at most. */
VARIANT_TARGET_AVX512 static void pick_row(const struct op *op, const uint16_t *dy,
                                           const uint8_t *indices, size_t row, uint16_t *dx)
{
    size_t channels = op->x.channels, p = row / op->stride, down = row % op->stride;
    for (size_t column = 0; column < op->x.columns; column++) {
        size_t q = column / op->stride, right = column % op->stride;
        size_t at = (p * op->y.columns + q) * channels, tap = down * op->window + right;
        uint16_t *restrict to = dx + column * channels;
        if (down >= op->window || right >= op->window || p >= op->y.rows || q >= op->y.columns) {
            memset(to, 0, channels * sizeof(*to));
            continue;
        }
#pragma omp simd
        for (size_t c = 0; c < channels; c++) {
            to[c] = indices[at + c] == tap ? dy[at + c] : 0;
        }
    }
}

void bf16_max_pool_back(const struct bf16_pool *pool, const uint16_t *dy, uint16_t *dx)
{
    const struct op *op = pool->op;
    size_t y_sample = sample_count(op->y), x_row = (size_t)op->x.columns * op->x.channels;
#pragma omp parallel for num_threads(pool->threads) if (pool->threads > 1) schedule(static)
    for (size_t i = 0; i < (size_t)pool->batch * op->x.rows; i++) {
        size_t row = i % op->x.rows, sample = i / op->x.rows * y_sample;
        if (op->stride >= op->window) {
            pick_row(op, dy + sample, pool->indices + sample, row, dx + i * x_row);
        } else {
            gather_row(op, dy + sample, pool->indices + sample, row, dx + i * x_row);
        }
    }
}
