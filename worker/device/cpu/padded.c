/* Copies weights to and from their padded form, filter by filter. */
#include "worker/device/cpu/padded.h"

#include "common/base/memory.h"

#include <string.h>

enum status padded_create(const struct op *op, uint32_t outputs, uint32_t inputs,
                          struct padded *ret_padded)
{
    struct padded padded = {.outputs = outputs, .inputs = inputs};
    if (outputs == op->y.channels && inputs == op->x.channels) {
        *ret_padded = (struct padded){0};
        return STATUS_OK;
    }
    size_t weights = (size_t)outputs * inputs * op->window * op->window;
    padded.bytes = 2 * (weights + outputs) * sizeof(float);
    padded.weight = memory_create_large(padded.bytes);
    if (padded.weight == NULL) {
        return STATUS_NO_MEMORY;
    }
    padded.weight_grad = padded.weight + weights;
    padded.bias = padded.weight_grad + weights;
    padded.bias_grad = padded.bias + outputs;
    *ret_padded = padded;
    return STATUS_OK;
}

void padded_destroy(struct padded *padded)
{
    memory_destroy_large(padded->weight, padded->bytes);
    *padded = (struct padded){0};
}

/* Weights of one filter, in the flat vector and padded. */
static size_t row_of(const struct op *op, uint32_t inputs)
{
    return (size_t)inputs * op->window * op->window;
}

void padded_read(const struct padded *padded, const struct op *op, const float *params)
{
    size_t row = row_of(op, op->x.channels), padded_row = row_of(op, padded->inputs);
    for (uint32_t k = 0; k < op->y.channels; k++) {
        memcpy(padded->weight + k * padded_row, params + op->weight + k * row, row * sizeof(float));
    }
    if (op->has_bias) {
        memcpy(padded->bias, params + op->bias, op->y.channels * sizeof(float));
    }
}

void padded_write_grads(const struct padded *padded, const struct op *op, float *grads)
{
    size_t row = row_of(op, op->x.channels), padded_row = row_of(op, padded->inputs);
    for (uint32_t k = 0; k < op->y.channels; k++) {
        memcpy(grads + op->weight + k * row, padded->weight_grad + k * padded_row,
               row * sizeof(float));
    }
    if (op->has_bias) {
        memcpy(grads + op->bias, padded->bias_grad, op->y.channels * sizeof(float));
    }
}
