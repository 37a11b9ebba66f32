/* Convolutions, by cuDNN: bias and relu are part of the forward pass. Weights are copied into the
 * library's layout and type before it, gradients back after theirs; both are small beside the
 * activations. */
#include "worker/device/cuda/context.h"
#include "worker/device/cuda/report.h"

#include <stdio.h>
#include <stdlib.h>

struct conv2d {
    struct node base;
    struct dnn_plan passes[3]; // by enum dnn_pass
};

static struct conv2d *conv_of(struct node *node)
{
    return (struct conv2d *)node;
}

static void conv2d_destroy(struct node *node)
{
    struct conv2d *conv = conv_of(node);
    for (uint32_t i = 0; i < 3; i++) {
        dnn_plan_destroy(&conv->passes[i]);
    }
    free(conv);
}

static struct cuda_weights weights_of(const struct op *op)
{
    return (struct cuda_weights){.inputs = op->x.channels, .taps = (size_t)op->window * op->window};
}

static enum status take_weights(const struct node *node)
{
    const struct node_context *context = node->context;
    const struct op *op = &node->op;
    const struct cuda_weights weights = weights_of(op), bias = {.inputs = 1, .taps = 1};
    int result = kernel_weights_in(context->type, &weights, context->params + op->weight,
                                   cuda_weight_at(context, op->weight), op_weight_count(op),
                                   context->stream);
    if (result == 0 && op->has_bias) {
        result =
            kernel_weights_in(context->type, &bias, context->params + op->bias,
                              cuda_weight_at(context, op->bias), op->y.channels, context->stream);
    }
    return cuda_check(result, "copy weights");
}

static enum status conv2d_forward(struct node *node)
{
    struct node_context *context = node->context;
    enum status status = take_weights(node);
    const struct dnn_operands operands = {
        .x = node->x->data,
        .w = cuda_weight_at(context, node->op.weight),
        .y = node->y->data,
        .bias = node->op.has_bias ? cuda_weight_at(context, node->op.bias) : NULL,
        .workspace = context->workspace,
    };
    return status == STATUS_OK
               ? dnn_plan_run(&context->dnn, &conv_of(node)->passes[DNN_FORWARD], &operands)
               : status;
}

static enum status weight_gradient(struct node *node)
{
    struct node_context *context = node->context;
    const struct op *op = &node->op;
    const struct cuda_weights weights = weights_of(op);
    const struct dnn_operands operands = {
        .x = node->x->data,
        .w = context->dweights,
        .y = node->y->grad,
        .workspace = context->workspace,
    };
    enum status status =
        dnn_plan_run(&context->dnn, &conv_of(node)->passes[DNN_WEIGHT_GRADIENT], &operands);
    if (status == STATUS_OK) {
        status = cuda_check(kernel_weights_out(context->type, &weights, context->dweights,
                                               context->grads + op->weight, op_weight_count(op),
                                               context->stream),
                            "copy a weight gradient");
    }
    return status;
}

static enum status conv2d_backward(struct node *node)
{
    struct node_context *context = node->context;
    const struct op *op = &node->op;
    enum status status = STATUS_OK;
    if (node->has_relu && !node->y->is_grad_masked) {
        status = cuda_check(kernel_mask_positive(context->type, node->y->grad, node->y->data,
                                                 tensor_count(node->y), context->stream),
                            "mask a gradient");
    }
    if (status == STATUS_OK && op->has_bias) {
        status = cuda_sum_rows(context, node->y->grad, tensor_count(node->y) / op->y.channels,
                               op->y.channels, context->grads + op->bias);
    }
    if (status == STATUS_OK) {
        status = weight_gradient(node);
    }
    if (status != STATUS_OK || node->x->is_pixels) {
        return status;
    }
    const struct dnn_operands operands = {
        .x = node->x->grad,
        .w = cuda_weight_at(context, op->weight),
        .y = node->y->grad,
        .workspace = context->workspace,
    };
    return dnn_plan_run(&context->dnn, &conv_of(node)->passes[DNN_DATA_GRADIENT], &operands);
}

static void conv2d_describe(const struct node *node, char *ret_text, size_t text_size)
{
    const struct conv2d *conv = (const struct conv2d *)node;
    snprintf(ret_text, text_size, "conv %ux%u %u->%u engines %s/%s/%s", node->op.window,
             node->op.window, node->op.x.channels, node->op.y.channels,
             conv->passes[DNN_FORWARD].engine, conv->passes[DNN_DATA_GRADIENT].engine,
             conv->passes[DNN_WEIGHT_GRADIENT].engine);
}

static const struct node_ops conv2d_ops = {
    .forward = conv2d_forward,
    .backward = conv2d_backward,
    .describe = conv2d_describe,
    .destroy = conv2d_destroy,
};

static enum status plan_pass(struct conv2d *conv, enum dnn_pass pass)
{
    const struct op *op = &conv->base.op;
    struct node_context *context = conv->base.context;
    const struct dnn_conv shape = {
        .batch = context->batch,
        .inputs = op->x.channels,
        .outputs = op->y.channels,
        .x_rows = op->x.rows,
        .x_columns = op->x.columns,
        .y_rows = op->y.rows,
        .y_columns = op->y.columns,
        .window = op->window,
        .stride = op->stride,
        .padding = op->padding,
        .has_bias = op->has_bias,
        .has_relu = conv->base.has_relu,
    };
    enum status status = dnn_plan_conv(&context->dnn, &shape, pass, &conv->passes[pass]);
    if (status != STATUS_OK) {
        report_error("cuDNN has no engine for a convolution of %ux%u from %u to %u channels of "
                     "%ux%u in this precision%s",
                     op->window, op->window, op->x.channels, op->y.channels, op->x.rows,
                     op->x.columns,
                     context->dnn.allows_nondeterministic
                         ? ""
                         : " that repeats its bits; --allow-nondeterministic admits others");
        return status;
    }
    size_t bytes = conv->passes[pass].workspace_bytes;
    context->workspace_bytes = context->workspace_bytes < bytes ? bytes : context->workspace_bytes;
    return STATUS_OK;
}

enum status cuda_create_conv2d(struct node *base, struct node **ret_node)
{
    struct conv2d *conv = calloc(1, sizeof(*conv));
    if (conv == NULL) {
        return STATUS_NO_MEMORY;
    }
    struct node_context *context = base->context;
    conv->base = *base;
    conv->base.ops = &conv2d_ops;
    conv->base.keeps_x = true;
    conv->base.keeps_y = base->has_relu;
    enum status status = plan_pass(conv, DNN_FORWARD);
    if (status == STATUS_OK && context->is_trained) {
        status = plan_pass(conv, DNN_WEIGHT_GRADIENT);
    }
    if (status == STATUS_OK && context->is_trained && !base->x->is_pixels) {
        status = plan_pass(conv, DNN_DATA_GRADIENT);
    }
    size_t bytes = op_weight_count(&base->op) * cuda_element_bytes(context);
    context->dweight_bytes = context->dweight_bytes < bytes ? bytes : context->dweight_bytes;
    cuda_reserve_sums(context, tensor_count(base->y) / base->op.y.channels, base->op.y.channels);
    if (status != STATUS_OK) {
        conv2d_destroy(&conv->base);
        return status;
    }
    *ret_node = &conv->base;
    return STATUS_OK;
}
