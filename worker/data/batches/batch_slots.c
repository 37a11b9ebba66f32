/* Pixels come first, for the sake of their alignment. */
#include "worker/data/batches/batch_slots.h"

#include "common/base/memory.h"

#include <stdlib.h>

/* False: there is no such memory. */
static bool count_bytes(struct batch_slots *slots, uint64_t batch_size, uint64_t sample_bytes,
                        uint64_t *ret_slot_bytes)
{
    uint64_t slot_bytes, pixel_bytes, sample_count = slots->count * batch_size;
    // Key, mixed label, label, index.
    uint64_t of_sample = sizeof(uint64_t) + sizeof(struct mixed_label) + 2 * sizeof(uint32_t);
    if (__builtin_mul_overflow(batch_size, sample_bytes, &slot_bytes) ||
        __builtin_add_overflow(slot_bytes, MEMORY_ALIGNMENT - 1, &slot_bytes) ||
        __builtin_mul_overflow(slot_bytes, slots->count, &pixel_bytes) ||
        __builtin_add_overflow(pixel_bytes, sample_count * of_sample, &slots->memory_bytes)) {
        return false;
    }
    *ret_slot_bytes = slot_bytes - slot_bytes % MEMORY_ALIGNMENT;
    return true;
}

enum status batch_slots_init(struct batch_slots *slots, uint32_t count, uint32_t batch_size,
                             uint64_t sample_bytes, struct device *device)
{
    uint64_t slot_bytes, sample_count = (uint64_t)count * batch_size;
    *slots = (struct batch_slots){.count = count};
    if (!count_bytes(slots, batch_size, sample_bytes, &slot_bytes)) {
        return STATUS_NO_MEMORY;
    }
    slots->list = calloc(count, sizeof(*slots->list));
    slots->memory = memory_create_large(slots->memory_bytes);
    if (slots->list == NULL || slots->memory == NULL) {
        return STATUS_NO_MEMORY;
    }
    char *pixels = slots->memory;
    uint64_t *keys = (void *)(pixels + count * slot_bytes);
    struct mixed_label *mixed = (void *)(keys + sample_count);
    uint32_t *labels = (void *)(mixed + sample_count);
    uint32_t *indices = labels + sample_count;
    for (uint64_t i = 0; i < count; i++) {
        slots->list[i] = (struct batch_slot){
            .pixels = pixels + i * slot_bytes,
            .labels = labels + i * batch_size,
            .mixed = mixed + i * batch_size,
            .indices = indices + i * batch_size,
            .sample_keys = keys + i * batch_size,
        };
    }
    if (device != NULL && device_lock_memory(device, slots->memory, slots->memory_bytes)) {
        slots->device = device;
    }
    return STATUS_OK;
}

void batch_slots_finish(struct batch_slots *slots)
{
    if (slots->device != NULL) {
        device_unlock_memory(slots->device, slots->memory);
    }
    memory_destroy_large(slots->memory, slots->memory_bytes);
    free(slots->list);
    *slots = (struct batch_slots){0};
}
