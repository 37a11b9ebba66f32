/* Batch normalisation, with the add and the relu behind it, by kernels of our own: cuDNN's knows no
 * sums over workers, and compiles each shape while the job starts. Formulas: ref/batch_norm.c.
 *
 * Statistics are sums over x, around its first row; or around zero, where the convolution that
 * wrote x has added them up (conv2d.c): then x is not read for them. Where x is the sum of two
 * branches that nothing else reads in between, it is these that are read, and x is written; the
 * centre is then the first row of the branch that x does not lie over.
 *
 * Each way goes over x twice: for the sums, and for what takes them. What the GPU's cache holds in
 * between goes in one launch, in which all threads wait for each other; what is larger in three,
 * each of which has as many threads as its loads need. The bits are the same. */
#include "worker/device/cuda/context.h"

#include <assert.h>
#include <stdlib.h>

#define VECTORS       5                  // centre, factor, shift, slope, offset
#define AT_ONCE_BYTES ((size_t)32 << 20) // of the cache; it has 40 MiB on an A100, 50 on an H100

struct batch_norm {
    struct node base;
    size_t parts;
    const struct node *add; // whose sum is made here, borrowed; NULL: nobody's
    float *vectors;         // (VECTORS, C), device memory, owned
    double *inverse;        // (C), likewise
};

static struct batch_norm *norm_of(struct node *node)
{
    return (struct batch_norm *)node;
}

static void norm_destroy(struct node *node)
{
    struct batch_norm *norm = norm_of(node);
    cudaFree(norm->vectors);
    cudaFree(norm->inverse);
    free(norm);
}

static enum status norm_bind(struct node *node)
{
    struct batch_norm *norm = norm_of(node);
    size_t channels = node->op.x.channels;
    int result = (int)cudaMalloc((void **)&norm->vectors, VECTORS * channels * sizeof(float));
    if (result == 0) {
        result = (int)cudaMalloc((void **)&norm->inverse, channels * sizeof(double));
    }
    return cuda_check(result, "get memory for a normalisation");
}

static size_t pixels_of(const struct node *node)
{
    return (size_t)node->op.x.rows * node->op.x.columns;
}

static struct cuda_norm shape_of(const struct batch_norm *norm)
{
    const struct node *node = &norm->base;
    bool is_masked = node->has_relu && !node->y->is_grad_masked;
    return (struct cuda_norm){
        .channels = node->op.x.channels,
        .rows = node->context->batch * pixels_of(node),
        .counted = node->context->pass.count * pixels_of(node),
        .parts = norm->parts,
        .mask = !is_masked            ? CUDA_NO_MASK
                : node->other != NULL ? CUDA_MASK_Y
                                      : CUDA_MASK_X,
        .has_relu = node->has_relu,
        .adds_x = node->adds_x,
    };
}

static struct cuda_norm_operands operands_of(const struct batch_norm *norm)
{
    const struct node *node = &norm->base;
    size_t channels = node->op.x.channels;
    return (struct cuda_norm_operands){
        .x = node->x->data,
        .other = node->other != NULL ? node->other->data : NULL,
        .y = node->y->data,
        .centre = norm->vectors,
        .factor = norm->vectors + channels,
        .shift = norm->vectors + 2 * channels,
        .slope = norm->vectors + 3 * channels,
        .offset = norm->vectors + 4 * channels,
        .parts = node->context->parts,
    };
}

static struct cuda_norm_channel channel_of(const struct batch_norm *norm)
{
    const struct node *node = &norm->base;
    const struct node_context *context = node->context;
    const struct op *op = &node->op;
    size_t channels = op->x.channels;
    return (struct cuda_norm_channel){
        .scale = context->params + op->weight,
        .bias = context->params + op->bias,
        .statistic_mean = context->statistics + op->statistics,
        .statistic_variance = context->statistics + op->statistics + channels,
        .centre = norm->vectors,
        .factor = norm->vectors + channels,
        .shift = norm->vectors + 2 * channels,
        .slope = norm->vectors + 3 * channels,
        .offset = norm->vectors + 4 * channels,
        .dscale = context->is_trained ? context->grads + op->weight : NULL,
        .dbias = context->is_trained ? context->grads + op->bias : NULL,
        .inverse = norm->inverse,
        .x_sums = node->x->sums,
        .x_square_sums = node->x->square_sums,
        .sums = context->sums,
        .count = (double)context->pass.count * (double)pixels_of(node),
        .epsilon = op->epsilon,
        .rate = DEVICE_STATISTICS_RATE,
        .is_around_zero = context->pass.sums_over_workers || cuda_has_sums(context, node->x),
    };
}

/* Whether sums, and what takes them, are one launch. */
static bool is_at_once(const struct batch_norm *norm)
{
    const struct node *node = &norm->base;
    const struct node_context *context = node->context;
    return !context->pass.sums_over_workers && !cuda_has_sums(context, node->x) &&
           tensor_count(node->x) * cuda_element_bytes(context) <= AT_ONCE_BYTES;
}

/* Sums of this worker to the host, over all workers, and back. */
static enum status sum_over_workers(const struct node_context *context, size_t channels)
{
    size_t count = 2 * channels + 1, bytes = count * sizeof(double);
    int result = (int)cudaMemcpyAsync(context->host_sums, context->sums, bytes,
                                      cudaMemcpyDeviceToHost, context->stream);
    if (result == 0) {
        result = (int)cudaStreamSynchronize(context->stream);
    }
    enum status status = cuda_check(result, "read the sums of a normalisation");
    if (status == STATUS_OK) {
        status =
            context->sum_over_workers(context->sum_context, context->host_sums, (uint32_t)count);
    }
    if (status != STATUS_OK) {
        return status;
    }
    return cuda_check((int)cudaMemcpyAsync(context->sums, context->host_sums, bytes,
                                           cudaMemcpyHostToDevice, context->stream),
                      "write the sums of a normalisation");
}

/* What sums over x go over. */
static struct cuda_norm_operands rows_of(const struct batch_norm *norm)
{
    struct cuda_norm_operands operands = operands_of(norm);
    operands.new_centre = norm->vectors;
    if (norm->add != NULL && cuda_norms_add(norm->base.context)) {
        operands.x = norm->add->x->data;
        operands.addend = norm->add->other->data;
        operands.sum = norm->base.x->data;
    }
    return operands;
}

/* Sums over x around its first row, and what follows from them. */
static int add_up_rows(struct batch_norm *norm, const struct cuda_norm_channel *channel)
{
    const struct node_context *context = norm->base.context;
    const struct cuda_norm shape = shape_of(norm);
    const struct cuda_norm_operands operands = rows_of(norm);
    int result = kernel_norm_parts(context->type, &shape, &operands, context->stream);
    return result == 0 ? kernel_norm_finish(&shape, context->parts, channel,
                                            channel->is_around_zero ? CUDA_FINISH_UNCENTRE
                                                                    : CUDA_FINISH_FORWARD,
                                            context->stream)
                       : result;
}

static enum status take_batch_statistics(struct batch_norm *norm)
{
    const struct node_context *context = norm->base.context;
    const struct cuda_norm_channel channel = channel_of(norm);
    size_t channels = norm->base.op.x.channels;
    int result = cuda_has_sums(context, norm->base.x)
                     ? kernel_norm_take(&channel, channels, context->stream)
                     : add_up_rows(norm, &channel);
    enum status status = cuda_check(result, "take the statistics of a batch");
    if (status == STATUS_OK && context->pass.sums_over_workers) {
        status = sum_over_workers(context, channels);
    }
    return status == STATUS_OK && channel.is_around_zero // otherwise that was done with the sums
               ? cuda_check(kernel_norm_forward(&channel, channels, context->stream),
                            "take the statistics of a batch")
               : status;
}

static enum status forward_at_once(struct batch_norm *norm)
{
    const struct node_context *context = norm->base.context;
    const struct cuda_norm shape = shape_of(norm);
    const struct cuda_norm_operands operands = operands_of(norm);
    const struct cuda_norm_sums sums = {
        .rows = rows_of(norm), .channel = channel_of(norm), .finish = CUDA_FINISH_FORWARD};
    return cuda_check(kernel_sums_apply(context->type, &shape, &sums, &operands, context->stream),
                      "normalise");
}

static enum status norm_forward(struct node *node)
{
    struct batch_norm *norm = norm_of(node);
    const struct node_context *context = node->context;
    const struct cuda_norm shape = shape_of(norm);
    const struct cuda_norm_operands operands = operands_of(norm);
    const struct cuda_norm_channel channel = channel_of(norm);
    if (context->pass.is_training && is_at_once(norm)) {
        return forward_at_once(norm);
    }
    enum status status =
        context->pass.is_training
            ? take_batch_statistics(norm)
            : cuda_check(kernel_norm_recall(&channel, shape.channels, context->stream),
                         "recall statistics");
    return status == STATUS_OK
               ? cuda_check(kernel_norm_apply(context->type, &shape, &operands, context->stream),
                            "normalise")
               : status;
}

static enum status reduce_gradients(struct batch_norm *norm)
{
    const struct node_context *context = norm->base.context;
    const struct cuda_norm shape = shape_of(norm);
    struct cuda_norm_operands operands = operands_of(norm);
    const struct cuda_norm_channel channel = channel_of(norm);
    bool is_of_all = context->pass.sums_over_workers;
    operands.dy = norm->base.y->grad;
    int result = kernel_norm_parts(context->type, &shape, &operands, context->stream);
    if (result == 0) {
        result = kernel_norm_finish(&shape, context->parts, &channel,
                                    is_of_all ? CUDA_FINISH_GRADIENTS : CUDA_FINISH_BACKWARD,
                                    context->stream);
    }
    enum status status = cuda_check(result, "reduce the gradients of a normalisation");
    if (status != STATUS_OK || !is_of_all) {
        return status;
    }
    status = sum_over_workers(context, shape.channels);
    return status == STATUS_OK
               ? cuda_check(kernel_norm_backward(&channel, shape.channels, context->stream),
                            "reduce the gradients of a normalisation")
               : status;
}

/* Sums of gradients, and the gradient of x. */
static enum status reduce_and_pass_on(struct batch_norm *norm)
{
    const struct node *node = &norm->base;
    const struct node_context *context = node->context;
    const struct cuda_norm shape = shape_of(norm);
    struct cuda_norm_operands operands = operands_of(norm);
    int result;
    operands.dy = node->y->grad;
    operands.dx = node->x->grad;
    if (is_at_once(norm)) {
        const struct cuda_norm_sums sums = {
            .rows = operands, .channel = channel_of(norm), .finish = CUDA_FINISH_BACKWARD};
        result = kernel_sums_gradient(context->type, &shape, &sums, &operands, context->stream);
    } else {
        enum status status = reduce_gradients(norm);
        if (status != STATUS_OK) {
            return status;
        }
        result = kernel_norm_gradient(context->type, &shape, &operands, context->stream);
    }
    return cuda_check(result, "compute the gradient of a normalisation");
}

static enum status norm_backward(struct node *node)
{
    struct batch_norm *norm = norm_of(node);
    enum status status = node->x->is_pixels ? reduce_gradients(norm) : reduce_and_pass_on(norm);
    if (status == STATUS_OK && node->other != NULL && node->other->grad_of == NULL) {
        status = cuda_pass_on(node, node->other, node->adds_other);
    }
    return status;
}

static const struct node_ops norm_ops = {
    .bind = norm_bind,
    .forward = norm_forward,
    .backward = norm_backward,
    .destroy = norm_destroy,
    .adds_gradients = true,
};

enum status cuda_create_batch_norm(struct node *base, struct node **ret_node)
{
    struct batch_norm *norm = calloc(1, sizeof(*norm));
    if (norm == NULL) {
        return STATUS_NO_MEMORY;
    }
    norm->base = *base;
    norm->base.ops = &norm_ops;
    norm->base.keeps_x = true;
    norm->base.keeps_y = base->has_relu && base->other != NULL;
    norm->parts = cuda_reserve_sums(base->context, base->context->batch * pixels_of(base),
                                    base->op.x.channels);
    *ret_node = &norm->base;
    return STATUS_OK;
}

void cuda_take_add(struct node *norm, const struct node *add)
{
    assert(norm->ops == &norm_ops && norm->x == add->y);
    norm_of(norm)->add = add;
}
