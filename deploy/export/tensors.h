/* A model's parameters as tensors with the names and layouts of another framework. Pure.
 *
 *                   PyTorch                           Keras
 *     conv2d        conv1.weight (K, C, R, S)         conv2d/kernel (R, S, C, K)
 *                   conv1.bias (K)                    conv2d/bias (K)
 *     linear        fc1.weight (K, C H W)             dense/kernel (H W C, K)
 *                   fc1.bias (K)                      dense/bias (K)
 *     batch_norm    bn1.weight (C), bn1.bias (C)      batch_normalization/gamma, .../beta (C)
 *                   bn1.running_mean, _var (C)        .../moving_mean, .../moving_variance (C)
 *                   bn1.num_batches_tracked ()
 *
 * Layers of a kind are numbered as they are computed: conv1, conv2 …; conv2d, conv2d_1 … Tensors
 * stand in the order in which a PyTorch model that makes its layers in that order has them in its
 * state_dict. */
#ifndef DEPLOY_EXPORT_TENSORS_H
#define DEPLOY_EXPORT_TENSORS_H

#include "common/base/status.h"

#include <jansson.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TENSOR_NAME_BYTES 64
#define TENSOR_RANK_MAX   4
#define TENSOR_NUMBER_MAX 100000 // of layers of a kind

enum tensor_names { TENSOR_NAMES_TORCH, TENSOR_NAMES_KERAS };

struct tensor {
    char name[TENSOR_NAME_BYTES];
    uint32_t rank;                   // of shape; 0: one number
    uint32_t shape[TENSOR_RANK_MAX]; // row-major
    uint64_t count;                  // the product of shape
    float *floats;                   // (count), owns; NULL: it is a whole number
    int64_t whole;
};

struct tensors {
    struct tensor *list; // owns
    uint32_t count, room;
};

/* What a checkpoint has of the model. */
struct tensor_source {
    float *values;     // (value_count) parameters
    float *statistics; // (statistic_count) of batch normalisation
    uint64_t value_count, statistic_count;
    uint64_t step; // how many batches were seen
};

void tensors_finish(struct tensors *tensors); // zeroed is fine

/* `model` is the description that worker/model/description.h tells of; everything in it is checked.
 * STATUS_MALFORMED with an error, or STATUS_NO_MEMORY. */
enum status tensors_make(const json_t *model, const struct tensor_source *source,
                         enum tensor_names names, struct tensors *ret_tensors, char *ret_error,
                         size_t error_size);

#endif
