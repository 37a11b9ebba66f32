/* Sum of two tensors, with the relu behind it; in the place of x where that may be overwritten. The
 * gradient of x is then that of y, and graph.c has found out whether other's is, too. */
#include "worker/device/cpu/elementwise.h"
#include "worker/device/cpu/node.h"

#include <string.h>

static enum status add_forward(struct node *node)
{
    size_t count = tensor_count(node->y);
    uint32_t threads = node->context->threads;
    if (node->x != node->y) {
        memcpy(node->y->data, node->x->data, count * sizeof(float));
    }
    elementwise_add(node->y->data, node->other->data, count, threads);
    if (node->has_relu) {
        elementwise_relu(node->y->data, count, threads);
    }
    return STATUS_OK;
}

static void pass_on(const struct node *node, struct tensor *to, bool adds)
{
    size_t count = tensor_count(to);
    if (adds) {
        elementwise_add(to->grad, node->y->grad, count, node->context->threads);
    } else {
        memcpy(to->grad, node->y->grad, count * sizeof(float));
    }
}

static enum status add_backward(struct node *node)
{
    if (node->has_relu && !node->y->is_grad_masked) {
        elementwise_mask_positive(node->y->grad, node->y->data, tensor_count(node->y),
                                  node->context->threads);
    }
    if (node->x != node->y) {
        pass_on(node, node->x, node->adds_x);
    }
    if (node->other->grad_of == NULL) {
        pass_on(node, node->other, node->adds_other);
    }
    return STATUS_OK;
}

static const struct node_ops add_ops = {
    .forward = add_forward,
    .backward = add_backward,
    .destroy = node_destroy_plain,
    .adds_gradients = true,
};

enum status node_create_add(struct node *base, struct node **ret_node)
{
    base->y->block = base->x->block;
    base->keeps_y = base->has_relu;
    return node_create_plain(base, &add_ops, ret_node);
}
