/* Floats of 16 bits: IEEE 754's half, and the upper half of a float.
 *
 * Both are done on the bits of floats, by integers, so that every variant has the same loop: to
 * round to nearest, ties to even, one adds just less than half of the last place that stays, and
 * one more if that place is odd. Halves below the smallest normal one have their last place at
 * 2^-24 instead, which is where an addition of 0.5 rounds a float. */
#include "common/codec/codec_rules.h"

// fp16
#define HALF_SHIFT      13          // places of a float that a half does not have
#define HALF_REBIAS     0x38000000u // (127 - 15) << 23: what the exponents differ by
#define HALF_NORMAL_MIN 0x38800000u // 2^-14 as a float
#define HALF_MAX        0x7BFFu     // 65504
#define HALF_INFINITY   0x7C00u
#define HALF_QUIET      0x0200u // what makes a NaN of an infinity
#define HALF_NORMAL     0x0400u // the smallest normal half

// bf16
#define BRAIN_MAX   0x7F7Fu
#define BRAIN_QUIET 0x0040u

static size_t bytes_of(const struct codec *codec, size_t count)
{
    (void)codec;
    return count * sizeof(uint16_t);
}

/* Without a branch, of which a compiler otherwise makes one, and then no vectors: what is computed
 * in floats for one side could trap. */
VARIANT_BODY uint32_t either(bool is_first, uint32_t first, uint32_t second)
{
    uint32_t mask = 0u - (uint32_t)is_first;
    return (first & mask) | (second & ~mask);
}

VARIANT_BODY uint16_t fp16_of(float value)
{
    uint32_t bits = codec_float_bits(value);
    uint32_t magnitude = bits & ~CODEC_SIGN_BIT;
    uint32_t is_odd = magnitude >> HALF_SHIFT & 1;
    uint32_t normal = (magnitude - HALF_REBIAS + 0xFFF + is_odd) >> HALF_SHIFT;
    uint32_t small = codec_float_bits(codec_bits_float(magnitude) + 0.5F) - codec_float_bits(0.5F);
    uint32_t nan = HALF_INFINITY | HALF_QUIET | (magnitude >> HALF_SHIFT & 0x3FF);
    uint32_t half = either(magnitude < HALF_NORMAL_MIN, small, normal);
    half = half > HALF_MAX ? HALF_MAX : half;
    half = either(magnitude == CODEC_INFINITY, HALF_INFINITY, half);
    half = either(magnitude > CODEC_INFINITY, nan, half);
    return (uint16_t)((bits >> 16 & 0x8000u) | half);
}

VARIANT_BODY float fp16_value(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000u) << 16;
    uint32_t magnitude = half & 0x7FFFu;
    uint32_t normal = (magnitude << HALF_SHIFT) + HALF_REBIAS;
    uint32_t small = codec_float_bits((float)(int32_t)magnitude * 0x1p-24F);
    uint32_t bits = either(magnitude < HALF_NORMAL, small, normal);
    bits += either(magnitude >= HALF_INFINITY, HALF_REBIAS, 0);
    return codec_bits_float(sign | bits);
}

VARIANT_BODY uint16_t bf16_of(float value)
{
    uint32_t bits = codec_float_bits(value);
    uint32_t magnitude = bits & ~CODEC_SIGN_BIT;
    uint32_t brain = (magnitude + 0x7FFF + (magnitude >> 16 & 1)) >> 16;
    brain = brain > BRAIN_MAX ? BRAIN_MAX : brain;
    brain = either(magnitude >= CODEC_INFINITY, magnitude >> 16, brain);
    brain |= either(magnitude > CODEC_INFINITY, BRAIN_QUIET, 0);
    return (uint16_t)((bits >> 16 & 0x8000u) | brain);
}

VARIANT_BODY float bf16_value(uint16_t brain)
{
    return codec_bits_float((uint32_t)brain << 16);
}

#define DEFINE_BODIES(kind)                                                           \
    VARIANT_BODY void kind##_encode_body(const float *restrict values, size_t count,  \
                                         uint8_t *restrict ret_bytes)                 \
    {                                                                                 \
        for (size_t i = 0; i < count; i++) {                                          \
            uint16_t encoded = kind##_of(values[i]);                                  \
            memcpy(ret_bytes + i * sizeof(encoded), &encoded, sizeof(encoded));       \
        }                                                                             \
    }                                                                                 \
    VARIANT_BODY void kind##_decode_body(const uint8_t *restrict bytes, size_t count, \
                                         enum codec_use use, float *restrict to)      \
    {                                                                                 \
        for (size_t i = 0; i < count; i++) {                                          \
            uint16_t encoded;                                                         \
            memcpy(&encoded, bytes + i * sizeof(encoded), sizeof(encoded));           \
            to[i] = codec_used(use, to[i], kind##_value(encoded));                    \
        }                                                                             \
    }

DEFINE_BODIES(fp16)
DEFINE_BODIES(bf16)
CODEC_DEFINE_LOOPS(fp16)
CODEC_DEFINE_LOOPS(bf16)

const struct codec_rule codec_rule_fp16 = {
    .name = "fp16",
    .is_tiled = true,
    .bytes = bytes_of,
    .loops = CODEC_LOOPS(fp16),
};

const struct codec_rule codec_rule_bf16 = {
    .name = "bf16",
    .is_tiled = true,
    .bytes = bytes_of,
    .loops = CODEC_LOOPS(bf16),
};
