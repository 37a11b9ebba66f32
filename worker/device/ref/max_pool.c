/* Largest element of each window. Of equal ones the first, in row-major order, gets the gradient.
 */
#include "worker/device/ref/kernels.h"

#include <math.h>
#include <string.h>

/* Index in the plane of the window's maximum. Not-a-number counts as one, so that it is seen. */
static size_t find_maximum(const struct op *op, const float *x, uint32_t p, uint32_t q)
{
    size_t first = (size_t)p * op->stride * op->x.columns + (size_t)q * op->stride;
    size_t best = first;
    for (uint32_t r = 0; r < op->window; r++) {
        for (uint32_t s = 0; s < op->window; s++) {
            size_t index = first + (size_t)r * op->x.columns + s;
            if (x[index] > x[best] || isnan(x[index])) {
                best = index;
            }
        }
    }
    return best;
}

static void forward_plane(const struct op *op, const float *x, float *y)
{
    for (uint32_t p = 0; p < op->y.rows; p++) {
        for (uint32_t q = 0; q < op->y.columns; q++) {
            y[(size_t)p * op->y.columns + q] = x[find_maximum(op, x, p, q)];
        }
    }
}

/* Windows may overlap (stride below window), so gradients add up. */
static void backward_plane(const struct op *op, const float *x, const float *dy, float *dx)
{
    memset(dx, 0, (size_t)op->x.rows * op->x.columns * sizeof(*dx));
    for (uint32_t p = 0; p < op->y.rows; p++) {
        for (uint32_t q = 0; q < op->y.columns; q++) {
            dx[find_maximum(op, x, p, q)] += dy[(size_t)p * op->y.columns + q];
        }
    }
}

static void forward(const struct ref_call *call)
{
    const struct op *op = call->op;
    size_t plane_count = (size_t)call->batch_size * op->x.channels;
    size_t x_plane = (size_t)op->x.rows * op->x.columns;
    size_t y_plane = (size_t)op->y.rows * op->y.columns;
    for (size_t i = 0; i < plane_count; i++) {
        forward_plane(op, call->x + i * x_plane, call->y + i * y_plane);
    }
}

static void backward(const struct ref_call *call)
{
    const struct op *op = call->op;
    size_t plane_count = (size_t)call->batch_size * op->x.channels;
    size_t x_plane = (size_t)op->x.rows * op->x.columns;
    size_t y_plane = (size_t)op->y.rows * op->y.columns;
    if (call->dx == NULL) {
        return;
    }
    for (size_t i = 0; i < plane_count; i++) {
        backward_plane(op, call->x + i * x_plane, call->dy + i * y_plane, call->dx + i * x_plane);
    }
}

const struct ref_kernel ref_max_pool = {
    .forward = forward,
    .backward = backward,
};
