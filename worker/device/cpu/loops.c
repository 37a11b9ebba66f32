/* Picks the loop for a tensor's elements. */
#include "worker/device/cpu/loops.h"

#include "worker/device/cpu/bf16.h"
#include "worker/device/cpu/elementwise.h"

/* Data and gradients are declared as floats; here is where they are not. */
static uint16_t *halves(float *values)
{
    return (void *)values;
}

static const uint16_t *const_halves(const float *values)
{
    return (const void *)values;
}

void loops_mask_positive(const struct tensor *tensor, float *grad, const float *data,
                         uint32_t threads)
{
    if (tensor_is_bf16(tensor)) {
        bf16_mask_positive(halves(grad), const_halves(data), tensor_count(tensor), threads);
    } else {
        elementwise_mask_positive(grad, data, tensor_count(tensor), threads);
    }
}

void loops_relu(const struct tensor *tensor, float *data, uint32_t threads)
{
    if (tensor_is_bf16(tensor)) {
        bf16_relu(halves(data), tensor_count(tensor), threads);
    } else {
        elementwise_relu(data, tensor_count(tensor), threads);
    }
}

void loops_add(const struct tensor *tensor, float *to, const float *from, uint32_t threads)
{
    if (tensor_is_bf16(tensor)) {
        bf16_add(halves(to), const_halves(from), tensor_count(tensor), threads);
    } else {
        elementwise_add(to, from, tensor_count(tensor), threads);
    }
}

size_t loops_element_bytes(const struct tensor *tensor)
{
    return tensor_is_bf16(tensor) ? sizeof(uint16_t) : sizeof(float);
}

void loops_copy(const struct tensor *tensor, float *to, const float *from)
{
    memcpy(to, from, tensor_count(tensor) * loops_element_bytes(tensor));
}

void loops_pass_on(const struct tensor *to, const float *from, bool adds, uint32_t threads)
{
    if (adds) {
        loops_add(to, to->grad, from, threads);
    } else {
        loops_copy(to, to->grad, from);
    }
}
