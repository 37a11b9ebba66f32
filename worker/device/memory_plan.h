/* Where the buffers of a program lie in one arena. Pure.
 *
 * Time counts executions: operation i runs forward at time i, and backward at 2n-1-i of n
 * operations. Two buffers may share memory if they are never alive at the same time. */
#ifndef WORKER_DEVICE_MEMORY_PLAN_H
#define WORKER_DEVICE_MEMORY_PLAN_H

#include <stddef.h>
#include <stdint.h>

#define PLAN_BUFFERS_MAX 16384

struct plan_buffer {
    size_t bytes;
    uint32_t first, last; // times of its first and last use, inclusive
    size_t offset;        // set by memory_plan
};

/* First fit, large buffers first, each with a gap behind it. Offsets are multiples of `alignment`,
 * a power of two up to 256. Returns the bytes of the arena. */
size_t memory_plan(struct plan_buffer *buffers, uint32_t count, size_t alignment);

#endif
