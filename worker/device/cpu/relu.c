/* A relu that no other node took along, in place. */
#include "worker/device/cpu/elementwise.h"
#include "worker/device/cpu/node.h"

#include <string.h>

static enum status relu_forward(struct node *node)
{
    size_t count = tensor_count(node->y);
    if (node->x != node->y) {
        memcpy(node->y->data, node->x->data, count * sizeof(float));
    }
    elementwise_relu(node->y->data, count, node->context->threads);
    return STATUS_OK;
}

static enum status relu_backward(struct node *node)
{
    size_t count = tensor_count(node->y);
    if (node->x->is_pixels || (node->x == node->y && node->y->is_grad_masked)) {
        return STATUS_OK;
    }
    if (node->x != node->y) {
        memcpy(node->x->grad, node->y->grad, count * sizeof(float));
    }
    elementwise_mask_positive(node->x->grad, node->y->data, count, node->context->threads);
    return STATUS_OK;
}

static const struct node_ops relu_ops = {
    .forward = relu_forward,
    .backward = relu_backward,
    .destroy = node_destroy_plain,
};

enum status node_create_relu(struct node *base, struct node **ret_node)
{
    base->keeps_y = true;
    base->y->block = base->x->block;
    return node_create_plain(base, &relu_ops, ret_node);
}
