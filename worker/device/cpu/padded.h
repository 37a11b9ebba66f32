/* Weights of a convolution with channels added until they fill whole blocks. What is added is zero
 * and stays so. */
#ifndef WORKER_DEVICE_CPU_PADDED_H
#define WORKER_DEVICE_CPU_PADDED_H

#include "worker/device/device.h"

/* Zeroed is empty: nothing is padded. */
struct padded {
    uint32_t outputs, inputs; // channels, padding included
    float *weight, *bias;     // (outputs, inputs, R, S), (outputs)
    float *weight_grad, *bias_grad;
    size_t bytes; // of all of them: one allocation, from weight on
};

/* Empty if the operation has that many channels anyway. */
enum status padded_create(const struct op *op, uint32_t outputs, uint32_t inputs,
                          struct padded *ret_padded);
void padded_destroy(struct padded *padded);

/* The flat vector's weights and bias into the padded ones, and the gradients back. */
void padded_read(const struct padded *padded, const struct op *op, const float *params);
void padded_write_grads(const struct padded *padded, const struct op *op, float *grads);

#endif
