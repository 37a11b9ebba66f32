/* Sum of two results. */
#include "worker/device/ref/kernels.h"

#include <string.h>

static void forward(const struct ref_call *call)
{
    size_t count = call->batch_size * ref_element_count(call->op->x);
    for (size_t i = 0; i < count; i++) {
        call->y[i] = call->x[i] + call->other[i];
    }
}

static void backward(const struct ref_call *call)
{
    size_t bytes = call->batch_size * ref_element_count(call->op->x) * sizeof(float);
    if (call->dx != NULL) {
        memcpy(call->dx, call->dy, bytes);
    }
    memcpy(call->dother, call->dy, bytes);
}

const struct ref_kernel ref_add = {
    .forward = forward,
    .backward = backward,
};
