/* Sums of 32 bits, of 32 bytes at a time: four of them in each of eight words. */
#include "worker/data/images/square_loops.h"

#include <string.h>

#define BLOCK  SQUARE_BAND                             // bytes that are summed at once
#define TILE   ((size_t)16)                            // rows and columns that are turned at once
#define PIXEL  ((size_t)SQUARE_CHANNELS * SQUARE_BAND) // bytes of one in a band that is turned
#define PARTS  4                                       // of a word
#define LOWEST 255u
#define LEFT   (24 - SCALE_WEIGHT_BITS) // by which weights are shifted
#define HALF   (1u << 23)

// Elements of two vectors, by their numbers.
#if defined(__clang__)
#define MIX(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define MIX(a, b, ...) __builtin_shuffle(a, b, (__typeof__(a)){__VA_ARGS__})
#endif

typedef uint8_t tile_row __attribute__((vector_size(16)));
// (Vectors of 32 bytes are neither taken nor returned: how is another thing in each instruction
// set.)
typedef uint32_t block_words __attribute__((vector_size(BLOCK)));

_Static_assert(sizeof(block_words) == BLOCK && PARTS * 8 == 32, "words have four bytes");

/* ---- sums ---- */

/* Adds 32 bytes, the lowest of each word to the first sums. */
VARIANT_BODY void add_block(const uint8_t *from, uint32_t weight, block_words sums[PARTS])
{
    block_words words;
    memcpy(&words, from, sizeof(words));
    sums[0] += (words & LOWEST) * weight;
    sums[1] += (words >> 8 & LOWEST) * weight;
    sums[2] += (words >> 16 & LOWEST) * weight;
    sums[3] += (words >> 24) * weight;
}

/* scale_round of sums that have HALF already, for which the highest byte of each word is enough:
 * weights are so far to the left, and their sum is never too large (SCALE_WEIGHTS_MAX). */
VARIANT_BODY void round_block(const block_words sums[PARTS], uint8_t *to)
{
    block_words bytes = sums[0] >> 24;
    bytes |= sums[1] >> 16 & LOWEST << 8;
    bytes |= sums[2] >> 8 & LOWEST << 16;
    bytes |= sums[3] & LOWEST << 24;
    memcpy(to, &bytes, sizeof(bytes));
}

/* Inlined with a constant for the counts that are frequent. */
VARIANT_BODY void sum_blocks(const uint8_t *from, size_t stride, const int32_t *weights,
                             uint32_t count, size_t blocks, uint8_t *to)
{
    for (size_t i = 0; i < blocks; i++) {
        const block_words half = {HALF, HALF, HALF, HALF, HALF, HALF, HALF, HALF};
        block_words sums[PARTS] = {half, half, half, half};
        for (uint32_t k = 0; k < count; k++) {
            add_block(from + i * BLOCK + k * stride, (uint32_t)weights[k] << LEFT, sums);
        }
        round_block(sums, to + i * BLOCK);
    }
}

/* Adds up rows of so many blocks, which lie `stride` apart. */
VARIANT_BODY void sum_tap(const struct scale_tap *tap, const int32_t *weights, const uint8_t *from,
                          size_t stride, size_t blocks, uint8_t *to)
{
    switch (tap->count) {
    case 2:
        sum_blocks(from, stride, weights, 2, blocks, to);
        break;
    case 3:
        sum_blocks(from, stride, weights, 3, blocks, to);
        break;
    default:
        sum_blocks(from, stride, weights, tap->count, blocks, to);
    }
}

/* ---- bands ---- */

/* The number of a byte is its row and its column, four bits each. This moves each bit up by one,
 * and the highest to the lowest place. */
VARIANT_BODY void shift_places(const tile_row *from, tile_row *to)
{
    for (size_t i = 0; i < TILE / 2; i++) {
        const tile_row low = from[i], high = from[i + TILE / 2];
        to[2 * i] = MIX(low, high, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
        to[2 * i + 1] =
            MIX(low, high, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
    }
}

/* Rows become columns: four times, and the bits of rows and columns have changed places. */
VARIANT_BODY void turn_tile(tile_row *rows, uint8_t *to, size_t stride)
{
    tile_row other[TILE];
    shift_places(rows, other);
    shift_places(other, rows);
    shift_places(rows, other);
    shift_places(other, rows);
    for (size_t i = 0; i < TILE; i++) {
        memcpy(to + i * stride, &rows[i], sizeof(rows[i]));
    }
}

/* To (bytes of a row, SQUARE_BAND). */
VARIANT_BODY void turn_band(const uint8_t *const *from, size_t begin, size_t end, uint8_t *to)
{
    for (size_t at = begin; at < end; at += TILE) {
        for (size_t half = 0; half < SQUARE_BAND; half += TILE) {
            tile_row rows[TILE];
            for (size_t i = 0; i < TILE; i++) {
                memcpy(&rows[i], from[half + i] + at, sizeof(rows[i]));
            }
            turn_tile(rows, to + (at - begin) * SQUARE_BAND + half, SQUARE_BAND);
        }
    }
}

/* From (size, 3, SQUARE_BAND) to (SQUARE_BAND, 3, pitch). */
VARIANT_BODY void turn_back(const uint8_t *from, uint32_t size, uint8_t *to)
{
    size_t pitch = square_pitch(size), row_bytes = pitch * SQUARE_CHANNELS;
    for (size_t at = 0; at < size; at += TILE) {
        // By channel and by half of the band.
        for (size_t part = 0; part < PIXEL; part += TILE) {
            tile_row rows[TILE];
            for (size_t i = 0; i < TILE; i++) {
                memcpy(&rows[i], from + (at + i) * PIXEL + part, sizeof(rows[i]));
            }
            turn_tile(rows, to + part % SQUARE_BAND * row_bytes + part / SQUARE_BAND * pitch + at,
                      row_bytes);
        }
    }
}

VARIANT_BODY void narrow_body(const struct square_band *band, const uint8_t *const *from,
                              uint8_t *to)
{
    const struct scale_axis *axis = band->axis;
    turn_band(from, (size_t)band->first * SQUARE_CHANNELS, (size_t)band->end * SQUARE_CHANNELS,
              band->source);
    for (uint32_t i = 0; i < band->size; i++) {
        const struct scale_tap *tap = &axis->taps[i];
        sum_tap(tap, axis->weights + tap->weights_at,
                band->source + (tap->first - band->first) * PIXEL, PIXEL, SQUARE_CHANNELS,
                band->result + i * PIXEL);
    }
    turn_back(band->result, band->size, to);
}

/* ---- the others ---- */

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

VARIANT_BODY void join_body(const struct scale_tap *tap, const int32_t *weights,
                            const uint8_t *from, size_t stride, size_t count, uint8_t *to)
{
    size_t whole = count / BLOCK * BLOCK;
    sum_tap(tap, weights, from, stride, count / BLOCK, to);
    if (whole < count) {
        uint8_t rest[BLOCK];
        sum_tap(tap, weights, from + whole, stride, 1, rest);
        memcpy(to + whole, rest, count - whole);
    }
}

#define DEFINE_LOOPS(name, target)                                                                \
    target static void narrow_##name(const struct square_band *band,                              \
                                     const uint8_t *const from[SQUARE_BAND], uint8_t *to)         \
    {                                                                                             \
        narrow_body(band, from, to);                                                              \
    }                                                                                             \
    target static void part_##name(const uint8_t *from, uint32_t size, size_t pitch, uint8_t *to) \
    {                                                                                             \
        part_body(from, size, to, to + pitch, to + 2 * pitch);                                    \
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
