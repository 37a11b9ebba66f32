/* What a plan computes, in the library's words: the operation graph of a pass. */
#ifndef WORKER_DEVICE_CUDA_DNN_DNN_GRAPH_H
#define WORKER_DEVICE_CUDA_DNN_DNN_GRAPH_H

#include "worker/device/cuda/dnn/dnn.h"

#include <cudnn.h>

#include <stdint.h>

#define DNN_PIECES_MAX 72 // an engine has many knobs

// What operands are called in a plan's pack.
enum dnn_uid {
    DNN_UID_X = 1,
    DNN_UID_W,
    DNN_UID_Y,
    DNN_UID_BIAS,
    DNN_UID_SUMS,
    DNN_UID_SQUARE_SUMS,
    DNN_UID_CONV,   // between operations, and never in memory
    DNN_UID_BIASED, // likewise
};

/* Descriptors that are destroyed together. Zeroed is empty, and sound. */
struct dnn_pieces {
    cudnnBackendDescriptor_t list[DNN_PIECES_MAX];
    uint32_t count;
    cudnnStatus_t status; // of the first that failed; after it nothing is done
};

cudnnBackendDescriptor_t dnn_begin(struct dnn_pieces *pieces, cudnnBackendDescriptorType_t type);
void dnn_set(struct dnn_pieces *pieces, cudnnBackendDescriptor_t descriptor,
             cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count,
             const void *values);
void dnn_end(struct dnn_pieces *pieces, cudnnBackendDescriptor_t descriptor);

/* Whose plan a descriptor of a plan is to be. */
void dnn_set_target(struct dnn_pieces *pieces, cudnnBackendDescriptor_t plan,
                    const struct dnn_target *target);
void dnn_destroy_pieces(struct dnn_pieces *pieces);

/* The operation graph of a pass, among the pieces. */
cudnnBackendDescriptor_t dnn_add_graph(struct dnn_pieces *pieces, const struct dnn_target *target,
                                       const struct dnn_conv *conv, enum dnn_pass pass);

#endif
