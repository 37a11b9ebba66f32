/* What stands for cuDNN and cuBLASLt: the same products and convolutions as plain loops. */
#ifndef TESTS_WORKER_DEVICE_CUDA_FAKE_LIBRARIES_H
#define TESTS_WORKER_DEVICE_CUDA_FAKE_LIBRARIES_H

#include <cuda_runtime_api.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* What cudnnHandle_t points to. */
struct cudnnContext {
    cudaStream_t stream;
};

static inline float fake_load(const void *values, bool is_bf16, size_t index)
{
    if (!is_bf16) {
        return ((const float *)values)[index];
    }
    uint32_t bits = (uint32_t)((const uint16_t *)values)[index] << 16;
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

/* Rounds to the nearest bfloat16, ties to even; not-a-number stays one. */
static inline void fake_store(void *values, bool is_bf16, size_t index, float value)
{
    if (!is_bf16) {
        ((float *)values)[index] = value;
        return;
    }
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    bool is_number = value == value;
    uint32_t rounded = bits + 0x7FFF + (bits >> 16 & 1);
    ((uint16_t *)values)[index] = is_number ? (uint16_t)(rounded >> 16) : 0x7FFF;
}

#endif
