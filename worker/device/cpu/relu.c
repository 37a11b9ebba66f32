/* A relu that is not fused with another node, in place. */
#include "worker/device/cpu/loops.h"
#include "worker/device/cpu/node.h"

static enum status relu_forward(struct node *node)
{
    if (node->x != node->y) {
        loops_copy(node->y, node->y->data, node->x->data);
    }
    loops_relu(node->y, node->y->data, node->context->threads);
    return STATUS_OK;
}

static enum status relu_backward(struct node *node)
{
    if (node->x->is_pixels || (node->x == node->y && node->y->is_grad_masked)) {
        return STATUS_OK;
    }
    if (node->x != node->y) {
        loops_copy(node->x, node->x->grad, node->y->grad);
    }
    loops_mask_positive(node->y, node->x->grad, node->y->data, node->context->threads);
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
    base->y->element_bytes = base->x->element_bytes;
    return node_create_plain(base, &relu_ops, ret_node);
}
