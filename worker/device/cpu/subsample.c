/* Every stride-th row and column; blocks of channels that x does not have are zero. */
#include "worker/device/cpu/node.h"

#include <string.h>

/* What one plane of y, a block of one sample, has to do with x. */
struct plane {
    size_t y, x; // where it begins
    bool is_new; // no channel of it is in x
};

static struct plane plane_at(const struct node *node, size_t index)
{
    size_t x_blocks =
        tensor_stride(node->x) / node->x->block / node->op.x.rows / node->op.x.columns;
    size_t y_blocks =
        tensor_stride(node->y) / node->y->block / node->op.y.rows / node->op.y.columns;
    size_t n = index / y_blocks, block = index % y_blocks;
    size_t x_plane = (size_t)node->op.x.rows * node->op.x.columns * node->x->block;
    size_t y_plane = (size_t)node->op.y.rows * node->op.y.columns * node->y->block;
    return (struct plane){
        .y = index * y_plane,
        .x = (n * x_blocks + block) * x_plane,
        .is_new = block >= x_blocks,
    };
}

static size_t plane_count(const struct node *node)
{
    return tensor_count(node->y) / node->y->block / node->op.y.rows / node->op.y.columns;
}

/* Where pixel i of y comes from, in floats from the beginning of the plane. */
static size_t source(const struct node *node, size_t i)
{
    const struct op *op = &node->op;
    size_t row = i / op->y.columns * op->stride, column = i % op->y.columns * op->stride;
    return (row * op->x.columns + column) * node->x->block;
}

static enum status subsample_forward(struct node *node)
{
    size_t planes = plane_count(node), block = node->y->block;
    size_t pixels = (size_t)node->op.y.rows * node->op.y.columns;
#pragma omp parallel for num_threads(node->context->threads) if (node->context->threads > 1)
    for (size_t index = 0; index < planes; index++) {
        struct plane plane = plane_at(node, index);
        float *y = node->y->data + plane.y;
        if (plane.is_new) {
            memset(y, 0, pixels * block * sizeof(float));
            continue;
        }
        for (size_t i = 0; i < pixels; i++) {
            memcpy(y + i * block, node->x->data + plane.x + source(node, i), block * sizeof(float));
        }
    }
    return STATUS_OK;
}

static enum status subsample_backward(struct node *node)
{
    size_t planes = plane_count(node), block = node->y->block;
    size_t pixels = (size_t)node->op.y.rows * node->op.y.columns;
    size_t x_bytes = (size_t)node->op.x.rows * node->op.x.columns * block * sizeof(float);
    if (node->x->is_pixels) {
        return STATUS_OK;
    }
#pragma omp parallel for num_threads(node->context->threads) if (node->context->threads > 1)
    for (size_t index = 0; index < planes; index++) {
        struct plane plane = plane_at(node, index);
        float *dx = node->x->grad + plane.x;
        if (plane.is_new) {
            continue;
        }
        memset(dx, 0, x_bytes);
        for (size_t i = 0; i < pixels; i++) {
            memcpy(dx + source(node, i), node->y->grad + plane.y + i * block,
                   block * sizeof(float));
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
    base->y->block = base->x->block;
    return node_create_plain(base, &subsample_ops, ret_node);
}
