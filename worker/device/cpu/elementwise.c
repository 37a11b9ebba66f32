/* Whole-tensor loops, once for each variant. */
#include "worker/device/cpu/elementwise.h"

#include "common/vector/variants.h"

#include <string.h>

// What one thread takes at once. In floats.
#define BLOCK 16384

VARIANT_BODY void mask_body(float *restrict grad, const float *restrict data, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        grad[i] = data[i] > 0 ? grad[i] : 0;
    }
}

VARIANT_BODY void relu_body(float *data, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        data[i] = data[i] > 0 ? data[i] : 0;
    }
}

VARIANT_BODY void add_bias_body(float *restrict y, const float *restrict bias, size_t count,
                                int has_relu)
{
    for (size_t i = 0; i < count; i++) {
        float value = y[i] + bias[i];
        y[i] = has_relu && !(value > 0) ? 0 : value;
    }
}

VARIANT_BODY void add_body(float *restrict to, const float *restrict from, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        to[i] += from[i];
    }
}

#define VARIANT_WRAPPERS(suffix, target)                                                          \
    target static void mask_##suffix(float *grad, const float *data, size_t count)                \
    {                                                                                             \
        mask_body(grad, data, count);                                                             \
    }                                                                                             \
    target static void relu_##suffix(float *data, size_t count)                                   \
    {                                                                                             \
        relu_body(data, count);                                                                   \
    }                                                                                             \
    target static void add_bias_##suffix(float *y, const float *bias, size_t count, int has_relu) \
    {                                                                                             \
        add_bias_body(y, bias, count, has_relu);                                                  \
    }                                                                                             \
    target static void add_##suffix(float *to, const float *from, size_t count)                   \
    {                                                                                             \
        add_body(to, from, count);                                                                \
    }

VARIANT_WRAPPERS(portable, )
VARIANT_WRAPPERS(avx2, VARIANT_TARGET_AVX2)
VARIANT_WRAPPERS(avx512, VARIANT_TARGET_AVX512)

static const struct {
    void (*mask)(float *grad, const float *data, size_t count);
    void (*relu)(float *data, size_t count);
    void (*add_bias)(float *y, const float *bias, size_t count, int has_relu);
    void (*add)(float *to, const float *from, size_t count);
} variants[VARIANT_COUNT] = {
    [VARIANT_PORTABLE] = {mask_portable, relu_portable, add_bias_portable, add_portable},
    [VARIANT_AVX2] = {mask_avx2, relu_avx2, add_bias_avx2, add_avx2},
    [VARIANT_AVX512] = {mask_avx512, relu_avx512, add_bias_avx512, add_avx512},
};

static size_t block_at(size_t index, size_t count)
{
    size_t rest = count - index * BLOCK;
    return rest < BLOCK ? rest : BLOCK;
}

void elementwise_mask_positive(float *grad, const float *data, size_t count, uint32_t threads)
{
    enum variant variant = variant_best();
    size_t blocks = (count + BLOCK - 1) / BLOCK;
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(static)
    for (size_t i = 0; i < blocks; i++) {
        variants[variant].mask(grad + i * BLOCK, data + i * BLOCK, block_at(i, count));
    }
}

void elementwise_relu(float *data, size_t count, uint32_t threads)
{
    enum variant variant = variant_best();
    size_t blocks = (count + BLOCK - 1) / BLOCK;
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(static)
    for (size_t i = 0; i < blocks; i++) {
        variants[variant].relu(data + i * BLOCK, block_at(i, count));
    }
}

void elementwise_add(float *to, const float *from, size_t count, uint32_t threads)
{
    enum variant variant = variant_best();
    size_t blocks = (count + BLOCK - 1) / BLOCK;
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(static)
    for (size_t i = 0; i < blocks; i++) {
        variants[variant].add(to + i * BLOCK, from + i * BLOCK, block_at(i, count));
    }
}

void elementwise_add_bias(float *y, const float *bias, size_t rows, size_t columns, int has_relu)
{
    enum variant variant = variant_best();
    for (size_t row = 0; row < rows; row++) {
        variants[variant].add_bias(y + row * columns, bias, columns, has_relu);
    }
}

void elementwise_sum_rows(const float *y, float *sums, size_t rows, size_t columns)
{
    enum variant variant = variant_best();
    memset(sums, 0, columns * sizeof(float));
    for (size_t row = 0; row < rows; row++) {
        variants[variant].add(sums, y + row * columns, columns);
    }
}
