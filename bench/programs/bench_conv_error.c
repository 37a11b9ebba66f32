/* How far direct and Winograd convolutions are from the reference, layer by layer.
 *
 *     bench_conv_error [MODEL [BATCH]]
 *
 * One training step with random parameters and pixels, on cpu and on ref; prints, for the loss and
 * the gradient of each layer's weights, the relative L2 error of both algorithms. A layer's error
 * holds those of the layers behind it, whose gradients it is made from. */
#include "common/base/log.h"
#include "tests/support/model/program_compare.h"
#include "worker/model/models.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
    static struct network_plan plan;
    static struct program_difference direct, winograd;
    const char *name = argc > 1 ? argv[1] : "cnn";
    uint32_t batch = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 16, bad_layer;
    bool is_small = strcmp(name, "lenet5") == 0;
    struct shape shape = is_small ? (struct shape){1, 28, 28} : (struct shape){3, 32, 32};
    const struct network *network = models_find(name);
    log_init("bench_conv_error", LOG_WARN);
    if (network == NULL || batch == 0 ||
        network_make_plan(network, shape, 10, &plan, &bad_layer) != STATUS_OK) {
        fprintf(stderr, "usage: bench_conv_error [MODEL [BATCH]]\n");
        return 2;
    }
    struct program_compare_options options = {
        .subject = "cpu", .reference = "ref", .batch_size = batch, .seed = 1, .conv = CONV_DIRECT};
    program_compare(&plan, &options, &direct);
    options.conv = CONV_WINOGRAD;
    program_compare(&plan, &options, &winograd);

    printf("%-22s %12s %12s\n", "gradient of", "direct", "winograd");
    for (uint32_t i = 0; i < plan.tensor_count; i++) {
        const struct op *op = &plan.ops[plan.tensors[i].op];
        if (plan.tensors[i].kind == TENSOR_BIAS) {
            continue;
        }
        char text[64];
        snprintf(text, sizeof(text), "%s %u->%u", op->kind == OP_CONV2D ? "conv2d" : "linear",
                 op->x.channels * (op->kind == OP_CONV2D ? 1 : op->x.rows * op->x.columns),
                 op->y.channels);
        printf("%-22s %12.2e %12.2e\n", text, direct.tensors[i], winograd.tensors[i]);
    }
    printf("%-22s %12.2e %12.2e\n", "(the loss)", direct.loss, winograd.loss);
    return 0;
}
