/* Batch normalisation, with the add and the relu behind it.
 *
 * The library's own knows neither the add nor sums over workers; here the add and the relu cost no
 * pass of their own. Sums are taken for each plane by itself and added up in
 * the order of the samples, so that they do not depend on the number of threads. Formulas:
 * ref/batch_norm.c. */
#include "worker/device/cpu/bf16.h"
#include "worker/device/cpu/loops.h"
#include "worker/device/cpu/node.h"
#include "worker/device/cpu/norm_bf16.h"
#include "worker/device/cpu/norm_loops.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct batch_norm {
    struct node base;
    size_t blocks, pixels;    // of a sample
    size_t block;             // channels of a block, all but the last
    struct norm_lanes *lanes; // (blocks), owned
    double *mean, *inverse;   // (C) of the last forward; inverse: 1 / deviation
    double *sums;             // (2C + 1); mean, inverse and this one are one allocation
};

static struct batch_norm *norm_of(struct node *node)
{
    return (struct batch_norm *)node;
}

static void norm_destroy(struct node *node)
{
    struct batch_norm *norm = norm_of(node);
    free(norm->lanes);
    free(norm->mean);
    free(norm);
}

static double samples_pixels(const struct batch_norm *norm)
{
    return (double)norm->base.context->input->count * (double)norm->pixels;
}

/* Where plane `index` begins, in elements, and how far its pixels are apart (0: without a gap). */
static size_t place_of(const struct batch_norm *norm, size_t index, size_t *ret_stride)
{
    const struct node *node = &norm->base;
    if (!tensor_is_bf16(node->x)) {
        *ret_stride = 0;
        return index * norm->pixels * norm->block;
    }
    size_t channels = node->op.x.channels;
    *ret_stride = channels;
    return index / norm->blocks * norm->pixels * channels + index % norm->blocks * norm->block;
}

/* An address among elements; NULL stays NULL. */
static float *element_at(const struct tensor *tensor, float *values, size_t index)
{
    char *bytes = (char *)values;
    return values != NULL ? (void *)(bytes + index * loops_element_bytes(tensor)) : NULL;
}

static struct norm_plane plane_at(const struct batch_norm *norm, size_t index)
{
    const struct node *node = &norm->base;
    size_t stride, at = place_of(norm, index, &stride);
    size_t first = index % norm->blocks * norm->block, rest = node->op.x.channels - first;
    bool is_masked = node->has_relu && !node->y->is_grad_masked;
    float *other = node->other != NULL ? node->other->data : NULL;
    return (struct norm_plane){
        .pixels = norm->pixels,
        .block = stride > 0 && rest < norm->block ? rest : norm->block,
        .stride = stride,
        .x = element_at(node->x, node->x->data, at),
        .other = element_at(node->x, other, at),
        .y = element_at(node->x, node->y->data, at),
        .dy = element_at(node->x, node->y->grad, at),
        .dx = element_at(node->x, node->x->grad, at),
        .has_relu = node->has_relu,
        .adds_x = node->adds_x,
        .mask = !is_masked            ? NORM_NO_MASK
                : node->other != NULL ? NORM_MASK_Y
                                      : NORM_MASK_X,
    };
}

/* Runs a loop over the planes of the samples that count; adds up what it takes from them, in sums:
 * first (C), then second (C). */
static void take_sums(struct batch_norm *norm,
                      void (*loop)(const struct norm_plane *, const struct norm_lanes *,
                                   struct norm_sums *))
{
    struct node *node = &norm->base;
    size_t block = norm->block, channels = node->op.x.channels;
    size_t planes = node->context->input->count * norm->blocks;
    struct norm_sums *partial = node->context->scratch; // (N, blocks)
    memset(partial, 0, planes * sizeof(*partial));
#pragma omp parallel for num_threads(node->context->threads) if (node->context->threads > 1)
    for (size_t i = 0; i < planes; i++) {
        const struct norm_plane plane = plane_at(norm, i);
        loop(&plane, &norm->lanes[i % norm->blocks], &partial[i]);
    }
    memset(norm->sums, 0, 2 * channels * sizeof(*norm->sums));
    for (size_t i = 0; i < planes; i++) {
        size_t first = i % norm->blocks * block;
        for (size_t lane = 0; lane < block && first + lane < channels; lane++) {
            norm->sums[first + lane] += partial[i].first[lane];
            norm->sums[channels + first + lane] += partial[i].second[lane];
        }
    }
}

static struct norm_lanes *lanes_of(const struct batch_norm *norm, uint32_t channel,
                                   uint32_t *ret_lane)
{
    uint32_t block = (uint32_t)norm->block;
    *ret_lane = channel % block;
    return &norm->lanes[channel / block];
}

/* Sums are taken around the first pixel of each channel, so that their difference is not lost in
 * rounding where a channel's mean is large beside its deviation. */
static void centre_on_first_pixel(struct batch_norm *norm)
{
    for (size_t i = 0; i < norm->blocks; i++) {
        const struct norm_plane plane = plane_at(norm, i);
        const uint16_t *halves = (const void *)plane.x;
        for (size_t lane = 0; lane < plane.block; lane++) {
            norm->lanes[i].centre[lane] =
                plane.stride > 0 ? bf16_load(halves[lane]) : plane.x[lane];
        }
    }
}

static void move_statistics(struct batch_norm *norm, uint32_t channel, double variance,
                            double count)
{
    const struct op *op = &norm->base.op;
    float *mean_at = norm->base.context->statistics + op->statistics + channel;
    float *variance_at = mean_at + op->x.channels;
    const double rate = (double)DEVICE_STATISTICS_RATE;
    double unbiased = count > 1 ? variance * count / (count - 1) : variance;
    *mean_at = (float)((1 - rate) * (double)*mean_at + rate * norm->mean[channel]);
    *variance_at = (float)((1 - rate) * (double)*variance_at + rate * unbiased);
}

/* From sums around the centres to sums around zero, which can be added over workers. */
static enum status sum_moments(struct batch_norm *norm, double *count)
{
    const struct program_input *input = norm->base.context->input;
    uint32_t channels = norm->base.op.x.channels;
    for (uint32_t c = 0; c < channels; c++) {
        uint32_t lane;
        double centre = (double)lanes_of(norm, c, &lane)->centre[lane];
        double first = norm->sums[c];
        norm->sums[c] = first + *count * centre;
        norm->sums[channels + c] += centre * (2 * first + *count * centre);
    }
    norm->sums[2 * (size_t)channels] = *count;
    enum status status = input->sum_over_workers(input->context, norm->sums, 2 * channels + 1);
    *count = norm->sums[2 * (size_t)channels];
    return status;
}

static enum status take_batch_statistics(struct batch_norm *norm)
{
    uint32_t channels = norm->base.op.x.channels;
    double count = samples_pixels(norm);
    bool is_local = norm->base.context->input->sum_over_workers == NULL;
    centre_on_first_pixel(norm);
    take_sums(norm, tensor_is_bf16(norm->base.x) ? norm_bf16_statistics : norm_statistics);
    enum status status = is_local ? STATUS_OK : sum_moments(norm, &count);
    for (uint32_t c = 0; c < channels; c++) {
        uint32_t lane;
        const struct norm_lanes *lanes = lanes_of(norm, c, &lane);
        double distance = norm->sums[c] / count; // from the centre, or from zero
        double variance = fmax(0, norm->sums[channels + c] / count - distance * distance);
        norm->mean[c] = distance + (is_local ? (double)lanes->centre[lane] : 0);
        norm->inverse[c] = 1 / sqrt(variance + (double)norm->base.op.epsilon);
        move_statistics(norm, c, variance, count);
    }
    return status;
}

static void recall_statistics(struct batch_norm *norm)
{
    const struct op *op = &norm->base.op;
    const float *mean = norm->base.context->statistics + op->statistics;
    const float *variance = mean + op->x.channels;
    for (uint32_t c = 0; c < op->x.channels; c++) {
        norm->mean[c] = (double)mean[c];
        norm->inverse[c] = 1 / sqrt((double)variance[c] + (double)op->epsilon);
    }
}

static void set_lanes(struct batch_norm *norm)
{
    const struct op *op = &norm->base.op;
    const float *params = norm->base.context->params;
    for (uint32_t c = 0; c < op->x.channels; c++) {
        uint32_t lane;
        struct norm_lanes *lanes = lanes_of(norm, c, &lane);
        double factor = norm->inverse[c] * (double)params[op->weight + c];
        lanes->centre[lane] = (float)norm->mean[c];
        lanes->factor[lane] = (float)factor;
        lanes->shift[lane] = (float)((double)params[op->bias + c] - norm->mean[c] * factor);
    }
}

static enum status norm_forward(struct node *node)
{
    struct batch_norm *norm = norm_of(node);
    enum status status = STATUS_OK;
    if (node->context->input->is_training) {
        status = take_batch_statistics(norm);
    } else {
        recall_statistics(norm);
    }
    set_lanes(norm);
    size_t planes = norm->blocks * node->x->batch;
#pragma omp parallel for num_threads(node->context->threads) if (node->context->threads > 1)
    for (size_t i = 0; i < planes; i++) {
        const struct norm_plane plane = plane_at(norm, i);
        const struct norm_lanes *lanes = &norm->lanes[i % norm->blocks];
        if (plane.stride > 0) {
            norm_bf16_apply(&plane, lanes);
        } else {
            norm_apply(&plane, lanes);
        }
    }
    return status;
}

/* Gradients of scale and shift, and what the loop over x needs of the sums over all workers. */
static enum status reduce_gradients(struct batch_norm *norm)
{
    const struct program_input *input = norm->base.context->input;
    const struct op *op = &norm->base.op;
    uint32_t channels = op->x.channels;
    float *grads = norm->base.context->grads;
    double *sums = norm->sums, *products = norm->sums + channels;
    take_sums(norm, tensor_is_bf16(norm->base.x) ? norm_bf16_reduce : norm_reduce);
    for (uint32_t c = 0; c < channels; c++) {
        products[c] *= norm->inverse[c];
        grads[op->weight + c] = (float)products[c];
        grads[op->bias + c] = (float)sums[c];
    }
    products[channels] = samples_pixels(norm);
    enum status status = STATUS_OK;
    if (input->sum_over_workers != NULL) {
        status = input->sum_over_workers(input->context, sums, 2 * channels + 1);
    }
    double count = products[channels];
    for (uint32_t c = 0; c < channels; c++) {
        uint32_t lane;
        struct norm_lanes *lanes = lanes_of(norm, c, &lane);
        double factor = (double)lanes->factor[lane];
        lanes->slope[lane] = (float)(factor * norm->inverse[c] * products[c] / count);
        lanes->offset[lane] = (float)(factor * sums[c] / count);
    }
    return status;
}

/* The gradient of one plane; of samples that are padding it is zero. */
static void compute_gradient(const struct batch_norm *norm, const struct norm_plane *plane,
                             const struct norm_lanes *lanes, bool is_padding)
{
    const struct norm_lanes nothing = {.centre = {0}};
    struct norm_plane all = *plane;
    if (is_padding) {
        all.mask = NORM_NO_MASK;
        lanes = &nothing;
    }
    if (tensor_is_bf16(norm->base.x)) {
        norm_bf16_gradient(&all, lanes);
    } else {
        norm_gradient(&all, lanes);
    }
}

static enum status norm_backward(struct node *node)
{
    struct batch_norm *norm = norm_of(node);
    enum status status = reduce_gradients(norm);
    size_t planes = norm->blocks * node->x->batch;
    size_t counted = norm->blocks * node->context->input->count;
#pragma omp parallel for num_threads(node->context->threads) if (node->context->threads > 1)
    for (size_t i = 0; i < planes; i++) {
        const struct norm_plane plane = plane_at(norm, i);
        if (plane.dx != NULL) {
            compute_gradient(norm, &plane, &norm->lanes[i % norm->blocks], i >= counted);
        }
    }
    if (node->other != NULL && node->other->grad_of == NULL) {
        loops_pass_on(node->other, node->y->grad, node->adds_other, node->context->threads);
    }
    return status;
}

static const struct node_ops norm_ops = {
    .forward = norm_forward,
    .backward = norm_backward,
    .destroy = norm_destroy,
    .adds_gradients = true,
};

enum status node_create_batch_norm(struct node *base, struct node **ret_node)
{
    struct batch_norm *norm = calloc(1, sizeof(*norm));
    if (norm == NULL) {
        return STATUS_NO_MEMORY;
    }
    bool is_bf16 = tensor_is_bf16(base->x);
    base->y->block = base->x->block;
    base->y->element_bytes = base->x->element_bytes;
    norm->base = *base;
    norm->base.ops = &norm_ops;
    norm->base.keeps_x = true;
    norm->base.keeps_y = base->has_relu && base->other != NULL;
    norm->pixels = (size_t)base->op.x.rows * base->op.x.columns;
    norm->block = is_bf16 ? NORM_BLOCK_MAX : base->x->block;
    norm->blocks = is_bf16 ? (base->op.x.channels + NORM_BLOCK_MAX - 1) / NORM_BLOCK_MAX
                           : tensor_stride(base->x) / norm->pixels / base->x->block;
    size_t channels = base->op.x.channels;
    norm->lanes = calloc(norm->blocks, sizeof(*norm->lanes));
    norm->mean = calloc(4 * channels + 1, sizeof(*norm->mean));
    if (norm->lanes == NULL || norm->mean == NULL) {
        norm_destroy(&norm->base);
        return STATUS_NO_MEMORY;
    }
    norm->inverse = norm->mean + channels;
    norm->sums = norm->inverse + channels;
    size_t scratch = base->x->batch * norm->blocks * sizeof(struct norm_sums);
    if (base->context->scratch_bytes < scratch) {
        base->context->scratch_bytes = scratch;
    }
    *ret_node = &norm->base;
    return STATUS_OK;
}
