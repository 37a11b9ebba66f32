/* What the parts of the fake runtime share. */
#ifndef TESTS_WORKER_DEVICE_CUDA_FAKE_RUNTIME_H
#define TESTS_WORKER_DEVICE_CUDA_FAKE_RUNTIME_H

#include <cuda_runtime_api.h>

#include <stdbool.h>
#include <stddef.h>

/* Whether FAKE_CUDA says so: see runtime.c. */
bool fake_has_mode(const char *name);

/* The error, which is the last one from here. */
cudaError_t fake_fail(cudaError_t error);

/* Device memory that other processes can map. */
cudaError_t fake_ipc_allocate(void **ret_memory, size_t bytes);
bool fake_ipc_free(void *memory); // whether it was such

#endif
