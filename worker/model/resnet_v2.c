/* ResNets with pre-activation (He et al. 2016), as Keras has them: four stages of bottleneck
 * blocks; rows and columns are halved in the last block of a stage rather than in the first,
 * padding is zeros also where pooling follows. Keras counts the statistics among the parameters:
 * 25,613,800 for 50 layers and 1,000 classes, 60,380,648 for 152. */
#include "worker/model/models.h"

#define STAGES  4
#define EPSILON 1.001e-5f

struct stage {
    uint32_t channels, blocks; // of the narrow convolutions; the result has four times as many
    uint32_t stride;           // of its last block
};

static uint32_t add_norm(struct layers *layers, uint32_t input)
{
    const struct layer norm = {OP_BATCH_NORM, .epsilon = EPSILON};
    return layers_add(layers, layers_add(layers, input, norm), (struct layer){OP_RELU});
}

static uint32_t add_conv(struct layers *layers, uint32_t input, struct layer layer)
{
    layer.kind = OP_CONV2D;
    layer.padding = layer.window / 2;
    return layers_add(layers, input, layer);
}

/* What is added to the result of a block: its input, if need be with more channels or fewer rows.
 */
static uint32_t add_shortcut(struct layers *layers, const struct stage *stage, uint32_t input,
                             uint32_t normed, uint32_t block)
{
    if (block == 0) {
        return add_conv(layers, normed,
                        (struct layer){.channels = 4 * stage->channels, .window = 1, .stride = 1});
    }
    if (block + 1 == stage->blocks && stage->stride > 1) {
        return layers_add(
            layers, input,
            (struct layer){OP_SUBSAMPLE, .channels = 4 * stage->channels, .stride = stage->stride});
    }
    return input;
}

static uint32_t add_block(struct layers *layers, const struct stage *stage, uint32_t input,
                          uint32_t block)
{
    uint32_t stride = block + 1 == stage->blocks ? stage->stride : 1;
    struct layer conv = {
        .channels = stage->channels, .window = 1, .stride = 1, .has_no_bias = true};
    uint32_t normed = add_norm(layers, input);
    uint32_t shortcut = add_shortcut(layers, stage, input, normed, block);
    uint32_t x = add_norm(layers, add_conv(layers, normed, conv));
    conv.window = 3;
    conv.stride = stride;
    x = add_norm(layers, add_conv(layers, x, conv));
    x = add_conv(layers, x,
                 (struct layer){.channels = 4 * stage->channels, .window = 1, .stride = 1});
    return layers_add(layers, x, (struct layer){OP_ADD, .other = shortcut});
}

static void build(struct layers *layers, const uint32_t blocks[STAGES])
{
    static const struct layer stem[] = {
        {OP_CONV2D, .channels = 64, .window = 7, .stride = 2, .padding = 3},
        {OP_PAD, .padding = 1},
        {OP_MAX_POOL, .window = 3, .stride = 2},
    };
    uint32_t x = layers_append(layers, stem, sizeof(stem) / sizeof(stem[0]));
    for (uint32_t i = 0; i < STAGES; i++) {
        const struct stage stage = {UINT32_C(64) << i, blocks[i], i + 1 < STAGES ? 2 : 1};
        for (uint32_t block = 0; block < stage.blocks; block++) {
            x = add_block(layers, &stage, x, block);
        }
    }
    x = layers_add(layers, add_norm(layers, x), (struct layer){OP_GLOBAL_POOL});
    layers_add(layers, x, (struct layer){OP_LINEAR, .channels = LAYER_CLASSES});
}

static void build_50(struct layers *ret_layers)
{
    build(ret_layers, (const uint32_t[STAGES]){3, 4, 6, 3});
}

static void build_152(struct layers *ret_layers)
{
    build(ret_layers, (const uint32_t[STAGES]){3, 8, 36, 3});
}

const struct network model_resnet50v2 = {
    .name = "resnet50v2", .build = build_50, .counts_statistics = true};
const struct network model_resnet152v2 = {
    .name = "resnet152v2", .build = build_152, .counts_statistics = true};
