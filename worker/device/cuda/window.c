/* Pooling, subsampling and padding on a GPU. */
#include "worker/device/cuda/context.h"
#include "worker/device/cuda/host/report.h"

#include <stdlib.h>

#define POOL_WINDOW_MAX 16 // so that an index fits into a byte

static struct cuda_window window_of(const struct op *op)
{
    return (struct cuda_window){
        .x_channels = op->x.channels,
        .x_rows = op->x.rows,
        .x_columns = op->x.columns,
        .y_channels = op->y.channels,
        .y_rows = op->y.rows,
        .y_columns = op->y.columns,
        .window = op->window,
        .stride = op->stride,
        .padding = op->padding,
    };
}

static struct cuda_shape shape_of(const struct op *op)
{
    return (struct cuda_shape){.channels = op->x.channels,
                               .pixels = (size_t)op->x.rows * op->x.columns};
}

/* ---- max pooling ---- */

struct max_pool {
    struct node base;
    unsigned char *indices; // like y, device memory, owned
};

static enum status max_pool_forward(struct node *node)
{
    const struct node_context *context = node->context;
    const struct cuda_window window = window_of(&node->op);
    return cuda_check(kernel_max_pool(context->type, &window, node->x->data, node->y->data,
                                      ((struct max_pool *)node)->indices, tensor_count(node->y),
                                      context->stream),
                      "pool");
}

static enum status max_pool_backward(struct node *node)
{
    const struct node_context *context = node->context;
    const struct cuda_window window = window_of(&node->op);
    enum status status = STATUS_OK;
    if (node->x->is_pixels) {
        return STATUS_OK;
    }
    if (node->x->is_grad_masked) { // what is no maximum gets nothing anyway
        status = cuda_check(kernel_mask_positive(context->type, node->y->grad, node->y->data,
                                                 tensor_count(node->y), context->stream),
                            "mask a gradient");
    }
    return status == STATUS_OK
               ? cuda_check(kernel_max_pool_back(context->type, &window, node->y->grad,
                                                 ((struct max_pool *)node)->indices, node->x->grad,
                                                 tensor_count(node->x), context->stream),
                            "pool a gradient")
               : status;
}

static enum status max_pool_bind(struct node *node)
{
    struct max_pool *pool = (struct max_pool *)node;
    return cuda_check((int)cudaMalloc((void **)&pool->indices, tensor_count(node->y)),
                      "get memory for the indices of a pooling");
}

static void max_pool_destroy(struct node *node)
{
    struct max_pool *pool = (struct max_pool *)node;
    cudaFree(pool->indices);
    free(pool);
}

static const struct node_ops max_pool_ops = {
    .bind = max_pool_bind,
    .forward = max_pool_forward,
    .backward = max_pool_backward,
    .destroy = max_pool_destroy,
};

enum status cuda_create_max_pool(struct node *base, struct node **ret_node)
{
    if (base->op.window > POOL_WINDOW_MAX) {
        report_error("max pooling over windows larger than %d is not supported on cuda",
                     POOL_WINDOW_MAX);
        return STATUS_UNSUPPORTED;
    }
    struct max_pool *pool = calloc(1, sizeof(*pool));
    if (pool == NULL) {
        return STATUS_NO_MEMORY;
    }
    base->x->is_grad_masked = base->x->is_rectified && !base->x->is_shared;
    pool->base = *base;
    pool->base.ops = &max_pool_ops;
    pool->base.keeps_y = base->x->is_grad_masked;
    *ret_node = &pool->base;
    return STATUS_OK;
}

/* ---- subsampling ---- */

static enum status subsample_forward(struct node *node)
{
    const struct node_context *context = node->context;
    const struct cuda_window window = window_of(&node->op);
    return cuda_check(kernel_subsample(context->type, &window, node->x->data, node->y->data,
                                       tensor_count(node->y), context->stream),
                      "subsample");
}

static enum status subsample_backward(struct node *node)
{
    const struct node_context *context = node->context;
    const struct cuda_window window = window_of(&node->op);
    return node->x->is_pixels
               ? STATUS_OK
               : cuda_check(kernel_subsample_back(context->type, &window, node->y->grad,
                                                  node->x->grad, tensor_count(node->x),
                                                  context->stream),
                            "spread a gradient");
}

static const struct node_ops subsample_ops = {
    .forward = subsample_forward,
    .backward = subsample_backward,
    .destroy = node_destroy_plain,
};

enum status cuda_create_subsample(struct node *base, struct node **ret_node)
{
    return node_create_plain(base, &subsample_ops, ret_node);
}

/* ---- padding ---- */

static enum status pad_forward(struct node *node)
{
    const struct node_context *context = node->context;
    const struct cuda_window window = window_of(&node->op);
    return cuda_check(kernel_pad(context->type, &window, node->x->data, node->y->data,
                                 tensor_count(node->y), context->stream),
                      "pad");
}

static enum status pad_backward(struct node *node)
{
    const struct node_context *context = node->context;
    const struct cuda_window window = window_of(&node->op);
    return node->x->is_pixels
               ? STATUS_OK
               : cuda_check(kernel_pad_back(context->type, &window, node->y->grad, node->x->grad,
                                            tensor_count(node->x), context->stream),
                            "crop a gradient");
}

static const struct node_ops pad_ops = {
    .forward = pad_forward,
    .backward = pad_backward,
    .destroy = node_destroy_plain,
};

enum status cuda_create_pad(struct node *base, struct node **ret_node)
{
    return node_create_plain(base, &pad_ops, ret_node);
}

/* ---- global pooling ---- */

static enum status global_pool_forward(struct node *node)
{
    const struct node_context *context = node->context;
    const struct cuda_shape shape = shape_of(&node->op);
    return cuda_check(kernel_global_pool(context->type, &shape, node->x->data, node->y->data,
                                         tensor_count(node->y), context->stream),
                      "pool globally");
}

static enum status global_pool_backward(struct node *node)
{
    const struct node_context *context = node->context;
    const struct cuda_shape shape = shape_of(&node->op);
    return node->x->is_pixels
               ? STATUS_OK
               : cuda_check(kernel_global_pool_back(context->type, &shape, node->y->grad,
                                                    node->x->grad, tensor_count(node->x),
                                                    context->stream),
                            "spread a gradient");
}

static const struct node_ops global_pool_ops = {
    .forward = global_pool_forward,
    .backward = global_pool_backward,
    .destroy = node_destroy_plain,
};

enum status cuda_create_global_pool(struct node *base, struct node **ret_node)
{
    return node_create_plain(base, &global_pool_ops, ret_node);
}
