/* Decides which passes of a convolution use Winograd's algorithm.
 *
 * `auto` takes it from CHANNELS_MIN channels on both sides up: of `cnn` at batch 128 the forward
 * pass and the data gradient took 0.52 to 0.87 and 0.65 to 0.73 of direct convolution's time on one
 * core with AVX-512. Weight gradients have to sum over all tiles, and win from SUM_CHANNELS_MIN
 * channels up, if most pixels of the tiles are of the image: 0.49 to 0.80 of the time (`resnet20`,
 * `resnet50v2`, `vgg16`), where 13x13 pixels in 4x4 tiles took 1.1, and 32 channels 0.92 to 1.31.
 * Winograd also transforms the weights, however few pixels they are used for: with fewer than
 * PIXELS_MIN in the results of a batch it took 0.7 to 10 times as long, with as many 0.5 to 0.9 (64
 * to 512 channels of `resnet50v2` and `vgg16`). Its relative error against `ref` is about 1e-6,
 * twice that of direct convolution (bench/programs/bench_conv_error.c). */
#include "worker/device/cpu/winograd.h"

#define CHANNELS_MIN     32
#define SUM_CHANNELS_MIN 64
#define PIXELS_MIN       1024
#define TILE             4 // rows and columns

/* How many rows or columns the tiles have that cover so many. */
static uint64_t in_tiles(uint32_t count)
{
    return ((uint64_t)count + TILE - 1) / TILE * TILE;
}

/* Whether tiles that cover the image are at least three quarters image. */
static bool tiles_fit(struct shape image)
{
    return 4 * (uint64_t)image.rows * image.columns >=
           3 * in_tiles(image.rows) * in_tiles(image.columns);
}

static bool is_worth_it(const struct node *node, dnnl_prop_kind_t kind)
{
    const struct op *op = &node->op;
    uint64_t pixels = (uint64_t)node->x->batch * op->y.rows * op->y.columns;
    uint32_t channels = op->x.channels < op->y.channels ? op->x.channels : op->y.channels;
    bool is_sum = kind == dnnl_backward_weights;
    return pixels >= PIXELS_MIN && channels >= (is_sum ? SUM_CHANNELS_MIN : CHANNELS_MIN) &&
           (!is_sum || tiles_fit(op->y));
}

bool winograd_is_wanted(const struct node *node, dnnl_prop_kind_t kind)
{
    const struct op *op = &node->op;
    if (node->context->conv == CONV_DIRECT || node->context->is_bf16 || op->window != 3 ||
        op->stride != 1) {
        return false;
    }
    return node->context->conv == CONV_WINOGRAD || is_worth_it(node, kind);
}
