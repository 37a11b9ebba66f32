/* A relu that no other node took along, in place. */
#include "worker/device/cpu/elementwise.h"
#include "worker/device/cpu/node.h"

#include <stdlib.h>
#include <string.h>

static enum status relu_forward(struct node *node)
{
    size_t count = cpu_tensor_count(node->y);
    if (node->x != node->y) {
        memcpy(node->y->data, node->x->data, count * sizeof(float));
    }
    elementwise_relu(node->y->data, count, node->context->threads);
    return STATUS_OK;
}

static enum status relu_backward(struct node *node)
{
    if (node->x->is_pixels) {
        return STATUS_OK;
    }
    elementwise_mask_positive(node->y->grad, node->y->data, cpu_tensor_count(node->y),
                              node->context->threads);
    return STATUS_OK;
}

static void relu_destroy(struct node *node)
{
    free(node);
}

static const struct node_ops relu_ops = {
    .forward = relu_forward,
    .backward = relu_backward,
    .destroy = relu_destroy,
};

enum status node_create_relu(struct node *base, struct node **ret_node)
{
    struct node *node = calloc(1, sizeof(*node));
    if (node == NULL) {
        return STATUS_NO_MEMORY;
    }
    *node = *base;
    node->ops = &relu_ops;
    *ret_node = node;
    return STATUS_OK;
}
