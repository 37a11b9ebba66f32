/* Random parameters and one random batch for a network's plan, drawn from a seed.
 *
 * Weights are scaled as He et al. draw them, so that values stay near 1 through the layers; biases
 * are random too, for a bias that is always zero tests nothing. */
#ifndef TESTS_SUPPORT_MODEL_PROGRAM_FIXTURE_H
#define TESTS_SUPPORT_MODEL_PROGRAM_FIXTURE_H

#include "worker/device/device.h"
#include "worker/model/network.h"

struct program_fixture {
    const struct network_plan *plan; // borrowed
    uint32_t batch_size;
    float *params;              // (value_count), owned
    float *grads;               // (value_count), owned; not-a-number at first
    float *statistics;          // (statistic_count), owned
    float *pixels;              // (N, C, H, W), owned
    uint32_t *labels;           // (N), owned
    uint64_t *sample_keys;      // (N), owned
    struct program_input input; // of the above, all of the batch, training, mean gradient
};

/* The plan of some layers, one behind the other, and the loss; fails the test if they do not fit.
 */
void program_fixture_plan(const struct layer *list, uint32_t layer_count, struct shape input,
                          struct network_plan *ret_plan);

/* The same of layers that may branch. */
void program_fixture_plan_layers(const struct layers *layers, struct shape input,
                                 uint32_t class_count, struct network_plan *ret_plan);

/* The parameters of a network as its authors count them, on square images of three channels. */
uint64_t program_fixture_published(const struct network *network, uint32_t size, uint32_t classes);

void program_fixture_init(struct program_fixture *fixture, const struct network_plan *plan,
                          uint32_t batch_size, uint64_t seed);
void program_fixture_finish(struct program_fixture *fixture);

/* Fills with not-a-number: what a kernel forgets to write is then seen. */
void program_fixture_poison(float *values, size_t count);

/* Whether a backend computes in bfloat16 on this machine; prints that it does not. */
bool program_fixture_has_bf16(const struct device_ops *ops);

/* |a - b| / |b| in the L2 norm; |a| if b is zero; infinity if anything in a is not finite. */
double program_fixture_relative_error(const float *a, const float *b, size_t count);

#endif
