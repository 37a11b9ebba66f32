/* Sum of two tensors, with the relu behind it; in the place of x where that may be overwritten. The
 * gradient of x is then that of y, and graph.c has found out whether other's is, too. */
#include "common/base/log.h"
#include "worker/device/cpu/loops.h"
#include "worker/device/cpu/node.h"

static enum status add_forward(struct node *node)
{
    uint32_t threads = node->context->threads;
    if (node->x != node->y) {
        loops_copy(node->y, node->y->data, node->x->data);
    }
    loops_add(node->y, node->y->data, node->other->data, threads);
    if (node->has_relu) {
        loops_relu(node->y, node->y->data, threads);
    }
    return STATUS_OK;
}

static enum status add_backward(struct node *node)
{
    uint32_t threads = node->context->threads;
    if (node->has_relu && !node->y->is_grad_masked) {
        loops_mask_positive(node->y, node->y->grad, node->y->data, threads);
    }
    if (node->x != node->y) {
        loops_pass_on(node->x, node->y->grad, node->adds_x, threads);
    }
    if (node->other->grad_of == NULL) {
        loops_pass_on(node->other, node->y->grad, node->adds_other, threads);
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
    if (base->x->element_bytes != base->other->element_bytes) {
        log_error("an add of what a convolution has read and of what it has not is not supported "
                  "in bf16 on cpu");
        return STATUS_UNSUPPORTED;
    }
    base->y->block = base->x->block;
    base->y->element_bytes = base->x->element_bytes;
    base->keeps_y = base->has_relu;
    return node_create_plain(base, &add_ops, ret_node);
}
