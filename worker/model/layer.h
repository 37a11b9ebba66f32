/* A layer of a model's description, and what follows from it without arithmetic on data: the shape
 * of its result and the number of its parameters. */
#ifndef WORKER_MODEL_LAYER_H
#define WORKER_MODEL_LAYER_H

#include "worker/device/device.h"

#define LAYER_CLASSES UINT32_MAX // as channels: one for each class of the data

/* What a kind does not use is zero. */
struct layer {
    enum op_kind kind;
    uint32_t channels;                // conv2d, linear: of the result
    uint32_t window, stride, padding; // conv2d, max_pool; in pixels
    float rate;                       // dropout
};

/* "conv2d", for messages. */
const char *layer_name(enum op_kind kind);

/* The operation that computes the layer on samples of shape x; its parameters and stream are the
 * caller's to set. STATUS_INVALID if the layer's window is larger than its padded input, or the
 * result too large to count. */
enum status layer_make_op(const struct layer *layer, struct shape x, uint32_t class_count,
                          struct op *ret_op);

/* Lengths of an operation's weight and bias; 0 if it has none. */
uint64_t layer_weight_count(const struct op *op);
uint64_t layer_bias_count(const struct op *op);

/* Inputs that each element of the result sums over, and elements of the result that each input
 * goes into (as Glorot counts them: all taps of the window). */
uint64_t layer_fan_in(const struct op *op);
uint64_t layer_fan_out(const struct op *op);

#endif
