/* What a choice and a plan depend on, as lines of text. */
#ifndef WORKER_DEVICE_CUDA_DNN_DNN_KEY_H
#define WORKER_DEVICE_CUDA_DNN_DNN_KEY_H

#include "worker/device/cuda/dnn/dnn.h"

#include <stdbool.h>

#define DNN_QUESTION_BYTES 256
#define DNN_KEY_BYTES      1024

/* The convolution and its pass, without the number of samples. */
void dnn_write_question(const struct dnn_target *target, const struct dnn_conv *conv,
                        enum dnn_pass pass, char ret_question[DNN_QUESTION_BYTES]);

/* All that `what` depends on: the question, the samples, the GPU and the library. False if nothing
 * is to be kept. */
bool dnn_write_key(const struct dnn_target *target, const struct dnn_conv *conv, enum dnn_pass pass,
                   const char *what, char ret_key[DNN_KEY_BYTES]);

#endif
