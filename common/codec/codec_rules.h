/* The encodings behind codec.h, one row each: how many bytes, what is valid, and their loops in
 * every variant. Private to codec*.c and their test.
 *
 * A new encoding is a file with its rule, a member of enum codec_kind and a row in codec.c. On the
 * wire everything is little-endian, as on all machines that we run on, and at any address: values
 * are moved by memcpy, of which compilers make plain loads and stores. */
#ifndef COMMON_CODEC_CODEC_RULES_H
#define COMMON_CODEC_CODEC_RULES_H

#include "common/codec/codec.h"
#include "common/vector/variants.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define CODEC_BLOCK    256 // values that int8 gives a scale in common
#define CODEC_SIGN_BIT 0x80000000u
#define CODEC_INFINITY 0x7F800000u // bits of a float; greater magnitudes are NaNs

/* Where decoded values go. */
enum codec_use {
    CODEC_SET,       // to[i] = decoded
    CODEC_ADD,       // to[i] += decoded
    CODEC_KEEP_REST, // to[i] -= decoded, and 0 where that is not finite: a residual
};

/* None of the vectors overlap. */
struct codec_loops {
    void (*encode)(const struct codec *codec, const float *values, size_t count,
                   uint8_t *ret_bytes);
    void (*decode)(const struct codec *codec, const uint8_t *bytes, size_t count,
                   enum codec_use use, float *to); // bytes that are valid
};

struct codec_rule {
    const char *name;
    bool has_share; // ":SHARE" follows
    bool is_tiled;  // a vector may be encoded some blocks of CODEC_BLOCK at a time
    size_t (*bytes)(const struct codec *codec, size_t count);
    // Of bytes of the right size; NULL: all of those.
    bool (*is_valid)(const struct codec *codec, const uint8_t *bytes, size_t count);
    struct codec_loops loops[VARIANT_COUNT];
};

extern const struct codec_rule codec_rule_none, codec_rule_fp16, codec_rule_bf16, codec_rule_int8,
    codec_rule_topk;
extern const struct codec_rule *const codec_rules[CODEC_KIND_COUNT];

VARIANT_BODY uint32_t codec_float_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

VARIANT_BODY float codec_bits_float(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

/* Without its sign; as an integer it is in the order of the magnitudes. */
VARIANT_BODY uint32_t codec_magnitude(float value)
{
    return codec_float_bits(value) & ~CODEC_SIGN_BIT;
}

/* The largest of their magnitudes. */
VARIANT_BODY uint32_t codec_largest(const float *restrict values, size_t count)
{
    // Signed, for which there is a maximum in every instruction set; magnitudes have no bit 31.
    int32_t largest = 0;
    for (size_t i = 0; i < count; i++) {
        int32_t magnitude = (int32_t)codec_magnitude(values[i]);
        largest = magnitude > largest ? magnitude : largest;
    }
    return (uint32_t)largest;
}

/* What to[i] becomes. `use` is a constant wherever a loop calls this. */
VARIANT_BODY float codec_used(enum codec_use use, float old, float decoded)
{
    if (use == CODEC_SET) {
        return decoded;
    }
    if (use == CODEC_ADD) {
        return old + decoded;
    }
    float rest = old - decoded;
    return codec_magnitude(rest) < CODEC_INFINITY ? rest : 0;
}

// Wrappers of KIND_encode_body(values, count, ret_bytes) and KIND_decode_body(bytes, count, use,
// to); `target` is empty for the portable variant.
#define CODEC_DEFINE_VARIANT(kind, variant, target)                                             \
    target static void kind##_encode_##variant(const struct codec *codec, const float *values,  \
                                               size_t count, uint8_t *ret_bytes)                \
    {                                                                                           \
        (void)codec;                                                                            \
        kind##_encode_body(values, count, ret_bytes);                                           \
    }                                                                                           \
    target static void kind##_decode_##variant(const struct codec *codec, const uint8_t *bytes, \
                                               size_t count, enum codec_use use, float *to)     \
    {                                                                                           \
        (void)codec;                                                                            \
        if (use == CODEC_SET) {                                                                 \
            kind##_decode_body(bytes, count, CODEC_SET, to);                                    \
        } else if (use == CODEC_ADD) {                                                          \
            kind##_decode_body(bytes, count, CODEC_ADD, to);                                    \
        } else {                                                                                \
            kind##_decode_body(bytes, count, CODEC_KEEP_REST, to);                              \
        }                                                                                       \
    }
#define CODEC_DEFINE_LOOPS(kind)                          \
    CODEC_DEFINE_VARIANT(kind, portable, )                \
    CODEC_DEFINE_VARIANT(kind, avx2, VARIANT_TARGET_AVX2) \
    CODEC_DEFINE_VARIANT(kind, avx512, VARIANT_TARGET_AVX512)

#define CODEC_LOOPS(kind)                                                      \
    {                                                                          \
        [VARIANT_PORTABLE] = {kind##_encode_portable, kind##_decode_portable}, \
        [VARIANT_AVX2] = {kind##_encode_avx2, kind##_decode_avx2},             \
        [VARIANT_AVX512] = {kind##_encode_avx512, kind##_decode_avx512},       \
    }

#endif
