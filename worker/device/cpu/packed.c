/* Copies between a padded block and (N, H, W, C). */
#include "worker/device/cpu/packed.h"

#include "common/base/memory.h"

#include <assert.h>

enum status packed_create(const struct tensor *blocked, struct packed *ret_packed)
{
    assert(blocked->shape.channels <= blocked->block);
    size_t pixels = (size_t)blocked->batch * blocked->shape.rows * blocked->shape.columns;
    size_t count = pixels * blocked->shape.channels;
    struct packed packed = {.bytes = 2 * count * sizeof(float)};
    packed.data = memory_create_large(packed.bytes);
    if (packed.data == NULL) {
        return STATUS_NO_MEMORY;
    }
    packed.grad = packed.data + count;
    *ret_packed = packed;
    return STATUS_OK;
}

void packed_destroy(struct packed *packed)
{
    memory_destroy_large(packed->data, packed->bytes);
    *packed = (struct packed){0};
}

void packed_read(const struct packed *packed, const struct tensor *blocked, uint32_t threads)
{
    size_t channels = blocked->shape.channels, block = blocked->block;
    size_t pixels = tensor_count(blocked) / block;
    const float *restrict from = blocked->data;
    float *restrict to = packed->data;
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (size_t i = 0; i < pixels; i++) {
        for (size_t channel = 0; channel < channels; channel++) {
            to[i * channels + channel] = from[i * block + channel];
        }
    }
}

void packed_write_grad(const struct packed *packed, const struct tensor *blocked, uint32_t threads)
{
    size_t channels = blocked->shape.channels, block = blocked->block;
    size_t pixels = tensor_count(blocked) / block;
    const float *restrict from = packed->grad;
    float *restrict to = blocked->grad;
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (size_t i = 0; i < pixels; i++) {
        for (size_t channel = 0; channel < block; channel++) {
            to[i * block + channel] = channel < channels ? from[i * channels + channel] : 0;
        }
    }
}
