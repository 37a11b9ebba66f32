/* Memory of a GPU that other processes of the host map, as bytes that they are told: CUDA's handle
 * of the allocation, and where the memory lies in it. */
#ifndef WORKER_DEVICE_CUDA_MEMORY_HANDLE_H
#define WORKER_DEVICE_CUDA_MEMORY_HANDLE_H

#include "common/base/status.h"

#include <stdint.h>

#define MEMORY_HANDLE_BYTES 128

/* Both: STATUS_UNSUPPORTED, logged, where the GPU cannot. */
enum status memory_handle_write(const void *allocation, uint64_t offset, uint64_t size,
                                unsigned char ret_share[MEMORY_HANDLE_BYTES]);

/* STATUS_MALFORMED, logged, if the share is of another size. *ret_base is to be closed by
 * cudaIpcCloseMemHandle. */
enum status memory_handle_open(const unsigned char share[MEMORY_HANDLE_BYTES], uint64_t size,
                               void **ret_base, void **ret_memory);

#endif
