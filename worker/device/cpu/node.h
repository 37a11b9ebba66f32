/* The parts of the oneDNN backend: what its nodes share, and one file for each kind.
 *
 * Blocks of channels are oneDNN's choice for the machine, 16 with AVX-512 and 8 with AVX2. */
#ifndef WORKER_DEVICE_CPU_NODE_H
#define WORKER_DEVICE_CPU_NODE_H

#include "worker/device/graph.h"

#include <oneapi/dnnl/dnnl.h>

/* What all nodes of a program share. Borrowed by the nodes. */
struct node_context {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    uint32_t threads, batch;
    const float *params;
    float *grads; // NULL: evaluation only
    float *statistics;
    void *scratch; // of whichever primitive runs
    size_t scratch_bytes;
    void *weights; // of the pass of a convolution that runs, in the layout that it wants
    size_t weight_bytes;
    enum conv_algorithm conv;
    uint32_t winograd_passes;          // of convolutions, that are computed so
    bool is_bf16;                      // what convolutions write is: see bf16.h
    const struct program_input *input; // of the forward that runs, or ran last
    struct program_result result;      // written by the loss
};

/* One for each kind, in its own file: see graph.h. */
enum status node_create_conv2d(struct node *base, struct node **ret_node);
enum status node_create_linear(struct node *base, struct node **ret_node);
enum status node_create_max_pool(struct node *base, struct node **ret_node);
enum status node_create_relu(struct node *base, struct node **ret_node);
enum status node_create_dropout(struct node *base, struct node **ret_node);
enum status node_create_softmax_loss(struct node *base, struct node **ret_node);
enum status node_create_flatten(struct node *base, struct node **ret_node);
enum status node_create_batch_norm(struct node *base, struct node **ret_node);
enum status node_create_add(struct node *base, struct node **ret_node);
enum status node_create_subsample(struct node *base, struct node **ret_node);
enum status node_create_pad(struct node *base, struct node **ret_node);
enum status node_create_global_pool(struct node *base, struct node **ret_node);

#endif
