/* Loops over whole tensors, of whichever type their elements are. Pointers are to the data or the
 * gradient of a tensor like `tensor`. */
#ifndef WORKER_DEVICE_CPU_LOOPS_H
#define WORKER_DEVICE_CPU_LOOPS_H

#include "worker/device/graph.h"

/* grad where data is positive, 0 elsewhere: the gradient of a relu */
void loops_mask_positive(const struct tensor *tensor, float *grad, const float *data,
                         uint32_t threads);
void loops_relu(const struct tensor *tensor, float *data, uint32_t threads);
void loops_add(const struct tensor *tensor, float *to, const float *from, uint32_t threads);
void loops_copy(const struct tensor *tensor, float *to, const float *from);

/* The gradient `from`, of a sum, to that of `to`, one of its operands: added if there is one. */
void loops_pass_on(const struct tensor *to, const float *from, bool adds, uint32_t threads);

/* Bytes of an element. */
size_t loops_element_bytes(const struct tensor *tensor);

#endif
