/* Large buffers: zeroed, page aligned, on huge pages where the kernel gives them.
 *
 * Page faults were measured to cost a training step a quarter of its time when large buffers go
 * back to the kernel, so they are taken once, at create, and touched there. */
#ifndef COMMON_BASE_MEMORY_H
#define COMMON_BASE_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#define MEMORY_ALIGNMENT 64 // of every tensor: a cache line, an AVX-512 register

/* NULL if there is not enough. The caller owns the buffer, and frees it with the same size. */
void *memory_create_large(size_t bytes);
void memory_destroy_large(void *buffer, size_t bytes); // NULL is fine

/* Makes malloc keep what it has: message bodies of some MiB would otherwise be mapped and unmapped
 * each time. Call it first in main. */
void memory_keep_heap(void);

/* Bytes that could still be taken, without swapping: of the host, and of what the process's control
 * group may have. UINT64_MAX: not known. */
uint64_t memory_available(void);

#endif
