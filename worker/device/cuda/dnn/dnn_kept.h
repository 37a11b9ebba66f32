/* Plans that were made before: see plan_cache.h. */
#ifndef WORKER_DEVICE_CUDA_DNN_DNN_KEPT_H
#define WORKER_DEVICE_CUDA_DNN_DNN_KEPT_H

#include "worker/device/cuda/dnn/dnn.h"

/* The plan that dnn_keep was given for the same target, convolution and pass, by the same version
 * of the library on the same GPU. False if there is none, or if the library does not take it. */
bool dnn_find_kept(const struct dnn_target *target, const struct dnn_conv *conv, enum dnn_pass pass,
                   struct dnn_plan *ret_plan);

void dnn_keep(const struct dnn_target *target, const struct dnn_conv *conv, enum dnn_pass pass,
              const struct dnn_plan *plan);

#endif
