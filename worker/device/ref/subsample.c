/* Every stride-th row and column, with more channels if asked: the shortcut without parameters of
 * He et al. 2015 (option A), and Keras's max pooling over windows of one pixel. */
#include "worker/device/ref/kernels.h"

#include <string.h>

/* Where element (p, q) of the result comes from. */
static size_t source(const struct op *op, uint32_t p, uint32_t q)
{
    return (size_t)p * op->stride * op->x.columns + (size_t)q * op->stride;
}

static void forward(const struct ref_call *call)
{
    const struct op *op = call->op;
    size_t x_plane = (size_t)op->x.rows * op->x.columns;
    size_t y_plane = (size_t)op->y.rows * op->y.columns;
    for (size_t i = 0; i < (size_t)call->batch_size * op->y.channels; i++) {
        size_t n = i / op->y.channels, channel = i % op->y.channels;
        bool is_new = channel >= op->x.channels;
        const float *x = call->x + (n * op->x.channels + (is_new ? 0 : channel)) * x_plane;
        float *y = call->y + i * y_plane;
        for (uint32_t j = 0; j < y_plane; j++) {
            y[j] = is_new ? 0 : x[source(op, j / op->y.columns, j % op->y.columns)];
        }
    }
}

static void backward(const struct ref_call *call)
{
    const struct op *op = call->op;
    size_t x_plane = (size_t)op->x.rows * op->x.columns;
    size_t y_plane = (size_t)op->y.rows * op->y.columns;
    if (call->dx == NULL) {
        return;
    }
    memset(call->dx, 0, call->batch_size * ref_element_count(op->x) * sizeof(float));
    for (size_t i = 0; i < (size_t)call->batch_size * op->x.channels; i++) {
        size_t n = i / op->x.channels, channel = i % op->x.channels;
        const float *dy = call->dy + (n * op->y.channels + channel) * y_plane;
        float *dx = call->dx + i * x_plane;
        for (uint32_t j = 0; j < y_plane; j++) {
            dx[source(op, j / op->y.columns, j % op->y.columns)] = dy[j];
        }
    }
}

const struct ref_kernel ref_subsample = {
    .forward = forward,
    .backward = backward,
};
