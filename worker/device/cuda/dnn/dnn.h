/* cuDNN's graph interface in few words: a convolution's three passes, each as a plan that was
 * chosen once for a device, and runs.
 *
 * Plans are made for the device of a handle, or for one that is only described, as the library
 * writes a device down (JSON): so a machine without a GPU can tell whether every convolution of a
 * model has an engine. */
#ifndef WORKER_DEVICE_CUDA_DNN_DNN_H
#define WORKER_DEVICE_CUDA_DNN_DNN_H

#include "common/base/status.h"
#include "worker/device/device.h"

#include <cudnn.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What plans are made for. */
struct dnn_target {
    cudnnHandle_t handle;               // of the device; or NULL
    cudnnBackendDescriptor_t described; // used where handle is NULL
    enum precision precision;
    bool allows_nondeterministic;
    const char *gpu; // which plans are kept for, and by which driver, one line; NULL: none are kept
    cudaStream_t stream;         // of the handle
    struct dnn_choices *choices; // of the device, borrowed; NULL: nobody asks, and none is timed
};

/* STATUS_UNSUPPORTED, logged, if the library does not take the description. */
enum status dnn_describe_device(const char *json, cudnnBackendDescriptor_t *ret_described);
void dnn_forget_device(cudnnBackendDescriptor_t described); // NULL is fine

enum dnn_pass { DNN_FORWARD, DNN_DATA_GRADIENT, DNN_WEIGHT_GRADIENT };

/* Channels beside each other, x (N, H, W, C), w (K, R, S, C), y (N, P, Q, K). */
struct dnn_conv {
    uint32_t batch, inputs, outputs; // N, C, K
    uint32_t x_rows, x_columns, y_rows, y_columns;
    uint32_t window, stride, padding;
    bool has_bias, has_relu; // forward: y = relu(conv + bias)
    bool has_statistics;     // forward: and what y's channels add up to, see dnn_operands
};

/* A plan. Zeroed is empty. */
struct dnn_plan {
    cudnnBackendDescriptor_t plan;
    size_t workspace_bytes;
    char engine[64]; // for the log
    bool is_kept;    // it was made for an earlier job
};

#define DNN_WHY_BYTES 512

/* The plan of an engine that keeps to the target: deterministic unless that was waived, in full
 * float unless the precision says otherwise. Which one, see dnn_choices.h. STATUS_UNSUPPORTED if
 * there is none, and why: what the library ("it") says. Not logged. */
enum status dnn_plan_conv(const struct dnn_target *target, const struct dnn_conv *conv,
                          enum dnn_pass pass, struct dnn_plan *ret_plan, char *ret_why,
                          size_t why_size);
void dnn_plan_destroy(struct dnn_plan *plan);

/* Device memory that a pass works on; the result is the one of x, w and y that is computed. What a
 * plan does not have is NULL.
 *
 * With statistics a plan ADDS to the sums, tile by tile, by atomic additions of floats: they are
 * to be zero before, and their last bits differ from run to run, though no engine is noted for
 * that. (Read off the code that cuDNN 9.19 compiles for them.) What it adds up is y as it is
 * stored, rounded to the type of activations. */
struct dnn_operands {
    void *x, *w, *y, *bias;
    float *sums, *square_sums; // (K) of y and of its squares, over all but channels
    void *workspace;
};

enum status dnn_plan_run(const struct dnn_target *target, const struct dnn_plan *plan,
                         const struct dnn_operands *operands);

#endif
