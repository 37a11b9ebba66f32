/* Zeros around each channel, as Keras's ZeroPadding2D: pooling then sees them. */
#include "worker/device/ref/kernels.h"

#include <string.h>

/* Copies the inner part: of the padded planes to the plain ones, or back. */
static void copy_inner(const struct ref_call *call, const float *from, float *to, bool to_padded)
{
    const struct op *op = call->op;
    size_t x_plane = (size_t)op->x.rows * op->x.columns;
    size_t y_plane = (size_t)op->y.rows * op->y.columns;
    for (size_t i = 0; i < (size_t)call->batch_size * op->x.channels; i++) {
        for (size_t row = 0; row < op->x.rows; row++) {
            size_t plain = i * x_plane + row * op->x.columns;
            size_t padded = i * y_plane + (row + op->padding) * op->y.columns + op->padding;
            memcpy(to + (to_padded ? padded : plain), from + (to_padded ? plain : padded),
                   op->x.columns * sizeof(float));
        }
    }
}

static void forward(const struct ref_call *call)
{
    memset(call->y, 0, call->batch_size * ref_element_count(call->op->y) * sizeof(float));
    copy_inner(call, call->x, call->y, true);
}

static void backward(const struct ref_call *call)
{
    if (call->dx != NULL) {
        copy_inner(call, call->dy, call->dx, false);
    }
}

const struct ref_kernel ref_pad = {
    .forward = forward,
    .backward = backward,
};
