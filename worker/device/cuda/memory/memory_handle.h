/* Memory of a GPU that other processes of the host map, as bytes that they are told: CUDA's handle
 * of the allocation, and where the memory lies in it. */
#ifndef WORKER_DEVICE_CUDA_MEMORY_MEMORY_HANDLE_H
#define WORKER_DEVICE_CUDA_MEMORY_MEMORY_HANDLE_H

#include "common/base/status.h"

#include <stddef.h>
#include <stdint.h>

#define MEMORY_HANDLE_BYTES 128

// What the driver takes from the GPU at once. Smaller allocations lie together in one such unit,
// and who opens a handle of one of them can reach the others: so memory for others is of whole
// units.
#define MEMORY_HANDLE_UNIT ((size_t)2 << 20)

/* Rounded up to whole units; at least one. */
static inline size_t memory_handle_whole(size_t bytes)
{
    size_t units = bytes / MEMORY_HANDLE_UNIT + (bytes % MEMORY_HANDLE_UNIT > 0 ? 1 : 0);
    return (units > 0 ? units : 1) * MEMORY_HANDLE_UNIT;
}

/* Both: STATUS_UNSUPPORTED, logged, where the GPU cannot. The allocation is of whole units. */
enum status memory_handle_write(const void *allocation, uint64_t offset, uint64_t size,
                                unsigned char ret_share[MEMORY_HANDLE_BYTES]);

/* STATUS_MALFORMED, logged, if the share is of another size. *ret_base is to be closed by
 * cudaIpcCloseMemHandle. */
enum status memory_handle_open(const unsigned char share[MEMORY_HANDLE_BYTES], uint64_t size,
                               void **ret_base, void **ret_memory);

#endif
