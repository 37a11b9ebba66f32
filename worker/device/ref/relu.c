/* Rectifier. Not-a-number goes through: a network that went wrong must show it in its loss. */
#include "worker/device/ref/kernels.h"

static void forward(const struct ref_call *call)
{
    size_t count = call->batch_size * ref_element_count(call->op->x);
    for (size_t i = 0; i < count; i++) {
        call->y[i] = call->x[i] < 0 ? 0 : call->x[i];
    }
}

/* The derivative at 0 is 0. */
static void backward(const struct ref_call *call)
{
    if (call->dx == NULL) {
        return;
    }
    size_t count = call->batch_size * ref_element_count(call->op->x);
    for (size_t i = 0; i < count; i++) {
        call->dx[i] = call->x[i] > 0 ? call->dy[i] : 0;
    }
}

const struct ref_kernel ref_relu = {
    .forward = forward,
    .backward = backward,
};
