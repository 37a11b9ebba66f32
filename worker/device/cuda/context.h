/* The parts of the CUDA backend: what the nodes of a program share, and one file for each group of
 * kinds. Activations lie as (N, H, W, C), in float or bfloat16; all vectors, sums and statistics
 * are float or double. Pointers are device memory unless said otherwise. */
#ifndef WORKER_DEVICE_CUDA_CONTEXT_H
#define WORKER_DEVICE_CUDA_CONTEXT_H

#include "worker/device/cuda/dnn/dnn.h"
#include "worker/device/cuda/kernels/kernels.h"
#include "worker/device/cuda/recorder.h"
#include "worker/device/graph.h"

#include <cublasLt.h>
#include <cuda_runtime_api.h>

// Of all device memory that a library is given, in bytes. cudaMalloc promises as much, and the
// libraries take it for granted.
#define CUDA_ALIGNMENT 256

/* What the launches of a pass take from its input, besides memory. Nodes see nothing else of the
 * input: where this is equal they launch the same, see replay.h. */
struct cuda_pass {
    uint32_t count; // samples that are not padding
    float gradient_scale;
    bool is_training;
    bool sums_over_workers; // which waits for them, in the middle
    bool is_mixed;          // samples have two labels
};

/* Rows in the order of the parameters. */
struct cuda_weight_table {
    struct cuda_weight_row *rows;   // (count), host, owned
    struct cuda_weight_row *on_gpu; // (count), owned
    uint32_t count;
};

struct node_context {
    struct dnn_target dnn;
    cublasLtHandle_t blas;
    cudaStream_t stream;
    struct recorder *recorder; // of what streams do; borrowed
    enum cuda_type type;
    uint32_t batch;
    bool is_trained;

    // Flat vectors, as the host's.
    float *params, *grads, *statistics;
    void *weights;  // weights and biases as the libraries want them: see weights.h
    void *dweights; // gradients of weights, likewise
    size_t weight_bytes, dweight_bytes;
    struct cuda_weight_table weight_table, gradient_table;
    uint32_t gradient_first, gradient_count; // that have been computed, and are not yet copied

    void *workspace; // of the library's call that runs
    size_t workspace_bytes;
    double *parts; // of sums over rows: see kernel_norm_sums
    double *sums;  // (2C + 1)
    size_t part_bytes, sum_bytes;
    double *host_sums; // host: sums that are added up over workers

    uint32_t *labels;
    struct mixed_label *mixed;
    uint64_t *sample_keys;
    double *losses;
    uint32_t *hits;
    struct cuda_pass pass;
    uint32_t plan_count, kept_plan_count; // of cuDNN; of those, made for an earlier job
    uint32_t missed_count;                // plans with statistics that there are not
    struct conv2d *last_conv;             // that has been created: head of a list, borrowed

    // As in struct program_input.
    enum status (*sum_over_workers)(void *context, double *values, uint32_t count);
    void *sum_context;
};

enum status cuda_create_conv2d(struct node *base, struct node **ret_node);
enum status cuda_create_linear(struct node *base, struct node **ret_node);
enum status cuda_create_relu(struct node *base, struct node **ret_node);
enum status cuda_create_dropout(struct node *base, struct node **ret_node);
enum status cuda_create_add(struct node *base, struct node **ret_node);
enum status cuda_create_max_pool(struct node *base, struct node **ret_node);
enum status cuda_create_subsample(struct node *base, struct node **ret_node);
enum status cuda_create_pad(struct node *base, struct node **ret_node);
enum status cuda_create_global_pool(struct node *base, struct node **ret_node);
enum status cuda_create_batch_norm(struct node *base, struct node **ret_node);
enum status cuda_create_softmax_loss(struct node *base, struct node **ret_node);

/* STATUS_DEVICE, reported with what was attempted, unless `result` (of CUDA, or of a launch) is
 * success. */
enum status cuda_check(int result, const char *what);

/* For an add without a relu, and the normalisation that is the next node and reads its result:
 * where a pass takes statistics of whole batches, the sum is made on the way of these. The operands
 * have to be there until then. */
void cuda_leave_add(struct node *add);
void cuda_take_add(struct node *norm, const struct node *add); // borrows it

/* Whether this pass is such a one. Sums of rows leave padding out, which others may read. */
static inline bool cuda_norms_add(const struct node_context *context)
{
    return context->pass.is_training && context->pass.count == context->batch;
}

/* The gradient of a node's sum to that of `to`, one of its operands: added if there is one. */
enum status cuda_pass_on(const struct node *node, struct tensor *to, bool adds);

/* The sum of the rows of dy, (rows, K), as floats: the gradient of a bias. */
enum status cuda_sum_rows(struct node_context *context, void *dy, size_t rows, size_t outputs,
                          float *to);

/* Threads that share a channel's sums, for so many rows; notes the memory that they need. */
size_t cuda_reserve_sums(struct node_context *context, size_t rows, size_t channels);

/* Rounded up to whole units of alignment. */
static inline size_t cuda_aligned(size_t bytes)
{
    return (bytes + CUDA_ALIGNMENT - 1) / CUDA_ALIGNMENT * CUDA_ALIGNMENT;
}

static inline size_t cuda_element_bytes(const struct node_context *context)
{
    return context->type == CUDA_TYPE_BF16 ? 2 : sizeof(float);
}

/* Whether this pass has the sums of a tensor from whoever wrote it. They are of all samples, so not
 * where some are padding. */
static inline bool cuda_has_sums(const struct node_context *context, const struct tensor *tensor)
{
    return tensor->sums != NULL && context->pass.is_training &&
           context->pass.count == context->batch;
}

/* A place in `weights` for a row, whose `place` and `begin` are not read, while nodes are created,
 * in the order of the parameters: see weights.h. A forward has it filled before the node runs. */
size_t cuda_reserve_weights(struct node_context *context, const struct cuda_weight_row *row);

/* Likewise for its gradient. The result is for begin_gradient: in a backward, in the order of that,
 * where the library is to write it. It is copied to the flat vector before the unit ends. */
uint32_t cuda_reserve_gradient(struct node_context *context, const struct cuda_weight_row *row);
enum status cuda_begin_gradient(struct node_context *context, uint32_t index, void **ret_to);

static inline void *cuda_weights_at(const struct node_context *context, size_t place)
{
    return (char *)context->weights + place;
}

#endif
