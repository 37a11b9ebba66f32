/* Shapes and parameter counts of the kinds of layers. */
#include "worker/model/layer.h"

#include <assert.h>

#define ELEMENTS_MAX (UINT64_C(1) << 31) // of one sample; keeps every product below in 64 bits

struct kind_row {
    const char *name;
    bool has_params;
    bool has_window; // slides over rows and columns
};

static const struct kind_row kinds[] = {
    [OP_CONV2D] = {"conv2d", .has_params = true, .has_window = true},
    [OP_LINEAR] = {"linear", .has_params = true},
    [OP_RELU] = {"relu"},
    [OP_MAX_POOL] = {"max_pool", .has_window = true},
    [OP_DROPOUT] = {"dropout"},
    [OP_SOFTMAX_LOSS] = {"softmax_loss"},
};

const char *layer_name(enum op_kind kind)
{
    return kinds[kind].name;
}

static bool is_countable(struct shape shape)
{
    // Three 32-bit factors can exceed 64 bits; two cannot.
    uint64_t plane = (uint64_t)shape.rows * shape.columns;
    return plane <= ELEMENTS_MAX && plane * shape.channels <= ELEMENTS_MAX;
}

static bool slide_window(const struct layer *layer, uint32_t size, uint32_t *ret_size)
{
    assert(layer->window >= 1 && layer->stride >= 1);
    uint64_t padded = size + 2 * (uint64_t)layer->padding;
    if (padded < layer->window) {
        return false;
    }
    *ret_size = (uint32_t)((padded - layer->window) / layer->stride + 1);
    return true;
}

enum status layer_make_op(const struct layer *layer, struct shape x, uint32_t class_count,
                          struct op *ret_op)
{
    struct op op = {
        .kind = layer->kind,
        .x = x,
        .y = x,
        .window = layer->window,
        .stride = layer->stride,
        .padding = layer->padding,
        .rate = layer->rate,
    };
    const struct kind_row *kind = &kinds[layer->kind];
    if (kind->has_params) {
        op.y.channels = layer->channels == LAYER_CLASSES ? class_count : layer->channels;
    }
    if (layer->kind == OP_LINEAR) {
        op.y.rows = 1;
        op.y.columns = 1;
    }
    if (kind->has_window && !(slide_window(layer, x.rows, &op.y.rows) &&
                              slide_window(layer, x.columns, &op.y.columns))) {
        return STATUS_INVALID;
    }
    if (!is_countable(op.x) || !is_countable(op.y)) {
        return STATUS_INVALID;
    }
    *ret_op = op;
    return STATUS_OK;
}

uint64_t layer_weight_count(const struct op *op)
{
    return kinds[op->kind].has_params ? layer_fan_in(op) * op->y.channels : 0;
}

uint64_t layer_bias_count(const struct op *op)
{
    return kinds[op->kind].has_params ? op->y.channels : 0;
}

uint64_t layer_fan_in(const struct op *op)
{
    if (op->kind == OP_CONV2D) {
        return (uint64_t)op->window * op->window * op->x.channels;
    }
    return (uint64_t)op->x.rows * op->x.columns * op->x.channels;
}

uint64_t layer_fan_out(const struct op *op)
{
    if (op->kind == OP_CONV2D) {
        return (uint64_t)op->window * op->window * op->y.channels;
    }
    return op->y.channels;
}
