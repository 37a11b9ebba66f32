/* Convolutions, by oneDNN.
 *
 * Three passes (forward, data gradient, weight gradient), each with an algorithm of its own and so
 * with weights in a layout of its own: the plain weights of the flat vector are copied into it
 * before the pass, gradients are copied back after it. They are small beside the activations.
 *
 * The choice of algorithm is a rule on shapes: winograd.h.
 *
 * Blocked tensors have their channels padded to whole blocks, but the library's fast code wants the
 * channels themselves to be whole blocks. So it is told of the padding as if it were channels,
 * whose weights are zero; `padded` holds the weights with that padding. Where most of the input's
 * only block would be padding, the convolution works on a packed copy of it instead: `packed`. */
#include "common/base/log.h"
#include "common/base/memory.h"
#include "worker/device/cpu/bf16.h"
#include "worker/device/cpu/loops.h"
#include "worker/device/cpu/node.h"
#include "worker/device/cpu/onednn.h"
#include "worker/device/cpu/packed.h"
#include "worker/device/cpu/padded.h"
#include "worker/device/cpu/tiles.h"
#include "worker/device/cpu/winograd.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One pass: the primitive, and the copy of weights before or after it, to or from the scratch that
 * all convolutions share: it stays in the cache, and models have many more weights than that. */
struct pass {
    struct onednn_call call, reorder;
    bool is_winograd;
    bool is_in_tiles; // a gradient of weights, which is not copied by the library
};

struct conv2d {
    struct node base;
    struct pass forward, data, weights;
    struct padded padded;
    struct packed packed; // of x; empty if x is read as it lies

    /* In bf16, where x is not: a copy of it that is, with its gradient. data is NULL otherwise. */
    struct tensor halves;
    size_t half_bytes;
};

static struct conv2d *conv_of(struct node *node)
{
    return (struct conv2d *)node;
}

static void pass_destroy(struct pass *pass)
{
    onednn_call_destroy(&pass->call);
    onednn_call_destroy(&pass->reorder);
}

static void conv2d_destroy(struct node *node)
{
    struct conv2d *conv = conv_of(node);
    pass_destroy(&conv->forward);
    pass_destroy(&conv->data);
    pass_destroy(&conv->weights);
    padded_destroy(&conv->padded);
    packed_destroy(&conv->packed);
    memory_destroy_large(conv->halves.data, conv->half_bytes);
    free(conv);
}

/* What the library reads: x, or its copy. */
static const struct tensor *input_of(const struct node *node)
{
    const struct conv2d *conv = (const struct conv2d *)node;
    return conv->halves.data != NULL ? &conv->halves : node->x;
}

/* Data and gradient of the copy, one behind the other. */
static enum status create_halves(struct conv2d *conv)
{
    const struct tensor *x = conv->base.x;
    if (!conv->base.context->is_bf16 || tensor_is_bf16(x)) {
        return STATUS_OK;
    }
    size_t count = (tensor_count(x) + 1) / 2 * 2; // both begin as floats do
    conv->half_bytes = 2 * count * sizeof(uint16_t);
    conv->halves = *x;
    conv->halves.block = x->shape.channels;
    conv->halves.element_bytes = sizeof(uint16_t);
    conv->halves.data = memory_create_large(conv->half_bytes);
    conv->halves.grad = conv->halves.data != NULL ? conv->halves.data + count / 2 : NULL;
    return conv->halves.data != NULL ? STATUS_OK : STATUS_NO_MEMORY;
}

/* Channels of a tensor as the library is told. */
static uint32_t channels_of(const struct tensor *tensor)
{
    return (tensor->shape.channels + tensor->block - 1) / tensor->block * tensor->block;
}

/* The library wants both sides packed or none; one whole block lies the same either way. */
static bool wants_packing(const struct node *node)
{
    const struct tensor *x = input_of(node);
    return !tensor_is_bf16(x) && 2 * x->shape.channels <= x->block &&
           channels_of(node->y) == node->y->block;
}

static uint32_t inputs_of(const struct node *node)
{
    return wants_packing(node) ? node->x->shape.channels : channels_of(input_of(node));
}

static bool is_padded(const struct conv2d *conv)
{
    return conv->padded.weight != NULL;
}

/* What the library is told, but for the pass and its algorithm. Weights and their gradients, which
 * are float, are to have any layout. */
static struct onednn_convolution convolution_of(const struct node *node)
{
    const struct op *op = &node->op;
    uint32_t outputs = channels_of(node->y), inputs = inputs_of(node);
    bool is_packed = wants_packing(node);
    struct onednn_convolution convolution = {
        .x = onednn_layout_of(input_of(node), inputs, is_packed),
        .y = onednn_layout_of(node->y, outputs, is_packed),
        .bias = {.dim_count = 1, .dims = {outputs}, .type = dnnl_f32, .tag = dnnl_a},
        .weights = {.dim_count = 4,
                    .dims = {outputs, inputs, op->window, op->window},
                    .type = dnnl_f32,
                    .tag = dnnl_format_tag_any},
        .strides = {op->stride, op->stride},
        .padding = {op->padding, op->padding},
    };
    convolution.weight_grads = convolution.weights;
    if (node->context->is_bf16) {
        convolution.weights.type = dnnl_bf16;
    }
    if (!op->has_bias) {
        convolution.bias.dim_count = 0;
    }
    return convolution;
}

/* A copy of weights from the plain layout to the pass's own, or of their gradients back. */
static enum status create_copy(struct node *node, struct pass *pass,
                               const struct onednn_convolution *convolution)
{
    struct node_context *context = node->context;
    const struct conv2d *conv = conv_of(node);
    bool is_gradient = convolution->kind == dnnl_backward_weights;
    struct onednn_layout plain = convolution->weight_grads;
    plain.tag = dnnl_abcd;
    struct onednn_copy copy = {
        .call = &pass->call,
        .argument = is_gradient ? DNNL_ARG_DIFF_WEIGHTS : DNNL_ARG_WEIGHTS,
        .is_back = is_gradient,
        .layout = &plain,
    };
    if (is_gradient) {
        copy.data = is_padded(conv) ? conv->padded.weight_grad : context->grads + node->op.weight;
    } else {
        copy.data = is_padded(conv) ? conv->padded.weight : context->params + node->op.weight;
    }
    return onednn_copy_create(context, &copy, &pass->reorder);
}

/* Notes what memory the weights take in the pass's layout, and how they are copied. */
static enum status create_reorder(struct node *node, struct pass *pass,
                                  const struct onednn_convolution *convolution)
{
    struct node_context *context = node->context;
    bool is_gradient = convolution->kind == dnnl_backward_weights;
    int argument = is_gradient ? DNNL_ARG_DIFF_WEIGHTS : DNNL_ARG_WEIGHTS;
    size_t bytes;
    enum status status = onednn_call_add_wanted(context, &pass->call, argument, &bytes);
    if (status != STATUS_OK) {
        return status;
    }
    if (bytes > context->weight_bytes) {
        context->weight_bytes = bytes;
    }
    if (is_gradient && !is_padded(conv_of(node)) && tiles_are_wanted(&convolution->weight_grads)) {
        const struct onednn_layout tiles = tiles_layout(&convolution->weight_grads);
        status = onednn_call_has_layout(&pass->call, argument, &tiles, &pass->is_in_tiles);
        if (status != STATUS_OK) {
            return status;
        }
    }
    return pass->is_in_tiles ? STATUS_OK : create_copy(node, pass, convolution);
}

static enum status create_pass(struct node *node, dnnl_prop_kind_t kind, struct pass *pass)
{
    struct onednn_convolution convolution = convolution_of(node);
    bool has_relu = kind == dnnl_forward_training && node->has_relu;
    enum status status = STATUS_UNSUPPORTED;
    convolution.kind = kind;
    if (winograd_is_wanted(node, kind)) {
        convolution.algorithm = dnnl_convolution_winograd;
        status = onednn_convolution_create(node->context, &convolution, has_relu, &pass->call);
    }
    pass->is_winograd = status == STATUS_OK;
    node->context->winograd_passes += pass->is_winograd ? 1 : 0;
    if (status == STATUS_UNSUPPORTED) {
        convolution.algorithm = dnnl_convolution_direct;
        status = onednn_convolution_create(node->context, &convolution, has_relu, &pass->call);
    }
    if (status == STATUS_UNSUPPORTED) {
        log_error("oneDNN has no convolution for this shape");
    }
    return status == STATUS_OK ? create_reorder(node, pass, &convolution) : status;
}

/* NULL in a program that only evaluates. */
static float *bias_gradient_of(const struct conv2d *conv)
{
    const struct node_context *context = conv->base.context;
    if (context->grads == NULL) {
        return NULL;
    }
    return is_padded(conv) ? conv->padded.bias_grad : context->grads + conv->base.op.bias;
}

static enum status add_arguments(struct conv2d *conv)
{
    struct node_context *context = conv->base.context;
    const struct op *op = &conv->base.op;
    const struct onednn_convolution convolution = convolution_of(&conv->base);
    const float *bias = is_padded(conv) ? conv->padded.bias : context->params + op->bias;
    const struct {
        struct onednn_call *call;
        int argument;
        const struct onednn_layout *layout;
        const void *data;
    } rows[] = {
        {&conv->forward.call, DNNL_ARG_SRC, &convolution.x, NULL},
        {&conv->forward.call, DNNL_ARG_DST, &convolution.y, NULL},
        {&conv->forward.call, DNNL_ARG_BIAS, &convolution.bias, bias},
        {&conv->weights.call, DNNL_ARG_SRC, &convolution.x, NULL},
        {&conv->weights.call, DNNL_ARG_DIFF_DST, &convolution.y, NULL},
        {&conv->weights.call, DNNL_ARG_DIFF_BIAS, &convolution.bias, bias_gradient_of(conv)},
        {&conv->data.call, DNNL_ARG_DIFF_SRC, &convolution.x, NULL},
        {&conv->data.call, DNNL_ARG_DIFF_DST, &convolution.y, NULL},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (rows[i].call->primitive == NULL || rows[i].layout->dim_count == 0) {
            continue;
        }
        enum status status =
            onednn_call_add(context, rows[i].call, rows[i].argument, rows[i].layout, rows[i].data);
        if (status != STATUS_OK) {
            return status;
        }
    }
    return STATUS_OK;
}

static enum status conv2d_bind(struct node *node)
{
    struct conv2d *conv = conv_of(node);
    const struct tensor *input = input_of(node);
    const float *x = conv->packed.data != NULL ? conv->packed.data : input->data;
    const float *x_grad = conv->packed.grad != NULL ? conv->packed.grad : input->grad;
    const void *weights = node->context->weights;
    const struct {
        struct onednn_call *call;
        int argument;
        const void *data;
    } rows[] = {
        {&conv->forward.reorder, DNNL_ARG_TO, weights},
        {&conv->forward.call, DNNL_ARG_WEIGHTS, weights},
        {&conv->data.reorder, DNNL_ARG_TO, weights},
        {&conv->data.call, DNNL_ARG_WEIGHTS, weights},
        {&conv->weights.reorder, DNNL_ARG_FROM, weights},
        {&conv->weights.call, DNNL_ARG_DIFF_WEIGHTS, weights},
        {&conv->forward.call, DNNL_ARG_SRC, x},
        {&conv->forward.call, DNNL_ARG_DST, node->y->data},
        {&conv->forward.call, DNNL_ARG_SCRATCHPAD, node->context->scratch},
        {&conv->weights.call, DNNL_ARG_SRC, x},
        {&conv->weights.call, DNNL_ARG_DIFF_DST, node->y->grad},
        {&conv->weights.call, DNNL_ARG_SCRATCHPAD, node->context->scratch},
        {&conv->data.call, DNNL_ARG_DIFF_SRC, x_grad},
        {&conv->data.call, DNNL_ARG_DIFF_DST, node->y->grad},
        {&conv->data.call, DNNL_ARG_SCRATCHPAD, node->context->scratch},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (rows[i].data == NULL) {
            continue; // the pixels, which come with each forward
        }
        enum status status = onednn_call_point(rows[i].call, rows[i].argument, rows[i].data);
        if (status != STATUS_OK) {
            return status;
        }
    }
    return STATUS_OK;
}

static enum status conv2d_forward(struct node *node)
{
    struct conv2d *conv = conv_of(node);
    enum status status = STATUS_OK;
    if (conv->halves.data != NULL) {
        bf16_from_plain(node->x, node->x->data, (void *)conv->halves.data, node->context->threads);
    } else if (node->x->is_pixels) {
        status = onednn_call_point(&conv->forward.call, DNNL_ARG_SRC, node->x->data);
    }
    if (conv->packed.data != NULL) {
        packed_read(&conv->packed, node->x, node->context->threads);
    }
    if (is_padded(conv)) {
        padded_read(&conv->padded, &node->op, node->context->params);
    }
    if (status != STATUS_OK) {
        return status;
    }
    status = onednn_call_run(node->context, &conv->forward.reorder);
    return status == STATUS_OK ? onednn_call_run(node->context, &conv->forward.call) : status;
}

/* To where they are plain, or plain but padded. */
static enum status bring_weight_grads(const struct conv2d *conv)
{
    struct node_context *context = conv->base.context;
    if (!conv->weights.is_in_tiles) {
        return onednn_call_run(context, &conv->weights.reorder);
    }
    const struct onednn_layout layout = convolution_of(&conv->base).weight_grads;
    tiles_to_rows(&layout, context->weights, context->grads + conv->base.op.weight,
                  context->threads);
    return STATUS_OK;
}

static enum status backward_weights(struct conv2d *conv)
{
    struct node *node = &conv->base;
    if (node->x->is_pixels && conv->halves.data == NULL) {
        enum status status = onednn_call_point(&conv->weights.call, DNNL_ARG_SRC, node->x->data);
        if (status != STATUS_OK) {
            return status;
        }
    }
    enum status status = onednn_call_run(node->context, &conv->weights.call);
    if (status != STATUS_OK) {
        return status;
    }
    status = bring_weight_grads(conv);
    if (status == STATUS_OK && is_padded(conv)) {
        padded_write_grads(&conv->padded, &node->op, node->context->grads);
    }
    return status;
}

/* Does nothing where no gradient of x is asked for: its calls were never created. */
static enum status backward_data(struct conv2d *conv)
{
    struct node *node = &conv->base;
    enum status status = onednn_call_run(node->context, &conv->data.reorder);
    if (status != STATUS_OK) {
        return status;
    }
    status = onednn_call_run(node->context, &conv->data.call);
    if (status != STATUS_OK) {
        return status;
    }
    if (conv->packed.grad != NULL && node->x->grad != NULL) {
        packed_write_grad(&conv->packed, node->x, node->context->threads);
    }
    if (conv->halves.data != NULL && !node->x->is_pixels) {
        bf16_to_plain(node->x, (const void *)conv->halves.grad, node->x->grad,
                      node->context->threads);
    }
    return STATUS_OK;
}

static enum status conv2d_backward(struct node *node)
{
    struct conv2d *conv = conv_of(node);
    if (node->has_relu && !node->y->is_grad_masked) {
        loops_mask_positive(node->y, node->y->grad, node->y->data, node->context->threads);
    }
    enum status status = backward_weights(conv);
    return status == STATUS_OK ? backward_data(conv) : status;
}

static const char *pass_name(const struct pass *pass)
{
    if (pass->call.primitive == NULL) {
        return "-";
    }
    return pass->is_winograd ? "winograd" : "direct";
}

static void conv2d_describe(const struct node *node, char *ret_text, size_t text_size)
{
    const struct conv2d *conv = (const struct conv2d *)node;
    snprintf(ret_text, text_size, "conv %ux%u %u->%u %s/%s/%s", node->op.window, node->op.window,
             node->op.x.channels, node->op.y.channels, pass_name(&conv->forward),
             pass_name(&conv->data), pass_name(&conv->weights));
}

static const struct node_ops conv2d_ops = {
    .bind = conv2d_bind,
    .forward = conv2d_forward,
    .backward = conv2d_backward,
    .describe = conv2d_describe,
    .destroy = conv2d_destroy,
};

/* Creates what holds operands in other forms than the tensors do: halves, padded weights, packed
 * pixels. */
static enum status create_copies(struct conv2d *conv)
{
    struct node *node = &conv->base;
    enum status status = create_halves(conv);
    if (status != STATUS_OK) {
        return status;
    }
    status = padded_create(&node->op, channels_of(node->y), inputs_of(node), &conv->padded);
    if (status != STATUS_OK || !wants_packing(node)) {
        return status;
    }
    return packed_create(node->x, &conv->packed);
}

static enum status create_passes(struct conv2d *conv)
{
    struct node *node = &conv->base;
    enum status status = create_pass(node, dnnl_forward_training, &conv->forward);
    if (status != STATUS_OK || node->context->grads == NULL) {
        return status;
    }
    status = create_pass(node, dnnl_backward_weights, &conv->weights);
    if (status != STATUS_OK || node->x->is_pixels) {
        return status;
    }
    return create_pass(node, dnnl_backward_data, &conv->data);
}

enum status node_create_conv2d(struct node *base, struct node **ret_node)
{
    struct conv2d *conv = calloc(1, sizeof(*conv));
    if (conv == NULL) {
        return STATUS_NO_MEMORY;
    }
    conv->base = *base;
    conv->base.ops = &conv2d_ops;
    conv->base.keeps_x = true;
    conv->base.keeps_y = base->has_relu;
    bool is_bf16 = base->context->is_bf16;
    base->y->block = is_bf16 ? base->op.y.channels : onednn_block();
    base->y->element_bytes = is_bf16 ? sizeof(uint16_t) : 0;
    enum status status = create_copies(conv);
    if (status != STATUS_OK) {
        goto fail;
    }
    status = create_passes(conv);
    if (status != STATUS_OK) {
        goto fail;
    }
    status = add_arguments(conv);
    if (status != STATUS_OK) {
        goto fail;
    }
    *ret_node = &conv->base;
    return STATUS_OK;
fail:
    conv2d_destroy(&conv->base);
    return status;
}
