/* A layer of a model's description, and what follows from it without arithmetic on data: the shape
 * of its result and the number of its parameters. */
#ifndef WORKER_MODEL_LAYER_H
#define WORKER_MODEL_LAYER_H

#include "worker/device/device.h"

#define LAYER_CLASSES UINT32_MAX           // as channels: one for each class of the data
#define LAYERS_MAX    (DEVICE_OPS_MAX - 1) // the loss is not a layer

/* What a kind does not use is zero. */
struct layer {
    enum op_kind kind;
    uint32_t channels;                // conv2d, linear, subsample: of the result
    uint32_t window, stride, padding; // conv2d, max_pool, subsample (no window), pad; in pixels
    float rate;                       // dropout
    float epsilon;                    // batch_norm
    bool has_no_bias;                 // conv2d
    uint32_t input, other;            // layers whose results it reads; layers_add sets input
};

/* The layers of a network, in an order in which they can be computed; the last one's result goes to
 * the loss. */
struct layers {
    struct layer list[LAYERS_MAX];
    uint32_t count;
};

/* Adds a layer that reads the result of layer `input`, or DEVICE_INPUT_PIXELS. Returns its number.
 */
uint32_t layers_add(struct layers *layers, uint32_t input, struct layer layer);

/* Adds layers that read one another's results, the first that of the last layer so far, or the
 * pixels. Returns the number of the last. */
uint32_t layers_append(struct layers *layers, const struct layer *list, uint32_t count);

/* The operation that computes the layer on samples of shape x; its inputs, parameters and stream
 * are the caller's to set. STATUS_INVALID if the layer's window is larger than its padded input, or
 * the result too large to count. */
enum status layer_make_op(const struct layer *layer, struct shape x, uint32_t class_count,
                          struct op *ret_op);

/* Lengths of an operation's weight, bias and statistics; 0 if it has none. */
uint64_t layer_weight_count(const struct op *op);
uint64_t layer_bias_count(const struct op *op);
uint64_t layer_statistic_count(const struct op *op);

/* Inputs that each element of the result sums over, and elements of the result that each input
 * goes into (as Glorot counts them: all taps of the window). */
uint64_t layer_fan_in(const struct op *op);
uint64_t layer_fan_out(const struct op *op);

#endif
