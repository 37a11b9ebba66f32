/* What the parts of the fake runtime share. */
#ifndef TESTS_WORKER_DEVICE_CUDA_FAKE_RUNTIME_H
#define TESTS_WORKER_DEVICE_CUDA_FAKE_RUNTIME_H

#include <cuda_runtime_api.h>

#include <stdbool.h>

/* Whether RINGSIDE_FAKE_CUDA says so: see runtime.c. */
bool fake_has_mode(const char *name);

/* The error, which is the last one from here. */
cudaError_t fake_fail(cudaError_t error);

#endif
