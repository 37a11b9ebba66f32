/* What stands for cuDNN and cuBLASLt: the same products and convolutions as plain loops. */
#ifndef TESTS_WORKER_DEVICE_CUDA_FAKE_LIBRARIES_H
#define TESTS_WORKER_DEVICE_CUDA_FAKE_LIBRARIES_H

#include <cuda_runtime_api.h>

#include <stdbool.h>
#include <stddef.h>

/* What cudnnHandle_t points to. */
struct cudnnContext {
    cudaStream_t stream;
};

/* Loops over operands that were taken: the sanitizers have seen them as a whole, and need not look
 * at every element again, which would take minutes. */
#define FAKE_ARITHMETIC __attribute__((no_sanitize("address", "thread", "undefined")))

/* What a library does besides, whenever it runs something: loads what it has not, and more where
 * FAKE_CUDA says so. */
cudaError_t fake_library_run(bool *is_loaded);

/* A copy of device memory as floats, which the caller frees. */
float *fake_take(const void *values, bool is_bf16, size_t count);

/* Writes floats to device memory, rounded to the nearest if that holds bfloat16. */
void fake_give(void *values, bool is_bf16, const float *from, size_t count);

#endif
