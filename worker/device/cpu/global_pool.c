/* The mean of each channel over rows and columns: blocked channels to plain (N, C), for the linear
 * layer behind it. */
#include "worker/device/cpu/bf16.h"
#include "worker/device/cpu/node.h"

/* Walks the planes of x; each holds the lanes of one block of channels. */
struct planes {
    size_t count, pixels, block, blocks; // blocks of a sample
};

static struct planes planes_of(const struct node *node)
{
    size_t pixels = (size_t)node->op.x.rows * node->op.x.columns, block = node->x->block;
    size_t count = tensor_count(node->x) / pixels / block;
    return (struct planes){count, pixels, block, count / node->x->batch};
}

/* Lanes of the plane that are channels, and where the first one is in (N, C). */
static size_t lanes_of(const struct node *node, const struct planes *planes, size_t index,
                       size_t *ret_first)
{
    size_t channels = node->op.x.channels, channel = index % planes->blocks * planes->block;
    *ret_first = index / planes->blocks * channels + channel;
    return channels - channel < planes->block ? channels - channel : planes->block;
}

static float load(const struct tensor *tensor, size_t i)
{
    const uint16_t *halves = (const void *)tensor->data;
    return tensor_is_bf16(tensor) ? bf16_load(halves[i]) : tensor->data[i];
}

static void store_gradient(const struct tensor *tensor, size_t i, float value)
{
    uint16_t *halves = (void *)tensor->grad;
    if (tensor_is_bf16(tensor)) {
        halves[i] = bf16_store(value);
    } else {
        tensor->grad[i] = value;
    }
}

static enum status global_pool_forward(struct node *node)
{
    const struct planes planes = planes_of(node);
#pragma omp parallel for num_threads(node->context->threads) if (node->context->threads > 1)
    for (size_t index = 0; index < planes.count; index++) {
        size_t first, lanes = lanes_of(node, &planes, index, &first);
        size_t at = index * planes.pixels * planes.block;
        for (size_t lane = 0; lane < lanes; lane++) {
            double sum = 0;
            for (size_t i = 0; i < planes.pixels; i++) {
                sum += (double)load(node->x, at + i * planes.block + lane);
            }
            node->y->data[first + lane] = (float)(sum / (double)planes.pixels);
        }
    }
    return STATUS_OK;
}

static enum status global_pool_backward(struct node *node)
{
    const struct planes planes = planes_of(node);
    if (node->x->is_pixels) {
        return STATUS_OK;
    }
#pragma omp parallel for num_threads(node->context->threads) if (node->context->threads > 1)
    for (size_t index = 0; index < planes.count; index++) {
        size_t first, lanes = lanes_of(node, &planes, index, &first);
        size_t at = index * planes.pixels * planes.block;
        for (size_t i = 0; i < planes.pixels * planes.block; i++) {
            size_t lane = i % planes.block;
            float share = lane < lanes ? node->y->grad[first + lane] / (float)planes.pixels : 0;
            store_gradient(node->x, at + i, share);
        }
    }
    return STATUS_OK;
}

static const struct node_ops global_pool_ops = {
    .forward = global_pool_forward,
    .backward = global_pool_backward,
    .destroy = node_destroy_plain,
};

enum status node_create_global_pool(struct node *base, struct node **ret_node)
{
    base->y->block = 1;
    return node_create_plain(base, &global_pool_ops, ret_node);
}
