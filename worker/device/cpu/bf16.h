/* bfloat16 on the host: the upper half of a float's bits. Tensors of it lie as (N, H, W, C), which
 * the matrix units of processors want; loops over them. All machines with bfloat16 have AVX-512. */
#ifndef WORKER_DEVICE_CPU_BF16_H
#define WORKER_DEVICE_CPU_BF16_H

#include "worker/device/graph.h"

#include <stdint.h>
#include <string.h>

static inline float bf16_load(uint16_t x)
{
    uint32_t bits = (uint32_t)x << 16;
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

/* To the nearest, ties to even; not-a-number stays one. */
static inline uint16_t bf16_store(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    uint32_t rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16;
    bool is_nan = (bits & 0x7FFFFFFF) > 0x7F800000;
    return (uint16_t)(is_nan ? bits >> 16 | 0x40 : rounded);
}

static inline bool tensor_is_bf16(const struct tensor *tensor)
{
    return tensor->element_bytes == sizeof(uint16_t);
}

/* (N, C, H, W) floats to (N, H, W, C), and back. */
void bf16_from_plain(const struct tensor *tensor, const float *from, uint16_t *to,
                     uint32_t threads);
void bf16_to_plain(const struct tensor *tensor, const uint16_t *from, float *to, uint32_t threads);

/* Element by element: grad where data is positive; the larger of data and 0; a sum. */
void bf16_mask_positive(uint16_t *grad, const uint16_t *data, size_t count, uint32_t threads);
void bf16_relu(uint16_t *data, size_t count, uint32_t threads);
void bf16_add(uint16_t *to, const uint16_t *from, size_t count, uint32_t threads);

/* Max pooling: y and which element of its window each maximum was; dx from dy, gathered. */
struct bf16_pool {
    const struct op *op;
    uint32_t batch, threads;
    uint8_t *indices; // like y
};

void bf16_max_pool(const struct bf16_pool *pool, const uint16_t *x, uint16_t *y);
void bf16_max_pool_back(const struct bf16_pool *pool, const uint16_t *dy, uint16_t *dx);

#endif
