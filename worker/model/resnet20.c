/* ResNet-20 for CIFAR (He et al. 2015, section 4.2): three stages of three blocks, shortcuts
 * without parameters (option A). 269,722 parameters at 10 classes. */
#include "worker/model/models.h"

#define STAGES  3
#define BLOCKS  3 // of each stage
#define EPSILON 1e-5f

static uint32_t add_conv(struct layers *layers, uint32_t input, uint32_t channels, uint32_t stride)
{
    const struct layer conv = {OP_CONV2D,        .channels = channels, .window = 3,
                               .stride = stride, .padding = 1,         .has_no_bias = true};
    const struct layer norm = {OP_BATCH_NORM, .epsilon = EPSILON};
    return layers_add(layers, layers_add(layers, input, conv), norm);
}

static uint32_t add_relu(struct layers *layers, uint32_t input)
{
    return layers_add(layers, input, (struct layer){OP_RELU});
}

/* Two convolutions, and the input added to their result. */
static uint32_t add_block(struct layers *layers, uint32_t input, uint32_t channels, uint32_t stride)
{
    uint32_t x = add_relu(layers, add_conv(layers, input, channels, stride));
    x = add_conv(layers, x, channels, 1);
    if (stride > 1) {
        const struct layer shortcut = {OP_SUBSAMPLE, .channels = channels, .stride = stride};
        input = layers_add(layers, input, shortcut);
    }
    x = layers_add(layers, x, (struct layer){OP_ADD, .other = input});
    return add_relu(layers, x);
}

static void build(struct layers *ret_layers)
{
    uint32_t channels = 16;
    uint32_t x = add_relu(ret_layers, add_conv(ret_layers, DEVICE_INPUT_PIXELS, channels, 1));
    for (uint32_t stage = 0; stage < STAGES; stage++) {
        for (uint32_t block = 0; block < BLOCKS; block++) {
            x = add_block(ret_layers, x, channels, stage > 0 && block == 0 ? 2 : 1);
        }
        channels *= 2;
    }
    x = layers_add(ret_layers, x, (struct layer){OP_GLOBAL_POOL});
    layers_add(ret_layers, x, (struct layer){OP_LINEAR, .channels = LAYER_CLASSES});
}

const struct network model_resnet20 = {.name = "resnet20", .build = build};
