/* First-fit placement of buffers by their lifetimes. */
#include "worker/device/memory_plan.h"

#include "common/memory.h"

#include <stdbool.h>

static bool overlap_in_time(const struct plan_buffer *a, const struct plan_buffer *b)
{
    return a->first <= b->last && b->first <= a->last;
}

static size_t aligned(size_t bytes)
{
    return (bytes + MEMORY_ALIGNMENT - 1) / MEMORY_ALIGNMENT * MEMORY_ALIGNMENT;
}

/* The lowest offset at which `buffer` meets no placed buffer that lives when it does. */
static size_t first_fit(const struct plan_buffer *buffers, const bool *is_placed, uint32_t count,
                        const struct plan_buffer *buffer)
{
    size_t offset = 0;
    for (uint32_t i = 0; i < count;) {
        const struct plan_buffer *other = &buffers[i];
        bool is_in_the_way = is_placed[i] && overlap_in_time(buffer, other) &&
                             offset < other->offset + aligned(other->bytes) &&
                             other->offset < offset + aligned(buffer->bytes);
        if (is_in_the_way) {
            offset = other->offset + aligned(other->bytes);
            i = 0; // those that were passed may be in the way now
        } else {
            i++;
        }
    }
    return offset;
}

size_t memory_plan(struct plan_buffer *buffers, uint32_t count)
{
    bool is_placed[PLAN_BUFFERS_MAX] = {false};
    size_t end = 0;
    for (uint32_t round = 0; round < count; round++) {
        uint32_t largest = count;
        for (uint32_t i = 0; i < count; i++) {
            if (!is_placed[i] && (largest == count || buffers[i].bytes > buffers[largest].bytes)) {
                largest = i;
            }
        }
        struct plan_buffer *buffer = &buffers[largest];
        buffer->offset = first_fit(buffers, is_placed, count, buffer);
        is_placed[largest] = true;
        if (buffer->offset + aligned(buffer->bytes) > end) {
            end = buffer->offset + aligned(buffer->bytes);
        }
    }
    return end;
}
