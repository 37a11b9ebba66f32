/* What runs of libraries have in common, and elements of both types, to and from floats. */
#include "tests/worker/device/cuda_fake/libraries.h"

#include "tests/worker/device/cuda_fake/capture.h"
#include "tests/worker/device/cuda_fake/runtime.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

cudaError_t fake_library_run(bool *is_loaded)
{
    cudaError_t error = *is_loaded ? cudaSuccess : fake_capture_forbid();
    *is_loaded = error == cudaSuccess;
    if (error == cudaSuccess && fake_has_mode("allocating")) {
        void *memory = NULL;
        error = cudaMalloc(&memory, 1);
        if (error == cudaSuccess) {
            error = cudaFree(memory);
        }
    }
    return error;
}

static void *must_allocate(size_t bytes)
{
    void *memory = malloc(bytes + 1);
    if (memory == NULL) {
        abort();
    }
    return memory;
}

FAKE_ARITHMETIC static void widen(const uint16_t *from, float *to, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint32_t bits = (uint32_t)from[i] << 16;
        memcpy(&to[i], &bits, sizeof(bits));
    }
}

/* Ties to even; not-a-number stays one. */
FAKE_ARITHMETIC static void narrow(const float *from, uint16_t *to, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &from[i], sizeof(bits));
        uint32_t rounded = bits + 0x7FFF + (bits >> 16 & 1);
        to[i] = from[i] == from[i] ? (uint16_t)(rounded >> 16) : 0x7FFF;
    }
}

float *fake_take(const void *values, bool is_bf16, size_t count)
{
    float *to = must_allocate(count * sizeof(*to));
    if (!is_bf16) {
        memcpy(to, values, count * sizeof(*to));
        return to;
    }
    uint16_t *halves = must_allocate(count * sizeof(*halves));
    memcpy(halves, values, count * sizeof(*halves));
    widen(halves, to, count);
    free(halves);
    return to;
}

void fake_give(void *values, bool is_bf16, const float *from, size_t count)
{
    if (!is_bf16) {
        memcpy(values, from, count * sizeof(*from));
        return;
    }
    uint16_t *halves = must_allocate(count * sizeof(*halves));
    narrow(from, halves, count);
    memcpy(values, halves, count * sizeof(*halves));
    free(halves);
}
