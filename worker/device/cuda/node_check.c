/* Waits for a node, and names it if it has failed.
 *
 * A GPU runs what was queued long after the call that queued it. What goes wrong there is the
 * answer to a later call, of whatever operation comes then. */
#include "worker/device/cuda/node_check.h"

#include "worker/device/cuda/host/report.h"

static const char *const kind_names[] = {
    [OP_CONV2D] = "conv2d",
    [OP_LINEAR] = "linear",
    [OP_RELU] = "relu",
    [OP_MAX_POOL] = "max_pool",
    [OP_DROPOUT] = "dropout",
    [OP_BATCH_NORM] = "batch_norm",
    [OP_ADD] = "add",
    [OP_SUBSAMPLE] = "subsample",
    [OP_PAD] = "pad",
    [OP_GLOBAL_POOL] = "global_pool",
    [OP_SOFTMAX_LOSS] = "softmax_loss",
};

enum status node_check(const struct node *node, uint32_t op_index, const char *pass,
                       enum status queued)
{
    const struct node_context *context = node->context;
    const struct op *op = &node->op;
    cudaError_t error = cudaSuccess;
    if (queued == STATUS_OK) {
        error = cudaStreamSynchronize(context->stream);
    }
    if (queued == STATUS_OK && error == cudaSuccess) {
        return STATUS_OK;
    }
    report_error("the %s of operation %u failed on the GPU (%s, %ux%ux%u to %ux%ux%u, a batch of "
                 "%u): %s",
                 pass, op_index, kind_names[op->kind], op->x.channels, op->x.rows, op->x.columns,
                 op->y.channels, op->y.rows, op->y.columns, context->batch,
                 error != cudaSuccess ? cudaGetErrorString(error) : "it could not be queued");
    return queued != STATUS_OK ? queued : STATUS_DEVICE;
}
