/* Waits for a node, and names it if it has failed.
 *
 * A GPU runs what was queued long after the call that queued it. What goes wrong there is the
 * answer to a later call, of whatever operation comes then. */
#include "worker/device/cuda/node_check.h"

#include "worker/device/cuda/host/report.h"

enum status node_check(const struct node *node, uint32_t op_index, enum node_pass pass,
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
                 pass == NODE_FORWARD ? "forward pass" : "backward pass", op_index,
                 op_kind_name(op->kind), op->x.channels, op->x.rows, op->x.columns, op->y.channels,
                 op->y.rows, op->y.columns, context->batch,
                 error != cudaSuccess ? cudaGetErrorString(error) : "it could not be queued");
    return queued != STATUS_OK ? queued : STATUS_DEVICE;
}
