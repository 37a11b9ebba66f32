/* Loops over float vectors, once for each variant. */
#include "common/vector/vector.h"

#include "common/vector/variants.h"
#include "common/vector/vector_variants.h"

#include <stdint.h>
#include <string.h>

#define EXPONENT_MASK 0x7F800000u

// Values of each vector that are added up at a time: they stay in registers.
#define MEAN_TILE 16

// Values looked at before a vector with an infinity early on is given up.
#define FINITE_BLOCK 4096

VARIANT_BODY void add_body(float *restrict to, const float *restrict from, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        to[i] += from[i];
    }
}

VARIANT_BODY void sum_body(float *restrict to, const float *restrict a, const float *restrict b,
                           size_t count)
{
    for (size_t i = 0; i < count; i++) {
        to[i] = a[i] + b[i];
    }
}

VARIANT_BODY void scale_body(float *to, float factor, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        to[i] *= factor;
    }
}

/* Of so many values from `start` on; inlined with a constant where that is the tile. */
VARIANT_BODY void mean_tile(float *const *vectors, size_t vector_count, float factor, size_t start,
                            size_t count)
{
    float sum[MEAN_TILE];
    for (size_t i = 0; i < count; i++) {
        sum[i] = vectors[0][start + i];
    }
    for (size_t k = 1; k < vector_count; k++) {
        const float *from = vectors[k] + start;
        for (size_t i = 0; i < count; i++) {
            sum[i] += from[i];
        }
    }
    for (size_t i = 0; i < count; i++) {
        sum[i] *= factor;
    }
    for (size_t k = 0; k < vector_count; k++) {
        float *restrict to = vectors[k] + start;
        for (size_t i = 0; i < count; i++) {
            to[i] = sum[i];
        }
    }
}

VARIANT_BODY void mean_of(float *const *vectors, size_t vector_count, float factor, size_t count)
{
    size_t start = 0;
    for (; count - start >= MEAN_TILE; start += MEAN_TILE) {
        mean_tile(vectors, vector_count, factor, start, MEAN_TILE);
    }
    mean_tile(vectors, vector_count, factor, start, count - start);
}

#define MEAN_OF(constant)                          \
    case constant:                                 \
        mean_of(vectors, constant, factor, count); \
        break;

/* Where vectors are few, as constants: the loops over them are gone then. */
VARIANT_BODY void mean_body(float *const *vectors, size_t vector_count, float factor, size_t count)
{
    switch (vector_count) {
        MEAN_OF(2)
        MEAN_OF(3)
        MEAN_OF(4)
        MEAN_OF(5)
        MEAN_OF(6)
        MEAN_OF(7)
        MEAN_OF(8)
    default:
        mean_of(vectors, vector_count, factor, count);
    }
}

/* Infinities and NaNs are the floats whose exponent is all ones. */
VARIANT_BODY bool block_is_finite(const float *values, size_t count)
{
    uint32_t exponent_max = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &values[i], sizeof(bits));
        uint32_t exponent = bits & EXPONENT_MASK;
        exponent_max = exponent > exponent_max ? exponent : exponent_max;
    }
    return exponent_max != EXPONENT_MASK;
}

VARIANT_BODY bool is_finite_body(const float *values, size_t count)
{
    while (count > FINITE_BLOCK) {
        if (!block_is_finite(values, FINITE_BLOCK)) {
            return false;
        }
        values += FINITE_BLOCK;
        count -= FINITE_BLOCK;
    }
    return block_is_finite(values, count);
}

// Wrappers of the bodies; `target` is empty for the portable variant.
#define DEFINE_VARIANT(variant, target)                                                         \
    target static void add_##variant(float *to, const float *from, size_t count)                \
    {                                                                                           \
        add_body(to, from, count);                                                              \
    }                                                                                           \
    target static void sum_##variant(float *to, const float *a, const float *b, size_t count)   \
    {                                                                                           \
        sum_body(to, a, b, count);                                                              \
    }                                                                                           \
    target static void scale_##variant(float *to, float factor, size_t count)                   \
    {                                                                                           \
        scale_body(to, factor, count);                                                          \
    }                                                                                           \
    target static void mean_##variant(float *const *vectors, size_t vector_count, float factor, \
                                      size_t count)                                             \
    {                                                                                           \
        mean_body(vectors, vector_count, factor, count);                                        \
    }                                                                                           \
    target static bool is_finite_##variant(const float *values, size_t count)                   \
    {                                                                                           \
        return is_finite_body(values, count);                                                   \
    }

DEFINE_VARIANT(portable, )
DEFINE_VARIANT(avx2, VARIANT_TARGET_AVX2)
DEFINE_VARIANT(avx512, VARIANT_TARGET_AVX512)

#define OPERATIONS(variant)                                                                     \
    {                                                                                           \
        .name = #variant, .add = add_##variant, .sum = sum_##variant, .scale = scale_##variant, \
        .mean = mean_##variant, .is_finite = is_finite_##variant,                               \
    }

const struct vector_operations vector_variants[VARIANT_COUNT] = {
    [VARIANT_PORTABLE] = OPERATIONS(portable),
    [VARIANT_AVX2] = OPERATIONS(avx2),
    [VARIANT_AVX512] = OPERATIONS(avx512),
};

static const struct vector_operations *best(void)
{
    return &vector_variants[variant_best()];
}

void vector_add(float *to, const float *from, size_t count)
{
    best()->add(to, from, count);
}

void vector_sum(float *to, const float *a, const float *b, size_t count)
{
    // The loop may assume that its vectors are apart.
    if (to == a) {
        best()->add(to, b, count);
    } else if (to == b) {
        best()->add(to, a, count);
    } else {
        best()->sum(to, a, b, count);
    }
}

void vector_scale(float *to, float factor, size_t count)
{
    best()->scale(to, factor, count);
}

void vector_mean(float *const *vectors, size_t vector_count, float factor, size_t count)
{
    best()->mean(vectors, vector_count, factor, count);
}

bool vector_is_finite(const float *values, size_t count)
{
    return best()->is_finite(values, count);
}

const char *vector_variant(void)
{
    return best()->name;
}
