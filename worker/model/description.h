/* A model's layers with parameters, described for those who take parameters elsewhere. Pure. */
#ifndef WORKER_MODEL_DESCRIPTION_H
#define WORKER_MODEL_DESCRIPTION_H

#include "common/base/status.h"
#include "worker/device/device.h"

#include <stdint.h>

/* JSON, in one line; the caller frees it:
 *
 *     {"model": "lenet5", "input": [1, 28, 28], "classes": 10, "values": 61706, "statistics": 0,
 *      "layers": [{"kind": "conv2d", "shape": [6, 1, 5, 5], "weight": 0, "bias": 150}, ...]}
 *
 * Layers stand in the order in which they are computed. `weight` and `bias` (not there: it has
 * none) are offsets into the vector of `values` parameters. `shape` is that of the weight: (K, C,
 * R, S) of a conv2d; (K, C, H, W) of a linear, whose inputs are the elements of a (C, H, W) sample
 * in that order; (C) of a batch_norm, which also has `epsilon`, and `statistics`, the offset of its
 * means (C) into the vector of statistics, behind which its variances (C) lie.
 *
 * STATUS_INVALID: there is no such model, or it does not fit the input. */
enum status description_make(const char *model, struct shape input, uint32_t class_count,
                             char **ret_text);

#endif
