/* The CNN of Keras's CIFAR-10 example (cifar10_cnn.py). */
#include "worker/model/models.h"

static const struct layer layers[] = {
    {OP_CONV2D, .channels = 32, .window = 3, .stride = 1, .padding = 1},
    {OP_RELU},
    {OP_CONV2D, .channels = 32, .window = 3, .stride = 1},
    {OP_RELU},
    {OP_MAX_POOL, .window = 2, .stride = 2},
    {OP_DROPOUT, .rate = 0.25f},
    {OP_CONV2D, .channels = 64, .window = 3, .stride = 1, .padding = 1},
    {OP_RELU},
    {OP_CONV2D, .channels = 64, .window = 3, .stride = 1},
    {OP_RELU},
    {OP_MAX_POOL, .window = 2, .stride = 2},
    {OP_DROPOUT, .rate = 0.25f},
    {OP_LINEAR, .channels = 512},
    {OP_RELU},
    {OP_DROPOUT, .rate = 0.5f},
    {OP_LINEAR, .channels = LAYER_CLASSES},
};

static void build(struct layers *ret_layers)
{
    layers_append(ret_layers, layers, sizeof(layers) / sizeof(layers[0]));
}

const struct network model_cnn = {.name = "cnn", .build = build};
