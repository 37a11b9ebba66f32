/* Locks pages, by CUDA. */
#include "worker/device/cuda/memory/page_lock.h"

#include "worker/device/cuda/host/report.h"

#include <cuda_runtime_api.h>

bool page_lock(void *memory, size_t bytes)
{
    int result = (int)cudaHostRegister(memory, bytes, cudaHostRegisterDefault);
    if (result == 0) {
        return true;
    }
    (void)cudaGetLastError(); // it has been dealt with
    if (result != (int)cudaErrorHostMemoryAlreadyRegistered) {
        report_info("memory of %zu MiB cannot be page-locked, and is copied while nothing else "
                    "is done: %s",
                    bytes >> 20, cudaGetErrorString((cudaError_t)result));
    }
    return false;
}

void page_unlock(void *memory)
{
    cudaHostUnregister(memory);
}
