/* Counts operations and bytes of a network. */
#include "bench/programs/work.h"

static double elements_of(struct shape shape)
{
    return (double)shape.channels * shape.rows * shape.columns;
}

static double products_of(const struct op *op)
{
    bool has_products = op->kind == OP_CONV2D || op->kind == OP_LINEAR;
    return has_products ? (double)op_weight_count(op) * op->y.rows * op->y.columns : 0;
}

/* A relu, a dropout or an add can be part of the operation before it: whoever passes its input
 * through memory does more than is needed. */
static bool needs_a_pass(enum op_kind kind)
{
    return kind != OP_RELU && kind != OP_DROPOUT && kind != OP_ADD && kind != OP_SOFTMAX_LOSS;
}

struct work work_of(const struct op *ops, uint32_t op_count, uint32_t element_bytes)
{
    struct work work = {0};
    for (uint32_t i = 0; i < op_count; i++) {
        const struct op *op = &ops[i];
        bool reads_pixels = op->input == DEVICE_INPUT_PIXELS;
        double passes = reads_pixels ? 2 : 3; // forward, weights, and what goes on to the input
        work.operations += passes * 2 * products_of(op);
        if (needs_a_pass(op->kind)) {
            // Forward: x, y. Backward: dy, x again for the weights, dx.
            double forward = elements_of(op->x) + elements_of(op->y);
            double backward = elements_of(op->y) + (reads_pixels ? 1 : 2) * elements_of(op->x);
            work.bytes += element_bytes * (forward + backward);
        }
    }
    return work;
}
