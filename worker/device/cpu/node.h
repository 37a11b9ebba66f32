/* The parts of a compiled program: tensors, and nodes that compute them.
 *
 * A tensor is the result of one or more operations (an operation that works in place shares its
 * input's). Of the nodes that read a tensor the last one is the first to run backward: it writes
 * the gradient, the others add to it. It lies as (N, C/B, H, W, B): channels in blocks of B, padded
 * with zeros; B is 1 for plain (N, C, H, W). B is oneDNN's choice for the machine, 16 with AVX-512
 * and 8 with AVX2. */
#ifndef WORKER_DEVICE_CPU_NODE_H
#define WORKER_DEVICE_CPU_NODE_H

#include "worker/device/device.h"

#include <oneapi/dnnl/dnnl.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cpu_tensor {
    struct shape shape;
    uint32_t batch, block;
    float *data;             // (N, C/B, H, W, B)
    float *grad;             // same; NULL if nobody needs it
    uint32_t producer, last; // first and last node that use it
    bool is_shared;          // several nodes read it
    bool is_kept;            // a node that wrote it reads it again in backward
    bool is_stand_in;        // for another tensor's gradient: see cpu_program
    bool is_rectified;       // nothing in it is negative: a relu was the last to write it
    bool is_grad_masked;     // its reader has already applied that relu's mask to grad
    bool is_pixels;          // the batch itself: data is set for each forward, no grad

    /* The tensor whose gradient is this one's as well, in the same memory; NULL: it has its own. */
    struct cpu_tensor *grad_of;
};

/* What all nodes of a program share. Borrowed by the nodes. */
struct cpu_context {
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
    const struct program_input *input; // of the forward that runs, or ran last
    struct program_result result;      // written by the loss
};

struct node;

struct node_ops {
    /* Once, when the tensors and the scratch have their memory. May be NULL. */
    enum status (*bind)(struct node *node);
    enum status (*forward)(struct node *node);
    enum status (*backward)(struct node *node);
    void (*describe)(const struct node *node, char *ret_text, size_t text_size); // may be NULL
    void (*destroy)(struct node *node);
    bool adds_gradients; // backward can add to the gradient of x
};

/* First member of every kind's own struct. */
struct node {
    const struct node_ops *ops;
    struct cpu_context *context;
    struct op op;
    struct cpu_tensor *x, *y; // equal for a node that works in place
    struct cpu_tensor *other; // add, and batch_norm with an add behind it; otherwise NULL
    bool has_relu;            // a relu follows, and is part of this node
    bool keeps_x, keeps_y;    // backward reads their data; set by the kind
    bool adds_x, adds_other;  // backward adds to their gradients, others having written before
};

/* One for each kind, in its own file. `has_relu`: fuse the relu behind it; `other`: and the add
 * before that. `base` is copied; x, other and y are set, without memory, and the node chooses the
 * block of y. Only kinds that say adds_gradients look at adds_x. */
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

/* A node of no more than its base: for kinds without memory of their own. */
enum status node_create_plain(const struct node *base, const struct node_ops *ops,
                              struct node **ret_node);
void node_destroy_plain(struct node *node);

/* Floats of a tensor, padding included. */
static inline size_t cpu_tensor_count(const struct cpu_tensor *tensor)
{
    size_t blocks = (tensor->shape.channels + tensor->block - 1) / tensor->block;
    return (size_t)tensor->batch * blocks * tensor->block * tensor->shape.rows *
           tensor->shape.columns;
}

/* Floats of one sample, padding included. */
static inline size_t cpu_tensor_stride(const struct cpu_tensor *tensor)
{
    return cpu_tensor_count(tensor) / tensor->batch;
}

#endif
