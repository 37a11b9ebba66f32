/* A model's description, and its plan for one shape of input: operations, and where in the flat
 * vector each tensor lies. Pure; nothing is allocated or logged here.
 *
 * Tensors lie in the order of the layers, weight before bias, without gaps. */
#ifndef WORKER_MODEL_NETWORK_H
#define WORKER_MODEL_NETWORK_H

#include "common/vector/layout.h"
#include "worker/model/layer.h"

#define NETWORK_TENSORS_MAX (2 * DEVICE_OPS_MAX)

/* A row of a model's own file. The loss is not among the layers: every network ends with it. */
struct network {
    const char *name;
    void (*build)(struct layers *layers);
    bool counts_statistics; // where the network was published, with its parameters
};

enum tensor_kind { TENSOR_WEIGHT, TENSOR_SCALE, TENSOR_BIAS };

struct network_tensor {
    struct span span;
    uint32_t op; // whose parameters they are
    enum tensor_kind kind;
};

struct network_plan {
    struct layers layers;
    struct op ops[DEVICE_OPS_MAX]; // one for each layer, then the loss
    uint32_t op_count;
    struct network_tensor tensors[NETWORK_TENSORS_MAX];
    uint32_t tensor_count;
    uint64_t value_count;     // of the flat vector
    uint64_t statistic_count; // of the vector of statistics
};

/* STATUS_INVALID: layer *ret_bad_layer does not fit what comes out of the layers before it. */
enum status network_make_plan(const struct network *network, struct shape input,
                              uint32_t class_count, struct network_plan *ret_plan,
                              uint32_t *ret_bad_layer);

/* The same for layers that are in the plan already. */
enum status network_plan_layers(struct network_plan *plan, struct shape input, uint32_t class_count,
                                uint32_t *ret_bad_layer);

/* The number of parameters as the network's authors count them. */
uint64_t network_published_count(const struct network *network, const struct network_plan *plan);

/* Writes the first parameters, (value_count): weights uniform within sqrt(6 / (fan_in + fan_out))
 * of zero (Glorot and Bengio 2010, as Keras draws them), scales one, biases zero. They depend on
 * the seed alone, bit for bit. lenet5 on Fashion-MNIST ended higher with them than with He's or
 * PyTorch's limits. */
void network_init_params(const struct network_plan *plan, uint64_t seed, float *ret_params);

/* Writes the first statistics, (statistic_count): means of zero, variances of one. */
void network_init_statistics(const struct network_plan *plan, float *ret_statistics);

/* Of everything that workers must agree on: name, shapes of input and tensors, classes. */
uint64_t network_digest(const struct network *network, const struct network_plan *plan);

#endif
