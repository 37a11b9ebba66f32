/* The same program on two backends, with the same random parameters and batch: how far apart are
 * the results? */
#ifndef TESTS_SUPPORT_MODEL_PROGRAM_COMPARE_H
#define TESTS_SUPPORT_MODEL_PROGRAM_COMPARE_H

#include "worker/device/device.h"
#include "worker/model/network.h"

struct program_compare_options {
    const char *subject, *reference; // names of backends: "cpu", "ref"
    uint32_t threads;                // 0: 1
    enum conv_algorithm conv;        // of the subject; the reference uses CONV_AUTO
    enum precision precision;        // of the subject; the reference uses fp32
    uint32_t batch_size;
    uint32_t count; // samples that count; 0: all
    uint64_t seed;
    bool is_evaluation; // forward only, in a program without gradients
};

struct program_difference {
    double loss;                         // relative
    double grads;                        // largest of tensors[]
    double statistics;                   // relative L2 error of them all
    uint32_t worst_tensor;               // its index
    double tensors[NETWORK_TENSORS_MAX]; // relative L2 error of each gradient tensor of the plan
    int64_t correct;                     // difference of correct_count
    char description[256];               // of the subject's program
};

/* Fails the test (by assert) if a backend cannot be opened, compiled or run. */
void program_compare(const struct network_plan *plan, const struct program_compare_options *options,
                     struct program_difference *ret_difference);

#endif
