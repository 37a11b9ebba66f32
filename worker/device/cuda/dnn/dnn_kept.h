/* Plans that were made before: see plan_cache.h. */
#ifndef WORKER_DEVICE_CUDA_DNN_DNN_KEPT_H
#define WORKER_DEVICE_CUDA_DNN_DNN_KEPT_H

#include "worker/device/cuda/dnn/dnn_engines.h"

/* The plan that dnn_keep_plan was given for the same target, convolution, pass and engine, by the
 * same version of the library on the same GPU. False if there is none, or if the library does not
 * take it. */
bool dnn_find_kept(const struct dnn_target *target, const struct dnn_conv *conv, enum dnn_pass pass,
                   const struct dnn_engine *engine, struct dnn_plan *ret_plan);

#endif
