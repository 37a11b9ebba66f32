/* A model's description, and its plan for one shape of input: operations, and where in the flat
 * vector each tensor lies. Pure; nothing is allocated or logged here.
 *
 * Tensors lie in the order of the layers, weight before bias, without gaps. */
#ifndef WORKER_MODEL_NETWORK_H
#define WORKER_MODEL_NETWORK_H

#include "common/layout.h"
#include "worker/model/layer.h"

#define NETWORK_TENSORS_MAX (2 * DEVICE_OPS_MAX)

/* A row of a model's own file. The loss is not in the list: every network ends with it. */
struct network {
    const char *name;
    const struct layer *layers;
    uint32_t layer_count; // below DEVICE_OPS_MAX
};

struct network_tensor {
    struct span span;
    uint32_t op; // whose parameters they are
    bool is_bias;
};

struct network_plan {
    struct op ops[DEVICE_OPS_MAX]; // one for each layer, then the loss
    uint32_t op_count;
    struct network_tensor tensors[NETWORK_TENSORS_MAX];
    uint32_t tensor_count;
    uint64_t value_count;
};

/* STATUS_INVALID: layer *ret_bad_layer does not fit what comes out of the layers before it. */
enum status network_make_plan(const struct network *network, struct shape input,
                              uint32_t class_count, struct network_plan *ret_plan,
                              uint32_t *ret_bad_layer);

/* Writes the first parameters, (value_count): weights uniform within sqrt(6 / (fan_in + fan_out))
 * of zero (Glorot and Bengio 2010, as Keras draws them), biases zero. They depend on the seed
 * alone, bit for bit. lenet5 on Fashion-MNIST ended higher with them than with He's or PyTorch's
 * limits. */
void network_init_params(const struct network_plan *plan, uint64_t seed, float *ret_params);

/* Of everything that workers must agree on: name, shapes of input and tensors, classes. */
uint64_t network_digest(const struct network *network, const struct network_plan *plan);

#endif
