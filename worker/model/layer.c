/* Works out shapes and parameter counts of layers. */
#include "worker/model/layer.h"

#include <assert.h>

#define ELEMENTS_MAX (UINT64_C(1) << 31) // of one sample; keeps every product below in 64 bits

struct kind_row {
    bool has_params;
    bool has_channels; // the layer says how many the result has
    bool has_window;   // slides over rows and columns
    bool is_flat;      // the result has one row and one column
};

static const struct kind_row kinds[] = {
    [OP_CONV2D] = {.has_params = true, .has_channels = true, .has_window = true},
    [OP_LINEAR] = {.has_params = true, .has_channels = true, .is_flat = true},
    [OP_MAX_POOL] = {.has_window = true},
    [OP_BATCH_NORM] = {.has_params = true},
    [OP_SUBSAMPLE] = {.has_channels = true, .has_window = true},
    [OP_GLOBAL_POOL] = {.is_flat = true},
    [OP_SOFTMAX_LOSS] = {0}, // the last; kinds that are not here have nothing of this either
};

uint32_t layers_add(struct layers *layers, uint32_t input, struct layer layer)
{
    assert(layers->count < LAYERS_MAX);
    assert(input == DEVICE_INPUT_PIXELS || input < layers->count);
    layer.input = input;
    layers->list[layers->count] = layer;
    return layers->count++;
}

uint32_t layers_append(struct layers *layers, const struct layer *list, uint32_t count)
{
    uint32_t last = layers->count == 0 ? DEVICE_INPUT_PIXELS : layers->count - 1;
    for (uint32_t i = 0; i < count; i++) {
        last = layers_add(layers, last, list[i]);
    }
    return last;
}

static bool is_countable(struct shape shape)
{
    // Three 32-bit factors can exceed 64 bits; two cannot.
    uint64_t plane = (uint64_t)shape.rows * shape.columns;
    return plane <= ELEMENTS_MAX && plane * shape.channels <= ELEMENTS_MAX;
}

static bool slide_window(const struct op *op, uint32_t size, uint32_t *ret_size)
{
    assert(op->window >= 1 && op->stride >= 1);
    uint64_t padded = size + 2 * (uint64_t)op->padding;
    if (padded < op->window) {
        return false;
    }
    *ret_size = (uint32_t)((padded - op->window) / op->stride + 1);
    return true;
}

enum status layer_make_op(const struct layer *layer, struct shape x, uint32_t class_count,
                          struct op *ret_op)
{
    struct op op = {
        .kind = layer->kind,
        .x = x,
        .y = x,
        .window = layer->kind == OP_SUBSAMPLE ? 1 : layer->window,
        .stride = layer->stride,
        .padding = layer->padding,
        .rate = layer->rate,
        .epsilon = layer->epsilon,
        .has_bias = kinds[layer->kind].has_params && !layer->has_no_bias,
    };
    const struct kind_row *kind = &kinds[layer->kind];
    if (kind->has_channels) {
        op.y.channels = layer->channels == LAYER_CLASSES ? class_count : layer->channels;
    }
    if (kind->is_flat) {
        op.y.rows = 1;
        op.y.columns = 1;
    }
    if (kind->has_window &&
        !(slide_window(&op, x.rows, &op.y.rows) && slide_window(&op, x.columns, &op.y.columns))) {
        return STATUS_INVALID;
    }
    if (layer->kind == OP_PAD) {
        op.y.rows += 2 * op.padding;
        op.y.columns += 2 * op.padding;
    }
    if (!is_countable(op.x) || !is_countable(op.y)) {
        return STATUS_INVALID;
    }
    *ret_op = op;
    return STATUS_OK;
}

uint64_t layer_weight_count(const struct op *op)
{
    return op_weight_count(op);
}

uint64_t layer_bias_count(const struct op *op)
{
    return op->has_bias ? op->y.channels : 0;
}

uint64_t layer_statistic_count(const struct op *op)
{
    return op->kind == OP_BATCH_NORM ? 2 * (uint64_t)op->x.channels : 0;
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
