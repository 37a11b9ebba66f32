/* Matrix times vector, of each flattened sample. */
#include "worker/device/ref/kernels.h"

#include <string.h>

/* sums += factor * values */
static void add_scaled(double *sums, double factor, const float *values, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        sums[i] += factor * (double)values[i];
    }
}

static void round_to(float *to, const double *sums, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        to[i] = (float)sums[i];
    }
}

static void forward(const struct ref_call *call)
{
    const struct op *op = call->op;
    size_t x_count = ref_element_count(op->x);
    uint32_t y_count = op->y.channels;
    for (uint32_t n = 0; n < call->batch_size; n++) {
        const float *x = call->x + n * x_count;
        for (uint32_t k = 0; k < y_count; k++) {
            const float *weight = call->params + op->weight + k * x_count;
            double sum = (double)call->params[op->bias + k];
            for (size_t i = 0; i < x_count; i++) {
                sum += (double)weight[i] * (double)x[i];
            }
            call->y[(size_t)n * y_count + k] = (float)sum;
        }
    }
}

static void param_gradients(const struct ref_call *call, uint32_t k)
{
    const struct op *op = call->op;
    size_t x_count = ref_element_count(op->x);
    double *sums = call->scratch; // (C*H*W)
    double bias_sum = 0;

    memset(sums, 0, x_count * sizeof(*sums));
    for (uint32_t n = 0; n < call->batch_size; n++) {
        double dy = (double)call->dy[(size_t)n * op->y.channels + k];
        add_scaled(sums, dy, call->x + n * x_count, x_count);
        bias_sum += dy;
    }
    round_to(call->grads + op->weight + k * x_count, sums, x_count);
    call->grads[op->bias + k] = (float)bias_sum;
}

static void input_gradient(const struct ref_call *call, uint32_t n)
{
    const struct op *op = call->op;
    size_t x_count = ref_element_count(op->x);
    double *sums = call->scratch; // (C*H*W)

    memset(sums, 0, x_count * sizeof(*sums));
    for (uint32_t k = 0; k < op->y.channels; k++) {
        double dy = (double)call->dy[(size_t)n * op->y.channels + k];
        add_scaled(sums, dy, call->params + op->weight + k * x_count, x_count);
    }
    round_to(call->dx + n * x_count, sums, x_count);
}

static void backward(const struct ref_call *call)
{
    for (uint32_t k = 0; k < call->op->y.channels; k++) {
        param_gradients(call, k);
    }
    if (call->dx == NULL) {
        return;
    }
    for (uint32_t n = 0; n < call->batch_size; n++) {
        input_gradient(call, n);
    }
}

const struct ref_kernel ref_linear = {
    .forward = forward,
    .backward = backward,
};
