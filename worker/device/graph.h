/* From operations to nodes and tensors: what a backend's program is made of.
 *
 * A node computes one operation, or several that are fused; backends have an implementation of each
 * kind. A tensor is the result of one or more nodes: one that works in place shares its input's. Of
 * the nodes that read a tensor the last one is the first to run backward: it writes the gradient,
 * the others add to it.
 *
 *     a relu behind a convolution, a linear layer, a normalisation or an add is part of that node
 *     an add behind a normalisation is part of that node, too
 *     other relus and dropout work in place, an add in the place of one operand
 *     the gradient of an add is that of both operands: they share its memory
 *
 * All tensors lie in one arena of the backend's memory, as far apart as their lifetimes need. */
#ifndef WORKER_DEVICE_GRAPH_H
#define WORKER_DEVICE_GRAPH_H

#include "worker/device/device.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GRAPH_NODES_MAX   (2 * DEVICE_OPS_MAX)
#define GRAPH_TENSORS_MAX (2 * GRAPH_NODES_MAX + 1)
#define GRAPH_EXTRAS_MAX  4

/* It lies as (N, C/B, H, W, B): channels in blocks of B, padded with zeros. B is 1 for plain (N, C,
 * H, W); a backend that has all channels of a pixel beside each other sets it to their number. */
struct tensor {
    struct shape shape;
    uint32_t batch, block;
    uint32_t element_bytes;  // 0: as most tensors of the program
    float *data;             // (N, C/B, H, W, B)
    float *grad;             // same; NULL if nobody needs it
    uint32_t producer, last; // first and last node that use it
    bool is_shared;          // several nodes read it
    bool is_kept;            // a node that wrote it reads it again in backward
    bool is_stand_in;        // for another tensor's gradient: see struct graph
    bool is_rectified;       // nothing in it is negative: a relu was the last to write it
    bool is_grad_masked;     // its reader has already applied that relu's mask to grad
    bool is_pixels;          // the batch itself: data is set for each forward, no grad

    /* The tensor whose gradient is this one's as well, in the same memory; NULL: it has its own. */
    struct tensor *grad_of;

    /* (C) of data and of its squares, over all but channels, as the node that wrote it has added
     * them up on its way; NULL: it has not. In the backend's memory, owned by that node. */
    float *sums, *square_sums;
};

/* What all nodes of a program share: each backend has its own. */
struct node_context;

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
    struct node_context *context;
    struct op op;
    struct tensor *x, *y;    // equal for a node that works in place
    struct tensor *other;    // add, and batch_norm with an add behind it; otherwise NULL
    bool has_relu;           // a relu follows, and is part of this node
    bool feeds_norm;         // a batch_norm, and nobody else, reads y
    bool keeps_x, keeps_y;   // backward reads their data; set by the kind
    bool adds_x, adds_other; // backward adds to their gradients, others having written before
};

/* A node of no more than its base: for kinds without memory of their own. */
enum status node_create_plain(const struct node *base, const struct node_ops *ops,
                              struct node **ret_node);
void node_destroy_plain(struct node *node);

struct graph {
    struct node *nodes[GRAPH_NODES_MAX];
    uint32_t node_ops[GRAPH_NODES_MAX]; // the operation that each node belongs to
    uint32_t node_count;
    struct tensor tensors[GRAPH_TENSORS_MAX]; // 0: the pixels
    uint32_t tensor_count;

    /* Nodes that can only write a gradient which they ought to add write it into a stand-in, which
     * the backend then adds to the real one. */
    struct tensor *targets[GRAPH_NODES_MAX]; // the real tensor; NULL for most nodes
};

struct graph_options {
    const struct op *ops;
    uint32_t op_count, batch;
    bool is_trained;
    struct node_context *context;

    /* By enum op_kind: makes a node. `base` is copied; x, other and y are set, without memory, and
     * the node chooses the block of y. has_relu: fuse the relu behind it; other: and the add before
     * that. Only kinds that say adds_gradients look at adds_x. */
    enum status (*const *kinds)(struct node *base, struct node **ret_node);

    /* Put before a linear layer whose x has a block other than 1; or NULL. */
    enum status (*flatten)(struct node *base, struct node **ret_node);
};

/* Fills `ret_graph`, which is zeroed. Its nodes are the caller's, also if it fails. */
enum status graph_build(const struct graph_options *options, struct graph *ret_graph);
void graph_destroy_nodes(struct graph *graph);

/* How much memory the tensors of a graph take, and where they lie in it. Extras are buffers that
 * live all the time. */
struct graph_memory {
    bool is_trained;
    size_t element_bytes;
    size_t alignment; // of every tensor and extra, in bytes
    size_t extras[GRAPH_EXTRAS_MAX], extra_offsets[GRAPH_EXTRAS_MAX]; // bytes; set by graph_plan
    uint32_t extra_count;
    size_t bytes;                                            // set by graph_plan
    size_t data[GRAPH_TENSORS_MAX], grad[GRAPH_TENSORS_MAX]; // likewise: offsets
};

/* STATUS_NO_MEMORY if there is none to plan with. */
enum status graph_plan(const struct graph *graph, struct graph_memory *memory);

/* Sets data and grad of all tensors but the pixels. */
void graph_place(struct graph *graph, const struct graph_memory *memory, void *arena);

/* Floats of a tensor, padding included. */
static inline size_t tensor_count(const struct tensor *tensor)
{
    size_t blocks = (tensor->shape.channels + tensor->block - 1) / tensor->block;
    return (size_t)tensor->batch * blocks * tensor->block * tensor->shape.rows *
           tensor->shape.columns;
}

/* Floats of one sample, padding included. */
static inline size_t tensor_stride(const struct tensor *tensor)
{
    return tensor_count(tensor) / tensor->batch;
}

#endif
