/* The reference kernels: plain loops on (N, C, H, W) floats, the definition of right.
 *
 * Other backends are measured against these, so sums are taken in double and rounded to float once,
 * where a tensor is written. Kernels overwrite what they write, and allocate nothing. */
#ifndef WORKER_DEVICE_REF_KERNELS_H
#define WORKER_DEVICE_REF_KERNELS_H

#include "worker/device/device.h"

/* What one operation works on. Borrowed for the call. */
struct ref_call {
    const struct op *op;
    uint32_t batch_size; // N
    const struct program_input *input;
    struct program_result *result; // softmax_loss, forward

    const float *x;     // (N, x)
    const float *other; // (N, x); add
    float *y;           // (N, y)
    const float *dy;    // (N, y); backward
    float *dx;          // (N, x); backward, NULL if nobody wants it
    float *dother;      // (N, x); add, backward
    const float *params;
    float *grads;
    float *statistics;
    double *saved;       // batch_norm: mean (C) and 1 / deviation (C) of the batch, for backward
    double *scratch;     // ref_scratch_count(op)
    enum status *status; // written by what fails
};

struct ref_kernel {
    void (*forward)(const struct ref_call *call);
    void (*backward)(const struct ref_call *call);
};

extern const struct ref_kernel ref_conv2d;
extern const struct ref_kernel ref_linear;
extern const struct ref_kernel ref_relu;
extern const struct ref_kernel ref_max_pool;
extern const struct ref_kernel ref_dropout;
extern const struct ref_kernel ref_batch_norm;
extern const struct ref_kernel ref_add;
extern const struct ref_kernel ref_subsample;
extern const struct ref_kernel ref_pad;
extern const struct ref_kernel ref_global_pool;
extern const struct ref_kernel ref_softmax_loss;

static inline size_t ref_element_count(struct shape shape)
{
    return (size_t)shape.channels * shape.rows * shape.columns;
}

/* Doubles that a kernel of this operation may scribble on: its sums before they are rounded. */
static inline size_t ref_scratch_count(const struct op *op)
{
    if (op->kind == OP_BATCH_NORM) {
        return 2 * (size_t)op->x.channels + 1;
    }
    size_t x = ref_element_count(op->x);
    size_t y = ref_element_count(op->y);
    return x > y ? x : y;
}

#endif
