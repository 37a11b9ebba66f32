/* Every stride-th row and column; channels that x does not have are zero. Works on runs: the
 * channels of a block that lie beside each other in one pixel. */
#include "worker/device/cpu/loops.h"
#include "worker/device/cpu/node.h"

#include <string.h>

/* What one plane of y, a block of one sample, has to do with x. In bytes. */
struct plane {
    char *y, *x;
    size_t y_run, x_run; // of a pixel; x_run 0: no channel of it is in x
};

static size_t blocks_of(const struct tensor *tensor)
{
    return tensor_stride(tensor) / tensor->block / tensor->shape.rows / tensor->shape.columns;
}

static size_t pixels_of(const struct tensor *tensor)
{
    return (size_t)tensor->shape.rows * tensor->shape.columns;
}

static struct plane plane_at(const struct node *node, float *x, float *y, size_t index)
{
    size_t bytes = loops_element_bytes(node->x), x_blocks = blocks_of(node->x);
    size_t n = index / blocks_of(node->y), block = index % blocks_of(node->y);
    size_t x_run = node->x->block * bytes, y_run = node->y->block * bytes;
    bool is_new = block >= x_blocks;
    return (struct plane){
        .y = (char *)y + index * pixels_of(node->y) * y_run,
        .x = (char *)x + (is_new ? 0 : (n * x_blocks + block) * pixels_of(node->x) * x_run),
        .y_run = y_run,
        .x_run = is_new ? 0 : x_run,
    };
}

/* Where pixel i of y comes from, in pixels of x. */
static size_t source(const struct op *op, size_t i)
{
    return i / op->y.columns * op->stride * op->x.columns + i % op->y.columns * op->stride;
}

static enum status subsample_forward(struct node *node)
{
    size_t planes = node->y->batch * blocks_of(node->y);
#pragma omp parallel for num_threads(node->context->threads) if (node->context->threads > 1)
    for (size_t index = 0; index < planes; index++) {
        const struct plane plane = plane_at(node, node->x->data, node->y->data, index);
        for (size_t i = 0; i < pixels_of(node->y); i++) {
            char *to = plane.y + i * plane.y_run;
            memcpy(to, plane.x + source(&node->op, i) * plane.x_run, plane.x_run);
            memset(to + plane.x_run, 0, plane.y_run - plane.x_run);
        }
    }
    return STATUS_OK;
}

static enum status subsample_backward(struct node *node)
{
    size_t planes = node->y->batch * blocks_of(node->y);
    if (node->x->is_pixels) {
        return STATUS_OK;
    }
#pragma omp parallel for num_threads(node->context->threads) if (node->context->threads > 1)
    for (size_t index = 0; index < planes; index++) {
        const struct plane plane = plane_at(node, node->x->grad, node->y->grad, index);
        memset(plane.x, 0, pixels_of(node->x) * plane.x_run);
        for (size_t i = 0; i < pixels_of(node->y); i++) {
            memcpy(plane.x + source(&node->op, i) * plane.x_run, plane.y + i * plane.y_run,
                   plane.x_run);
        }
    }
    return STATUS_OK;
}

static const struct node_ops subsample_ops = {
    .forward = subsample_forward,
    .backward = subsample_backward,
    .destroy = node_destroy_plain,
};

enum status node_create_subsample(struct node *base, struct node **ret_node)
{
    // Without blocks all channels are one run, also where there are more of them.
    bool is_one_run = base->x->element_bytes != 0;
    base->y->block = is_one_run ? base->op.y.channels : base->x->block;
    base->y->element_bytes = base->x->element_bytes;
    return node_create_plain(base, &subsample_ops, ret_node);
}
