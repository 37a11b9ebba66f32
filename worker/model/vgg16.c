/* VGG-16 (Simonyan and Zisserman 2015, configuration D), as Keras has it: 138,357,544 parameters at
 * 224x224 and 1,000 classes. No normalisation and no dropout: it wants a small learning rate. */
#include "worker/model/models.h"

/* Convolutions of 3x3, each with its relu, and a pooling that halves rows and columns. */
static void add_block(struct layers *layers, uint32_t channels, uint32_t convolutions)
{
    const struct layer convolution[] = {
        {OP_CONV2D, .channels = channels, .window = 3, .stride = 1, .padding = 1},
        {OP_RELU},
    };
    static const struct layer pool = {OP_MAX_POOL, .window = 2, .stride = 2};
    for (uint32_t i = 0; i < convolutions; i++) {
        layers_append(layers, convolution, 2);
    }
    layers_append(layers, &pool, 1);
}

static void build(struct layers *ret_layers)
{
    static const struct layer top[] = {
        {OP_LINEAR, .channels = 4096},          {OP_RELU}, {OP_LINEAR, .channels = 4096}, {OP_RELU},
        {OP_LINEAR, .channels = LAYER_CLASSES},
    };
    add_block(ret_layers, 64, 2);
    add_block(ret_layers, 128, 2);
    add_block(ret_layers, 256, 3);
    add_block(ret_layers, 512, 3);
    add_block(ret_layers, 512, 3);
    layers_append(ret_layers, top, sizeof(top) / sizeof(top[0]));
}

const struct network model_vgg16 = {.name = "vgg16", .build = build};
