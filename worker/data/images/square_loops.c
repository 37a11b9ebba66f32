/* Sums of 32 bits: along rows those of a pixel's channels in two rows at once, across rows those of
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

typedef uint8_t vector_bytes __attribute__((vector_size(32)));
typedef uint16_t vector_halves __attribute__((vector_size(32)));
typedef uint32_t vector_words __attribute__((vector_size(32)));
// Of a pixel's channels, and of a byte of the next one, which is dropped.
typedef int32_t pixel_sums __attribute__((vector_size(16)));
typedef int32_t pair_sums __attribute__((vector_size(32))); // the same of two rows

/* Adds a pixel of both rows. Their channels are made 32 bits each by interleaving them with zeros
 * twice, which every instruction set does well. Little-endian. (Vectors of 32 bytes are neither
 * taken nor returned: how is another thing in each instruction set.) */
VARIANT_BODY void add_pixel(const uint8_t *const from[2], size_t at, int32_t weight,
                            pair_sums *sums)
{
    const vector_bytes zeros = {0};
    uint32_t first, second;
    memcpy(&first, from[0] + at, sizeof(first));
    memcpy(&second, from[1] + at, sizeof(second));
    const vector_words words = {first, 0, 0, 0, second, 0, 0, 0};
    vector_halves halves = (vector_halves)MIX((vector_bytes)words, zeros, 0, 32, 1, 33, 2, 34, 3,
                                              35, 4, 36, 5, 37, 6, 38, 7, 39, 16, 48, 17, 49, 18,
                                              50, 19, 51, 20, 52, 21, 53, 22, 54, 23, 55);
    *sums += (pair_sums)MIX(halves, (vector_halves)zeros, 0, 16, 1, 17, 2, 18, 3, 19, 8, 24, 9, 25,
                            10, 26, 11, 27) *
             weight;
}

/* Inlined with a constant for the counts that are frequent. */
VARIANT_BODY void add_pixels(const uint8_t *const from[2], size_t at, const int32_t *weights,
                             uint32_t count, pair_sums *sums)
{
    for (uint32_t k = 0; k < count; k++) {
        add_pixel(from, at + (size_t)k * SQUARE_CHANNELS, weights[k], sums);
    }
}

VARIANT_BODY void sum_tap(const struct scale_tap *tap, const uint8_t *const from[2],
                          const int32_t *weights, pixel_sums ret_sums[2])
{
    size_t at = (size_t)tap->first * SQUARE_CHANNELS;
    pair_sums sums = {0};
    switch (tap->count) {
    case 2:
        add_pixels(from, at, weights, 2, &sums);
        break;
    case 3:
        add_pixels(from, at, weights, 3, &sums);
        break;
    case 4:
        add_pixels(from, at, weights, 4, &sums);
        break;
    default:
        add_pixels(from, at, weights, tap->count, &sums);
    }
    memcpy(ret_sums, &sums, sizeof(sums));
}

VARIANT_BODY void put_tile(const pixel_sums *tile, uint32_t size, uint32_t count, uint8_t *to)
{
    for (uint32_t i = 0; i < count; i++) {
        for (size_t c = 0; c < SQUARE_CHANNELS; c++) {
            to[c * size + i] = scale_round(tile[i][c]);
        }
    }
}

/* Of `count` pixels of the result, from `at` on. Inlined with a constant where that is the tile. */
VARIANT_BODY void narrow_tile(const struct scale_axis *axis, const uint8_t *const from[2],
                              uint32_t size, uint32_t at, uint32_t count, uint8_t *const to[2])
{
    pixel_sums tiles[2][TILE];
    for (uint32_t i = 0; i < count; i++) {
        const struct scale_tap *tap = &axis->taps[at + i];
        pixel_sums sums[2];
        sum_tap(tap, from, axis->weights + tap->weights_at, sums);
        tiles[0][i] = sums[0];
        tiles[1][i] = sums[1];
    }
    put_tile(tiles[0], size, count, to[0] + at);
    put_tile(tiles[1], size, count, to[1] + at);
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

VARIANT_BODY void narrow_body(const struct scale_axis *axis, uint32_t size,
                              const uint8_t *const from[2], uint8_t *const to[2])
{
    uint32_t i = 0;
    for (; i + TILE <= size; i += TILE) {
        narrow_tile(axis, from, size, i, TILE, to);
    }
    if (i < size) {
        narrow_tile(axis, from, size, i, size - i, to);
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
                                     const uint8_t *const from[2], uint8_t *const to[2])          \
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
