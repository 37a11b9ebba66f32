/* Zeros around each channel. */
#include "worker/device/cpu/loops.h"
#include "worker/device/cpu/node.h"

#include <string.h>

/* Copies the inner part, row by row: of y's planes to x's, or back. */
static void copy_inner(const struct node *node, const char *from, char *to, bool to_padded)
{
    const struct op *op = &node->op;
    size_t block = node->x->block * loops_element_bytes(node->x),
           row_length = op->x.columns * block;
    size_t x_plane = op->x.rows * row_length, y_row = op->y.columns * block;
    size_t planes = tensor_count(node->x) * loops_element_bytes(node->x) / x_plane;
#pragma omp parallel for num_threads(node->context->threads) if (node->context->threads > 1)
    for (size_t i = 0; i < planes; i++) {
        for (size_t row = 0; row < op->x.rows; row++) {
            size_t plain = i * x_plane + row * row_length;
            size_t padded = (i * op->y.rows + row + op->padding) * y_row + op->padding * block;
            memcpy(to + (to_padded ? padded : plain), from + (to_padded ? plain : padded),
                   row_length);
        }
    }
}

static enum status pad_forward(struct node *node)
{
    memset(node->y->data, 0, tensor_count(node->y) * loops_element_bytes(node->y));
    copy_inner(node, (const char *)node->x->data, (char *)node->y->data, true);
    return STATUS_OK;
}

static enum status pad_backward(struct node *node)
{
    if (!node->x->is_pixels) {
        copy_inner(node, (const char *)node->y->grad, (char *)node->x->grad, false);
    }
    return STATUS_OK;
}

static const struct node_ops pad_ops = {
    .forward = pad_forward,
    .backward = pad_backward,
    .destroy = node_destroy_plain,
};

enum status node_create_pad(struct node *base, struct node **ret_node)
{
    base->y->block = base->x->block;
    base->y->element_bytes = base->x->element_bytes;
    return node_create_plain(base, &pad_ops, ret_node);
}
