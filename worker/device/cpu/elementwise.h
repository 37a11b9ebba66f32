/* Loops over whole tensors, vectorised by run-time dispatch, over several threads. */
#ifndef WORKER_DEVICE_CPU_ELEMENTWISE_H
#define WORKER_DEVICE_CPU_ELEMENTWISE_H

#include <stddef.h>
#include <stdint.h>

/* grad[i] = data[i] > 0 ? grad[i] : 0, the gradient of relu */
void elementwise_mask_positive(float *grad, const float *data, size_t count, uint32_t threads);

/* data[i] = max(data[i], 0) */
void elementwise_relu(float *data, size_t count, uint32_t threads);

/* to[i] += from[i] */
void elementwise_add(float *to, const float *from, size_t count, uint32_t threads);

/* y[n][k] += bias[k], then relu if asked; y is (rows, columns). */
void elementwise_add_bias(float *y, const float *bias, size_t rows, size_t columns, int has_relu);

/* sums[k] = sum over n of y[n][k], in the order of n; y is (rows, columns). */
void elementwise_sum_rows(const float *y, float *sums, size_t rows, size_t columns);

#endif
