/* Writes and opens handles of CUDA's. */
#include "worker/device/cuda/memory/memory_handle.h"

#include "worker/device/cuda/host/report.h"

#include <cuda_runtime_api.h>

#include <string.h>

struct handle {
    cudaIpcMemHandle_t memory;
    uint64_t offset; // of what is shared, in bytes
    uint64_t size;
};
_Static_assert(sizeof(struct handle) <= MEMORY_HANDLE_BYTES, "a share holds a handle");

static enum status check_support(int result, const char *what)
{
    if (result == 0) {
        return STATUS_OK;
    }
    (void)cudaGetLastError(); // it has been dealt with
    report_info("%s: %s", what, cudaGetErrorString((cudaError_t)result));
    return STATUS_UNSUPPORTED;
}

enum status memory_handle_write(const void *allocation, uint64_t offset, uint64_t size,
                                unsigned char ret_share[MEMORY_HANDLE_BYTES])
{
    struct handle handle = {.offset = offset, .size = size};
    union {
        const void *in;
        void *out;
    } cast = {.in = allocation};
    enum status status = check_support((int)cudaIpcGetMemHandle(&handle.memory, cast.out),
                                       "memory of the GPU cannot be shared with other processes");
    memset(ret_share, 0, MEMORY_HANDLE_BYTES);
    memcpy(ret_share, &handle, sizeof(handle));
    return status;
}

enum status memory_handle_open(const unsigned char share[MEMORY_HANDLE_BYTES], uint64_t size,
                               void **ret_base, void **ret_memory)
{
    struct handle handle;
    memcpy(&handle, share, sizeof(handle));
    if (handle.size != size) {
        report_error("a process shares %llu bytes of a GPU's memory instead of %llu",
                     (unsigned long long)handle.size, (unsigned long long)size);
        return STATUS_MALFORMED;
    }
    int result = (int)cudaIpcOpenMemHandle(ret_base, handle.memory, cudaIpcMemLazyEnablePeerAccess);
    if (result == 0) {
        *ret_memory = (char *)*ret_base + handle.offset;
    }
    return check_support(result, "a GPU cannot reach the memory of another");
}
