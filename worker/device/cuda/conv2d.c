/* Convolutions, by cuDNN: bias and relu are part of the forward pass. Weights are copied into the
 * library's layout and type before it (weights.h), gradients back after theirs; both are small
 * beside the activations.
 *
 * Statistics: where a normalisation alone reads the result, a convolution in training adds up its
 * channels, and their squares, while it writes them, so that the normalisation need not read them
 * all for its mean and variance. It does so
 *
 *     where bits may differ   (--allow-nondeterministic): the engines that take bfloat16 add up
 *                             tiles by atomic additions, see dnn_operands. Others (of cuDNN 9.19)
 *                             take half precision alone.
 *     in bfloat16             Variance is the mean of squares less the square of the mean, which
 *                             keeps an error of k 2^-24 (1 + m^2), relative: k additions of floats
 *                             behind each other, a mean of m deviations. k is 2,100 for a batch of
 *                             128 pictures of 32x32, tiles of 64 rows one by one. At m = 10, where
 *                             rounding to bfloat16 alone costs a normalised value 2^-9 m = 0.02,
 *                             all that we allow, the variance is wrong by 0.013 at most, and the
 *                             value by half of that. In float even m = 0 may cost more than the
 *                             1e-4 that we allow there.
 *     of full batches         Padding would be added up, too. Passes that have some, and
 *                             evaluations, take the plan without statistics.
 *     if there is an engine   cuDNN compiles them while the job starts, so those that are alike
 *                             share a plan. Without one the normalisation reads what it always
 *                             did. */
#include "worker/device/cuda/context.h"
#include "worker/device/cuda/host/report.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

struct conv2d {
    struct node base;
    struct dnn_plan passes[3]; // by enum dnn_pass
    size_t weight_at, bias_at; // see cuda_reserve_weights
    uint32_t gradient;         // see cuda_reserve_gradient

    // Forward with statistics.
    struct dnn_plan own_statistics;
    struct dnn_plan *statistics; // that, or of one alike; NULL: none
    struct conv2d *previous;     // of the program, borrowed while nodes are created
    float *sums;                 // (2, sum_stride), device memory, owned
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
    dnn_plan_destroy(&conv->own_statistics);
    cudaFree(conv->sums);
    free(conv);
}

/* From the sums of channels to those of their squares: both begin as aligned as libraries ask. */
static size_t sum_stride(const struct node *node)
{
    return ((size_t)node->op.y.channels + 63) / 64 * 64;
}

static size_t sum_bytes(const struct node *node)
{
    return 2 * sum_stride(node) * sizeof(float);
}

static enum status conv2d_bind(struct node *node)
{
    struct conv2d *conv = conv_of(node);
    if (conv->statistics == NULL) {
        return STATUS_OK;
    }
    int result = (int)cudaMalloc((void **)&conv->sums, sum_bytes(node));
    if (result == 0) {
        node->y->sums = conv->sums;
        node->y->square_sums = conv->sums + sum_stride(node);
    }
    return cuda_check(result, "get memory for statistics");
}

static enum status conv2d_forward(struct node *node)
{
    struct node_context *context = node->context;
    struct conv2d *conv = conv_of(node);
    struct dnn_plan *plan = &conv->passes[DNN_FORWARD];
    enum status status = STATUS_OK;
    struct dnn_operands operands = {
        .x = node->x->data,
        .w = cuda_weights_at(context, conv->weight_at),
        .y = node->y->data,
        .bias = node->op.has_bias ? cuda_weights_at(context, conv->bias_at) : NULL,
        .workspace = context->workspace,
    };
    if (cuda_has_sums(context, node->y)) {
        plan = conv->statistics;
        operands.sums = node->y->sums;
        operands.square_sums = node->y->square_sums;
        status = cuda_check((int)cudaMemsetAsync(conv->sums, 0, sum_bytes(node), context->stream),
                            "set sums to zero");
    }
    return status == STATUS_OK ? dnn_plan_run(&context->dnn, plan, &operands) : status;
}

static enum status weight_gradient(struct node *node)
{
    struct node_context *context = node->context;
    const struct conv2d *conv = conv_of(node);
    struct dnn_operands operands = {
        .x = node->x->data,
        .y = node->y->grad,
        .workspace = context->workspace,
    };
    enum status status = cuda_begin_gradient(context, conv->gradient, &operands.w);
    return status == STATUS_OK
               ? dnn_plan_run(&context->dnn, &conv->passes[DNN_WEIGHT_GRADIENT], &operands)
               : status;
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
    if (status != STATUS_OK) {
        return status;
    }
    if (op->has_bias) {
        status = cuda_sum_rows(context, node->y->grad, tensor_count(node->y) / op->y.channels,
                               op->y.channels, context->grads + op->bias);
    }
    if (status != STATUS_OK) {
        return status;
    }
    status = weight_gradient(node);
    if (status != STATUS_OK || node->x->is_pixels) {
        return status;
    }
    const struct dnn_operands operands = {
        .x = node->x->grad,
        .w = cuda_weights_at(context, conv_of(node)->weight_at),
        .y = node->y->grad,
        .workspace = context->workspace,
    };
    return dnn_plan_run(&context->dnn, &conv_of(node)->passes[DNN_DATA_GRADIENT], &operands);
}

static void conv2d_describe(const struct node *node, char *ret_text, size_t text_size)
{
    const struct conv2d *conv = (const struct conv2d *)node;
    bool has_statistics = conv->statistics != NULL;
    snprintf(ret_text, text_size, "conv %ux%u %u->%u engines %s/%s/%s%s%s", node->op.window,
             node->op.window, node->op.x.channels, node->op.y.channels,
             conv->passes[DNN_FORWARD].engine, conv->passes[DNN_DATA_GRADIENT].engine,
             conv->passes[DNN_WEIGHT_GRADIENT].engine, has_statistics ? ", with statistics " : "",
             has_statistics ? conv->statistics->engine : "");
}

static const struct node_ops conv2d_ops = {
    .bind = conv2d_bind,
    .forward = conv2d_forward,
    .backward = conv2d_backward,
    .describe = conv2d_describe,
    .destroy = conv2d_destroy,
};

static struct dnn_conv shape_of(const struct conv2d *conv)
{
    const struct op *op = &conv->base.op;
    return (struct dnn_conv){
        .batch = conv->base.context->batch,
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
}

/* Notes a plan: what workspace it needs, and whether it was made before. */
static void note_plan(struct node_context *context, const struct dnn_plan *plan)
{
    size_t bytes = plan->workspace_bytes;
    context->workspace_bytes = context->workspace_bytes < bytes ? bytes : context->workspace_bytes;
    context->plan_count++;
    context->kept_plan_count += plan->is_kept ? 1 : 0;
}

static const char *const pass_names[] = {
    [DNN_FORWARD] = "forward pass",
    [DNN_DATA_GRADIENT] = "data gradient",
    [DNN_WEIGHT_GRADIENT] = "weight gradient",
};

static enum status plan_pass(struct conv2d *conv, enum dnn_pass pass)
{
    const struct op *op = &conv->base.op;
    struct node_context *context = conv->base.context;
    const struct dnn_conv shape = shape_of(conv);
    char why[DNN_WHY_BYTES];
    enum status status =
        dnn_plan_conv(&context->dnn, &shape, pass, &conv->passes[pass], why, sizeof(why));
    if (status != STATUS_OK) {
        report_error(
            "cuDNN has no plan for the %s of a convolution of %ux%u from %u to %u channels "
            "of %ux%u, a batch of %u: %s",
            pass_names[pass], op->window, op->window, op->x.channels, op->y.channels, op->x.rows,
            op->x.columns, context->batch, why);
        return status;
    }
    note_plan(context, &conv->passes[pass]);
    return STATUS_OK;
}

static bool is_alike(const struct op *a, const struct op *b)
{
    return a->x.channels == b->x.channels && a->x.rows == b->x.rows &&
           a->x.columns == b->x.columns && a->y.channels == b->y.channels &&
           a->window == b->window && a->stride == b->stride && a->padding == b->padding;
}

/* Whether the library that compiles such engines is there. */
static bool has_compiler(void)
{
    char name[32];
    snprintf(name, sizeof(name), "libnvrtc.so.%d", CUDART_VERSION / 1000);
    void *library = dlopen(name, RTLD_LAZY);
    if (library != NULL) {
        dlclose(library);
    }
    return library != NULL;
}

/* That a convolution goes without statistics. One line for who does not look closer. */
static void say_missed(struct node_context *context, const struct op *op, const char *why)
{
    bool is_first = context->missed_count++ == 0;
    void (*say)(const char *format, ...) = is_first ? report_warn : report_info;
    say("a convolution of %ux%u from %u to %u channels leaves its statistics to the normalisation, "
        "because cuDNN has no plan with them: %s%s%s",
        op->window, op->window, op->x.channels, op->y.channels, why,
        has_compiler() ? ""
                       : "; it compiles such engines by NVRTC, which is not installed here "
                         "(deploy/install-dependencies --cuda)",
        is_first ? " (--log-level info names others)" : "");
}

/* The plan with statistics, if there is to be one, and an engine for it. */
static void plan_statistics(struct conv2d *conv)
{
    const struct node *base = &conv->base;
    struct node_context *context = base->context;
    if (!context->is_trained || !context->dnn.allows_nondeterministic ||
        context->dnn.precision != PRECISION_BF16 || !base->feeds_norm || base->op.has_bias) {
        return;
    }
    for (struct conv2d *other = context->last_conv; other != NULL; other = other->previous) {
        if (other->statistics != NULL && is_alike(&other->base.op, &base->op)) {
            conv->statistics = other->statistics;
            return;
        }
    }
    struct dnn_conv shape = shape_of(conv);
    shape.has_statistics = true;
    char why[DNN_WHY_BYTES];
    if (dnn_plan_conv(&context->dnn, &shape, DNN_FORWARD, &conv->own_statistics, why,
                      sizeof(why)) != STATUS_OK) {
        say_missed(context, &base->op, why);
        return;
    }
    conv->statistics = &conv->own_statistics;
    note_plan(context, &conv->own_statistics);
}

static void reserve_weights(struct conv2d *conv)
{
    const struct op *op = &conv->base.op;
    struct node_context *context = conv->base.context;
    const struct cuda_weight_row weight = {.flat = op->weight,
                                           .count = op_weight_count(op),
                                           .inputs = op->x.channels,
                                           .taps = (size_t)op->window * op->window};
    const struct cuda_weight_row bias = {
        .flat = op->bias, .count = op->y.channels, .inputs = 1, .taps = 1};
    conv->weight_at = cuda_reserve_weights(context, &weight);
    conv->gradient = context->is_trained ? cuda_reserve_gradient(context, &weight) : 0;
    conv->bias_at = op->has_bias ? cuda_reserve_weights(context, &bias) : 0;
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
    reserve_weights(conv);
    enum status status = plan_pass(conv, DNN_FORWARD);
    if (status == STATUS_OK && context->is_trained) {
        status = plan_pass(conv, DNN_WEIGHT_GRADIENT);
    }
    if (status == STATUS_OK && context->is_trained && !base->x->is_pixels) {
        status = plan_pass(conv, DNN_DATA_GRADIENT);
    }
    cuda_reserve_sums(context, tensor_count(base->y) / base->op.y.channels, base->op.y.channels);
    if (status != STATUS_OK) {
        conv2d_destroy(&conv->base);
        return status;
    }
    plan_statistics(conv);
    conv->previous = context->last_conv;
    context->last_conv = conv;
    *ret_node = &conv->base;
    return STATUS_OK;
}
