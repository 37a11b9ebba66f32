/* The mean of each channel over its rows and columns. */
#include "worker/device/ref/kernels.h"

static void forward(const struct ref_call *call)
{
    const struct op *op = call->op;
    size_t plane = (size_t)op->x.rows * op->x.columns;
    for (size_t i = 0; i < (size_t)call->batch_size * op->x.channels; i++) {
        double sum = 0;
        for (size_t j = 0; j < plane; j++) {
            sum += (double)call->x[i * plane + j];
        }
        call->y[i] = (float)(sum / (double)plane);
    }
}

static void backward(const struct ref_call *call)
{
    const struct op *op = call->op;
    size_t plane = (size_t)op->x.rows * op->x.columns;
    if (call->dx == NULL) {
        return;
    }
    for (size_t i = 0; i < call->batch_size * ref_element_count(op->x); i++) {
        call->dx[i] = (float)((double)call->dy[i / plane] / (double)plane);
    }
}

const struct ref_kernel ref_global_pool = {
    .forward = forward,
    .backward = backward,
};
