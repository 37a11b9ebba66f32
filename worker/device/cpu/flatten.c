/* Blocked channels to plain (N, C, H, W), and back for the gradient: before a linear layer, whose
 * weights stay in the flat vector as they are. */
#include "worker/device/cpu/bf16.h"
#include "worker/device/cpu/node.h"

/* Walks one sample: element i of the plain order is at offset of the blocked one. */
static void unblock(const struct tensor *blocked, const float *from, float *to)
{
    size_t plane = (size_t)blocked->shape.rows * blocked->shape.columns, block = blocked->block;
    for (size_t channel = 0; channel < blocked->shape.channels; channel++) {
        const float *source = from + channel / block * block * plane + channel % block;
        for (size_t i = 0; i < plane; i++) {
            to[channel * plane + i] = source[i * block];
        }
    }
}

static void reblock(const struct tensor *blocked, const float *from, float *to)
{
    size_t plane = (size_t)blocked->shape.rows * blocked->shape.columns, block = blocked->block;
    size_t padded = tensor_stride(blocked) / plane;
    for (size_t channel = 0; channel < padded; channel++) {
        float *target = to + channel / block * block * plane + channel % block;
        bool is_padding = channel >= blocked->shape.channels;
        for (size_t i = 0; i < plane; i++) {
            target[i * block] = is_padding ? 0 : from[channel * plane + i];
        }
    }
}

static enum status flatten_forward(struct node *node)
{
    if (tensor_is_bf16(node->x)) {
        bf16_to_plain(node->x, (const void *)node->x->data, node->y->data, node->context->threads);
        return STATUS_OK;
    }
    size_t from_stride = tensor_stride(node->x), to_stride = tensor_stride(node->y);
#pragma omp parallel for num_threads(node->context->threads) if (node->context->threads > 1)
    for (uint32_t n = 0; n < node->x->batch; n++) {
        unblock(node->x, node->x->data + n * from_stride, node->y->data + n * to_stride);
    }
    return STATUS_OK;
}

static enum status flatten_backward(struct node *node)
{
    if (tensor_is_bf16(node->x)) {
        bf16_from_plain(node->x, node->y->grad, (void *)node->x->grad, node->context->threads);
        return STATUS_OK;
    }
    size_t from_stride = tensor_stride(node->y), to_stride = tensor_stride(node->x);
#pragma omp parallel for num_threads(node->context->threads) if (node->context->threads > 1)
    for (uint32_t n = 0; n < node->x->batch; n++) {
        reblock(node->x, node->y->grad + n * from_stride, node->x->grad + n * to_stride);
    }
    return STATUS_OK;
}

static const struct node_ops flatten_ops = {
    .forward = flatten_forward,
    .backward = flatten_backward,
    .destroy = node_destroy_plain,
};

enum status node_create_flatten(struct node *base, struct node **ret_node)
{
    base->y->block = 1;
    return node_create_plain(base, &flatten_ops, ret_node);
}
