/* LeNet-5 (LeCun et al. 1998) as it is taught today: rectifiers for tanh, maxima for averages. The
 * padding makes 28x28 images the 32x32 of the paper. */
#include "worker/model/models.h"

static const struct layer layers[] = {
    {OP_CONV2D, .channels = 6, .window = 5, .stride = 1, .padding = 2},
    {OP_RELU},
    {OP_MAX_POOL, .window = 2, .stride = 2},
    {OP_CONV2D, .channels = 16, .window = 5, .stride = 1},
    {OP_RELU},
    {OP_MAX_POOL, .window = 2, .stride = 2},
    {OP_LINEAR, .channels = 120},
    {OP_RELU},
    {OP_LINEAR, .channels = 84},
    {OP_RELU},
    {OP_LINEAR, .channels = LAYER_CLASSES},
};

static void build(struct layers *ret_layers)
{
    layers_append(ret_layers, layers, sizeof(layers) / sizeof(layers[0]));
}

const struct network model_lenet5 = {.name = "lenet5", .build = build};
