/* Sums of 32 bits: along a row those of a pixel's channels at once, across rows those of
 * neighbouring bytes. */
#include "worker/data/images/square_loops.h"

#include <string.h>

#define TILE 64 // sums that stay in registers

// Elements of two vectors, by their numbers.
#if defined(__clang__)
#define MIX(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define MIX(a, b, ...) __builtin_shuffle(a, b, (__typeof__(a)){__VA_ARGS__})
#endif

typedef uint8_t vector_bytes __attribute__((vector_size(16)));
typedef uint16_t vector_halves __attribute__((vector_size(16)));
typedef uint32_t vector_words __attribute__((vector_size(16)));
// Of a pixel's channels, and of a byte of the next one, which is dropped.
typedef int32_t pixel_sums __attribute__((vector_size(16)));

/* The channels of a pixel in 32 bits each, by interleaving them with zeros twice, which every
 * instruction set does well. Little-endian. */
VARIANT_BODY pixel_sums widen(const uint8_t *pixel)
{
    const vector_bytes zeros = {0};
    uint32_t word;
    memcpy(&word, pixel, sizeof(word));
    const vector_words words = {word, 0, 0, 0};
    vector_halves halves = (vector_halves)MIX((vector_bytes)words, zeros, 0, 16, 1, 17, 2, 18, 3,
                                              19, 4, 20, 5, 21, 6, 22, 7, 23);
    return (pixel_sums)MIX(halves, (vector_halves)zeros, 0, 8, 1, 9, 2, 10, 3, 11);
}

/* Inlined with a constant for the counts that are frequent. */
VARIANT_BODY pixel_sums sum_pixels(const uint8_t *pixel, const int32_t *weights, uint32_t count)
{
    pixel_sums sums = {0};
    for (uint32_t k = 0; k < count; k++) {
        sums += widen(pixel + (size_t)k * SQUARE_CHANNELS) * weights[k];
    }
    return sums;
}

VARIANT_BODY pixel_sums sum_tap(const struct scale_tap *tap, const uint8_t *from,
                                const int32_t *weights)
{
    const uint8_t *pixel = from + (size_t)tap->first * SQUARE_CHANNELS;
    switch (tap->count) {
    case 2:
        return sum_pixels(pixel, weights, 2);
    case 3:
        return sum_pixels(pixel, weights, 3);
    case 4:
        return sum_pixels(pixel, weights, 4);
    default:
        return sum_pixels(pixel, weights, tap->count);
    }
}

/* Of `count` pixels of the result, `to` of the first channel. Inlined with a constant where that is
 * the tile. */
VARIANT_BODY void narrow_tile(const struct scale_tap *taps, const int32_t *all_weights,
                              const uint8_t *from, uint32_t size, uint32_t count, uint8_t *to)
{
    pixel_sums tile[TILE];
    for (uint32_t i = 0; i < count; i++) {
        tile[i] = sum_tap(&taps[i], from, all_weights + taps[i].weights_at);
    }
    for (uint32_t i = 0; i < count; i++) {
        for (size_t c = 0; c < SQUARE_CHANNELS; c++) {
            to[c * size + i] = scale_round(tile[i][c]);
        }
    }
}

/* Where pixels stay what they are: their channels are set apart. */
VARIANT_BODY void part_body(const uint8_t *restrict from, size_t size, uint8_t *restrict red,
                            uint8_t *restrict green, uint8_t *restrict blue)
{
    for (size_t i = 0; i < size; i++) {
        red[i] = from[SQUARE_CHANNELS * i];
        green[i] = from[SQUARE_CHANNELS * i + 1];
        blue[i] = from[SQUARE_CHANNELS * i + 2];
    }
}

VARIANT_BODY void narrow_body(const struct scale_axis *axis, uint32_t size, const uint8_t *from,
                              uint8_t *to)
{
    uint32_t i = 0;
    for (; i + TILE <= size; i += TILE) {
        narrow_tile(axis->taps + i, axis->weights, from, size, TILE, to + i);
    }
    if (i < size) {
        narrow_tile(axis->taps + i, axis->weights, from, size, size - i, to + i);
    }
}

/* Inlined with a constant where `count` is the tile. */
VARIANT_BODY void join_tile(const struct scale_tap *tap, const int32_t *weights,
                            const uint8_t *from, size_t stride, size_t count, uint8_t *to)
{
    int32_t sums[TILE] = {0};
    for (uint32_t k = 0; k < tap->count; k++) {
        const uint8_t *row = from + k * stride;
        int32_t weight = weights[k];
        for (size_t i = 0; i < count; i++) {
            sums[i] += weight * row[i];
        }
    }
    for (size_t i = 0; i < count; i++) {
        to[i] = scale_round(sums[i]);
    }
}

VARIANT_BODY void join_body(const struct scale_tap *tap, const int32_t *weights,
                            const uint8_t *from, size_t stride, size_t count, uint8_t *to)
{
    size_t i = 0;
    for (; i + TILE <= count; i += TILE) {
        join_tile(tap, weights, from + i, stride, TILE, to + i);
    }
    if (i < count) {
        join_tile(tap, weights, from + i, stride, count - i, to + i);
    }
}

#define DEFINE_LOOPS(name, target)                                                                \
    target static void narrow_##name(const struct scale_axis *axis, uint32_t size,                \
                                     const uint8_t *from, uint8_t *to)                            \
    {                                                                                             \
        narrow_body(axis, size, from, to);                                                        \
    }                                                                                             \
    target static void part_##name(const uint8_t *from, uint32_t size, uint8_t *to)               \
    {                                                                                             \
        part_body(from, size, to, to + size, to + 2 * (size_t)size);                              \
    }                                                                                             \
    target static void join_##name(const struct scale_tap *tap, const int32_t *weights,           \
                                   const uint8_t *from, size_t stride, size_t count, uint8_t *to) \
    {                                                                                             \
        join_body(tap, weights, from, stride, count, to);                                         \
    }

DEFINE_LOOPS(portable, )
DEFINE_LOOPS(avx2, VARIANT_TARGET_AVX2)
DEFINE_LOOPS(avx512, VARIANT_TARGET_AVX512)

const struct square_loops square_loops[VARIANT_COUNT] = {
    [VARIANT_PORTABLE] = {narrow_portable, part_portable, join_portable},
    [VARIANT_AVX2] = {narrow_avx2, part_avx2, join_avx2},
    [VARIANT_AVX512] = {narrow_avx512, part_avx512, join_avx512},
};
