/* Blocks of whole numbers from -127 to 127 that share a scale, max |value| / 127.
 *
 *     float scale, int8 number, int8 number, ...    for each block; the last may be shorter
 *
 * A block without anything but 0 has scale 0, and so has one of values so small (below 1.5e-36)
 * that their scale would be subnormal, and inexact. A block with a value that is not finite has
 * scale NaN. */
#include "common/codec/codec_rules.h"

#include <float.h>

#define NUMBER_MAX 127

// At 2^121 (1 + 2^-7 + 2^-14 + 2^-21), one place further, 127 times the scale would be infinite.
#define SCALE_MAX 0x1.020406p121F

// 1.5 * 2^23: a float of that size has no places behind the point, so that the addition rounds;
// then its lowest byte is that of the number.
#define ROUNDER 0x1.8p23F

static size_t bytes_of(const struct codec *codec, size_t count)
{
    (void)codec;
    return count + (count + CODEC_BLOCK - 1) / CODEC_BLOCK * sizeof(float);
}

VARIANT_BODY void encode_block(const float *restrict values, size_t count,
                               uint8_t *restrict ret_bytes)
{
    uint32_t largest = codec_largest(values, count);
    bool has_scale = largest < CODEC_INFINITY && codec_bits_float(largest) >= NUMBER_MAX * FLT_MIN;
    float scale = 0, inverse = 0;
    if (has_scale) {
        scale = codec_bits_float(largest) / NUMBER_MAX;
        scale = scale > SCALE_MAX ? SCALE_MAX : scale;
        inverse = NUMBER_MAX / codec_bits_float(largest);
    } else if (largest >= CODEC_INFINITY) {
        scale = codec_bits_float(CODEC_INFINITY | 0x400000);
    }
    memcpy(ret_bytes, &scale, sizeof(scale));
    uint8_t *restrict numbers = ret_bytes + sizeof(scale);
    if (!has_scale) {
        memset(numbers, 0, count);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        numbers[i] = (uint8_t)codec_float_bits(values[i] * inverse + ROUNDER);
    }
}

VARIANT_BODY void decode_block(const uint8_t *restrict bytes, size_t count, enum codec_use use,
                               float *restrict to)
{
    float scale;
    memcpy(&scale, bytes, sizeof(scale));
    const uint8_t *restrict numbers = bytes + sizeof(scale);
    for (size_t i = 0; i < count; i++) {
        to[i] = codec_used(use, to[i], (float)(int8_t)numbers[i] * scale);
    }
}

#define BLOCK_BYTES (sizeof(float) + CODEC_BLOCK)

VARIANT_BODY void int8_encode_body(const float *restrict values, size_t count,
                                   uint8_t *restrict ret_bytes)
{
    for (; count >= CODEC_BLOCK; count -= CODEC_BLOCK) {
        encode_block(values, CODEC_BLOCK, ret_bytes);
        values += CODEC_BLOCK;
        ret_bytes += BLOCK_BYTES;
    }
    if (count > 0) {
        encode_block(values, count, ret_bytes);
    }
}

VARIANT_BODY void int8_decode_body(const uint8_t *restrict bytes, size_t count, enum codec_use use,
                                   float *restrict to)
{
    for (; count >= CODEC_BLOCK; count -= CODEC_BLOCK) {
        decode_block(bytes, CODEC_BLOCK, use, to);
        bytes += BLOCK_BYTES;
        to += CODEC_BLOCK;
    }
    if (count > 0) {
        decode_block(bytes, count, use, to);
    }
}

CODEC_DEFINE_LOOPS(int8)

const struct codec_rule codec_rule_int8 = {
    .name = "int8",
    .is_tiled = true,
    .bytes = bytes_of,
    .loops = CODEC_LOOPS(int8),
};
