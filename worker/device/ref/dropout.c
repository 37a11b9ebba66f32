/* Dropout. The mask is a function of the sample's key and the element, so it is drawn again in
 * backward rather than kept. */
#include "common/base/random.h"
#include "worker/device/ref/kernels.h"

/* to = from * kept / (1 - rate), of all samples */
static void apply_mask(const struct ref_call *call, const float *from, float *to)
{
    const struct op *op = call->op;
    uint32_t count = (uint32_t)ref_element_count(op->x);
    double threshold = (double)op->rate * 0x1p32;
    float scale = 1 / (1 - op->rate);
    for (uint32_t n = 0; n < call->batch_size; n++) {
        uint64_t key = random_mix(call->input->sample_keys[n] + op->stream);
        size_t first = (size_t)n * count;
        for (uint32_t i = 0; i < count; i++) {
            bool is_dropped = (double)random_element(key, i) < threshold;
            to[first + i] = is_dropped ? 0 : from[first + i] * scale;
        }
    }
}

static void forward(const struct ref_call *call)
{
    size_t count = call->batch_size * ref_element_count(call->op->x);
    if (call->input->is_training) {
        apply_mask(call, call->x, call->y);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        call->y[i] = call->x[i];
    }
}

static void backward(const struct ref_call *call)
{
    if (call->dx != NULL) {
        apply_mask(call, call->dy, call->dx);
    }
}

const struct ref_kernel ref_dropout = {
    .forward = forward,
    .backward = backward,
};
