/* Which of several plans is the fastest on the device, by running them on operands of their own. */
#ifndef WORKER_DEVICE_CUDA_DNN_DNN_TIMING_H
#define WORKER_DEVICE_CUDA_DNN_DNN_TIMING_H

#include "worker/device/cuda/dnn/dnn_engines.h"

#include <stdint.h>

#define DNN_TIMED_MAX           8                 // engines that are tried for a question
#define DNN_TIMED_WORKSPACE_MAX ((size_t)2 << 30) // what one of them may ask for, in bytes

/* Plans that were made for the same question, the library's favourite first. */
struct dnn_contest {
    struct dnn_engine engines[DNN_TIMED_MAX];
    struct dnn_plan plans[DNN_TIMED_MAX];
    float times_us[DNN_TIMED_MAX]; // of a run; below 0: it does not run
    uint32_t count;
};

/* Fills in the times, as far as the device has memory for that, and returns which is the fastest;
 * one that gains next to nothing on another before it is not. Returns `count` if none runs. Reports
 * those that do not. */
uint32_t dnn_contest_run(const struct dnn_target *target, const struct dnn_conv *conv,
                         enum dnn_pass pass, struct dnn_contest *contest);

#endif
