/* Relu, dropout and add: one kernel each way, in place where the graph allows. */
#include "worker/device/cuda/context.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

static enum status copy(const struct node_context *context, void *to, const void *from,
                        size_t count)
{
    return cuda_check((int)cudaMemcpyAsync(to, from, count * cuda_element_bytes(context),
                                           cudaMemcpyDeviceToDevice, context->stream),
                      "copy a tensor");
}

/* ---- relu ---- */

static enum status relu_forward(struct node *node)
{
    const struct node_context *context = node->context;
    size_t count = tensor_count(node->y);
    enum status status = STATUS_OK;
    if (node->x != node->y) {
        status = copy(context, node->y->data, node->x->data, count);
    }
    return status == STATUS_OK
               ? cuda_check(kernel_relu(context->type, node->y->data, count, context->stream),
                            "compute a relu")
               : status;
}

static enum status relu_backward(struct node *node)
{
    const struct node_context *context = node->context;
    size_t count = tensor_count(node->y);
    enum status status = STATUS_OK;
    if (node->x->is_pixels || (node->x == node->y && node->y->is_grad_masked)) {
        return STATUS_OK;
    }
    if (node->x != node->y) {
        status = copy(context, node->x->grad, node->y->grad, count);
    }
    return status == STATUS_OK
               ? cuda_check(kernel_mask_positive(context->type, node->x->grad, node->y->data, count,
                                                 context->stream),
                            "mask a gradient")
               : status;
}

static const struct node_ops relu_ops = {
    .forward = relu_forward,
    .backward = relu_backward,
    .destroy = node_destroy_plain,
};

enum status cuda_create_relu(struct node *base, struct node **ret_node)
{
    base->keeps_y = true;
    return node_create_plain(base, &relu_ops, ret_node);
}

/* ---- dropout ---- */

static enum status apply_mask(const struct node *node, const void *from, void *to)
{
    const struct node_context *context = node->context;
    const struct op *op = &node->op;
    const struct cuda_shape shape = {.channels = op->x.channels,
                                     .pixels = (size_t)op->x.rows * op->x.columns};
    const struct cuda_dropout dropout = {
        .stream = op->stream,
        .threshold = (uint32_t)ceil((double)op->rate * 0x1p32),
        .scale = 1 / (1 - op->rate),
    };
    return cuda_check(kernel_dropout(context->type, &shape, &dropout, context->sample_keys, from,
                                     to, tensor_count(node->y), context->stream),
                      "drop elements");
}

static enum status dropout_forward(struct node *node)
{
    if (node->context->pass.is_training) {
        return apply_mask(node, node->x->data, node->y->data);
    }
    return node->x == node->y
               ? STATUS_OK
               : copy(node->context, node->y->data, node->x->data, tensor_count(node->y));
}

static enum status dropout_backward(struct node *node)
{
    return node->x->is_pixels ? STATUS_OK : apply_mask(node, node->y->grad, node->x->grad);
}

static const struct node_ops dropout_ops = {
    .forward = dropout_forward,
    .backward = dropout_backward,
    .destroy = node_destroy_plain,
};

enum status cuda_create_dropout(struct node *base, struct node **ret_node)
{
    return node_create_plain(base, &dropout_ops, ret_node);
}

/* ---- add ---- */

struct add {
    struct node base;
    bool is_taken; // by the normalisation behind it: see cuda_norm_take_add
};

static enum status add_forward(struct node *node)
{
    const struct node_context *context = node->context;
    if (((const struct add *)node)->is_taken && cuda_norms_add(context)) {
        return STATUS_OK;
    }
    return cuda_check(kernel_add(context->type, node->x->data, node->other->data, node->y->data,
                                 node->has_relu, tensor_count(node->y), context->stream),
                      "add tensors");
}

enum status cuda_pass_on(const struct node *node, struct tensor *to, bool adds)
{
    const struct node_context *context = node->context;
    size_t count = tensor_count(to);
    if (!adds) {
        return copy(context, to->grad, node->y->grad, count);
    }
    return cuda_check(
        kernel_add(context->type, to->grad, node->y->grad, to->grad, false, count, context->stream),
        "add gradients");
}

static enum status add_backward(struct node *node)
{
    const struct node_context *context = node->context;
    enum status status = STATUS_OK;
    if (node->has_relu && !node->y->is_grad_masked) {
        status = cuda_check(kernel_mask_positive(context->type, node->y->grad, node->y->data,
                                                 tensor_count(node->y), context->stream),
                            "mask a gradient");
    }
    if (status == STATUS_OK && node->x != node->y) {
        status = cuda_pass_on(node, node->x, node->adds_x);
    }
    if (status == STATUS_OK && node->other->grad_of == NULL) {
        status = cuda_pass_on(node, node->other, node->adds_other);
    }
    return status;
}

static void add_destroy(struct node *node)
{
    free(node);
}

static const struct node_ops add_ops = {
    .forward = add_forward,
    .backward = add_backward,
    .destroy = add_destroy,
    .adds_gradients = true,
};

enum status cuda_create_add(struct node *base, struct node **ret_node)
{
    struct add *add = calloc(1, sizeof(*add));
    if (add == NULL) {
        return STATUS_NO_MEMORY;
    }
    add->base = *base;
    add->base.ops = &add_ops;
    add->base.keeps_y = base->has_relu;
    *ret_node = &add->base;
    return STATUS_OK;
}

void cuda_leave_add(struct node *add)
{
    assert(add->ops == &add_ops && !add->has_relu);
    ((struct add *)add)->is_taken = true;
}
