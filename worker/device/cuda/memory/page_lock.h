/* Memory of the host whose pages stay where they are, so that the GPU copies it by itself while
 * both go on. From other memory a copy first waits for all that was queued before it. */
#ifndef WORKER_DEVICE_CUDA_MEMORY_PAGE_LOCK_H
#define WORKER_DEVICE_CUDA_MEMORY_PAGE_LOCK_H

#include <stdbool.h>
#include <stddef.h>

/* Whether the caller has locked it, and is to unlock it before it is freed. Reports why not, unless
 * somebody else has locked it. */
bool page_lock(void *memory, size_t bytes);
void page_unlock(void *memory);

#endif
