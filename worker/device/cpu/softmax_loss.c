/* Softmax and cross-entropy. Few classes: loops, in double where sums are taken, as ref does. */
#include "common/base/memory.h"
#include "worker/device/cpu/node.h"

#include <math.h>
#include <stdlib.h>

struct softmax_loss {
    struct node base;
    float *probabilities; // (N, classes), of the last forward
    size_t bytes;
};

/* The output of a sample's label: of two labels, by their shares, as the loss is linear in it. */
static double wanted_output(const struct program_input *input, uint32_t n, const float *logits)
{
    double output = (double)logits[input->labels[n]];
    if (input->mixed == NULL) {
        return output;
    }
    double share = (double)input->mixed[n].share;
    return share * output + (1 - share) * (double)logits[input->mixed[n].other];
}

/* What the probability of a class should be. */
static float target_of(const struct program_input *input, uint32_t n, uint32_t class)
{
    bool is_label = class == input->labels[n];
    if (input->mixed == NULL) {
        return is_label ? 1.0f : 0.0f;
    }
    const struct mixed_label *mixed = &input->mixed[n];
    return (is_label ? mixed->share : 0.0f) + (class == mixed->other ? 1 - mixed->share : 0.0f);
}

/* Sample n: its probabilities; returns its loss. */
static double sample_loss(const struct program_input *input, uint32_t n, const float *logits,
                          uint32_t classes, float *probability, bool *ret_is_correct)
{
    uint32_t largest = 0;
    for (uint32_t k = 1; k < classes; k++) {
        if (logits[k] > logits[largest]) {
            largest = k;
        }
    }
    double sum = 0;
    for (uint32_t k = 0; k < classes; k++) {
        double power = exp((double)logits[k] - (double)logits[largest]);
        probability[k] = (float)power;
        sum += power;
    }
    for (uint32_t k = 0; k < classes; k++) {
        probability[k] = (float)((double)probability[k] / sum);
    }
    *ret_is_correct = largest == input->labels[n];
    return log(sum) - (wanted_output(input, n, logits) - (double)logits[largest]);
}

static enum status loss_forward(struct node *node)
{
    struct softmax_loss *loss = (struct softmax_loss *)node;
    struct node_context *context = node->context;
    uint32_t classes = node->op.x.channels;
    context->result = (struct program_result){0};
    for (uint32_t n = 0; n < context->input->count; n++) {
        bool is_correct;
        context->result.loss_sum +=
            sample_loss(context->input, n, node->x->data + (size_t)n * classes, classes,
                        loss->probabilities + (size_t)n * classes, &is_correct);
        context->result.correct_count += is_correct;
    }
    return STATUS_OK;
}

static enum status loss_backward(struct node *node)
{
    struct softmax_loss *loss = (struct softmax_loss *)node;
    const struct program_input *input = node->context->input;
    uint32_t classes = node->op.x.channels;
    if (node->x->is_pixels) {
        return STATUS_OK;
    }
    for (uint32_t n = 0; n < node->x->batch; n++) {
        const float *probability = loss->probabilities + (size_t)n * classes;
        float *grad = node->x->grad + (size_t)n * classes;
        for (uint32_t k = 0; k < classes; k++) {
            bool counts = n < input->count;
            float target = counts ? target_of(input, n, k) : 0;
            grad[k] = counts ? (probability[k] - target) * input->gradient_scale : 0;
        }
    }
    return STATUS_OK;
}

static void loss_destroy(struct node *node)
{
    struct softmax_loss *loss = (struct softmax_loss *)node;
    memory_destroy_large(loss->probabilities, loss->bytes);
    free(loss);
}

static const struct node_ops loss_ops = {
    .forward = loss_forward,
    .backward = loss_backward,
    .destroy = loss_destroy,
};

enum status node_create_softmax_loss(struct node *base, struct node **ret_node)
{
    struct softmax_loss *loss = calloc(1, sizeof(*loss));
    if (loss == NULL) {
        return STATUS_NO_MEMORY;
    }
    loss->base = *base;
    loss->base.ops = &loss_ops;
    loss->bytes = (size_t)base->x->batch * base->op.x.channels * sizeof(float);
    loss->probabilities = memory_create_large(loss->bytes);
    if (loss->probabilities == NULL) {
        free(loss);
        return STATUS_NO_MEMORY;
    }
    *ret_node = &loss->base;
    return STATUS_OK;
}
