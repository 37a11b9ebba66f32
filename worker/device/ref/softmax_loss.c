/* Softmax and cross-entropy in one: y are the probabilities, the loss goes to the result. */
#include "worker/device/ref/kernels.h"

#include <assert.h>
#include <math.h>

static uint32_t first_maximum(const float *x, uint32_t count)
{
    uint32_t best = 0;
    for (uint32_t k = 1; k < count; k++) {
        if (x[k] > x[best]) {
            best = k;
        }
    }
    return best;
}

/* Writes the probabilities of one sample; returns -log of the label's, `wanted` being its output.
 * Exponents are taken relative to the largest output, so none overflows and the sum is at least 1.
 */
static double softmax(const float *x, double wanted, uint32_t count, float *y)
{
    double largest = (double)x[first_maximum(x, count)];
    double sum = 0;
    for (uint32_t k = 0; k < count; k++) {
        sum += exp((double)x[k] - largest);
    }
    for (uint32_t k = 0; k < count; k++) {
        y[k] = (float)(exp((double)x[k] - largest) / sum);
    }
    return log(sum) - (wanted - largest);
}

/* The output of a sample's label: of two labels, by their shares, as the loss is linear in it. */
static double wanted_output(const struct program_input *input, uint32_t n, const float *x)
{
    double output = (double)x[input->labels[n]];
    if (input->mixed == NULL) {
        return output;
    }
    double share = (double)input->mixed[n].share;
    return share * output + (1 - share) * (double)x[input->mixed[n].other];
}

/* What the probability of a class should be. */
static float target_of(const struct program_input *input, uint32_t n, uint32_t class)
{
    bool is_label = class == input->labels[n];
    if (input->mixed == NULL) {
        return is_label ? 1 : 0;
    }
    const struct mixed_label *mixed = &input->mixed[n];
    return (is_label ? mixed->share : 0) + (class == mixed->other ? 1 - mixed->share : 0);
}

static void forward(const struct ref_call *call)
{
    uint32_t count = call->op->x.channels;
    struct program_result result = {0};
    for (uint32_t n = 0; n < call->batch_size; n++) {
        const float *x = call->x + (size_t)n * count;
        uint32_t label = call->input->labels[n];
        assert(label < count);
        assert(call->input->mixed == NULL || call->input->mixed[n].other < count);
        double wanted = wanted_output(call->input, n, x);
        double loss = softmax(x, wanted, count, call->y + (size_t)n * count);
        if (n < call->input->count) {
            result.loss_sum += loss;
            result.correct_count += first_maximum(x, count) == label;
        }
    }
    *call->result = result;
}

static void sample_gradient(const struct ref_call *call, uint32_t n)
{
    uint32_t count = call->op->x.channels;
    const float *y = call->y + (size_t)n * count;
    float *dx = call->dx + (size_t)n * count;
    for (uint32_t k = 0; k < count; k++) {
        dx[k] = (y[k] - target_of(call->input, n, k)) * call->input->gradient_scale;
    }
}

static void backward(const struct ref_call *call)
{
    uint32_t count = call->op->x.channels;
    if (call->dx == NULL) {
        return;
    }
    for (uint32_t n = 0; n < call->input->count; n++) {
        sample_gradient(call, n);
    }
    for (size_t i = (size_t)call->input->count * count; i < (size_t)call->batch_size * count; i++) {
        call->dx[i] = 0; // padding
    }
}

const struct ref_kernel ref_softmax_loss = {
    .forward = forward,
    .backward = backward,
};
