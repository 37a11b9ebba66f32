/* Linear layers, by oneDNN's matrix product on the flat vectors as they are: weights are never
 * copied into another layout, gradients are written where they belong. x is plain. */
#include "worker/device/cpu/elementwise.h"
#include "worker/device/cpu/node.h"
#include "worker/device/cpu/onednn.h"

#include <assert.h>

struct sizes {
    dnnl_dim_t samples, inputs, outputs;
};

static struct sizes sizes_of(const struct node *node)
{
    const struct shape *x = &node->op.x;
    return (struct sizes){
        .samples = node->x->batch,
        .inputs = (dnnl_dim_t)x->channels * x->rows * x->columns,
        .outputs = node->op.y.channels,
    };
}

static enum status linear_forward(struct node *node)
{
    struct sizes n = sizes_of(node);
    const float *weight = node->context->params + node->op.weight;
    enum status status =
        onednn_status(dnnl_sgemm('N', 'T', n.samples, n.outputs, n.inputs, 1.0f, node->x->data,
                                 n.inputs, weight, n.inputs, 0.0f, node->y->data, n.outputs),
                      "multiply matrices");
    if (status == STATUS_OK) {
        elementwise_add_bias(node->y->data, node->context->params + node->op.bias,
                             (size_t)n.samples, (size_t)n.outputs, node->has_relu);
    }
    return status;
}

static enum status linear_backward(struct node *node)
{
    struct sizes n = sizes_of(node);
    const struct node_context *context = node->context;
    float *dy = node->y->grad;
    if (node->has_relu && !node->y->is_grad_masked) {
        elementwise_mask_positive(dy, node->y->data, tensor_count(node->y), 1);
    }
    elementwise_sum_rows(dy, context->grads + node->op.bias, (size_t)n.samples, (size_t)n.outputs);
    enum status status = onednn_status(dnnl_sgemm('T', 'N', n.outputs, n.inputs, n.samples, 1.0f,
                                                  dy, n.outputs, node->x->data, n.inputs, 0.0f,
                                                  context->grads + node->op.weight, n.inputs),
                                       "multiply matrices");
    if (status != STATUS_OK || node->x->is_pixels) {
        return status;
    }
    return onednn_status(dnnl_sgemm('N', 'N', n.samples, n.inputs, n.outputs, 1.0f, dy, n.outputs,
                                    context->params + node->op.weight, n.inputs, 0.0f,
                                    node->x->grad, n.inputs),
                         "multiply matrices");
}

static const struct node_ops linear_ops = {
    .forward = linear_forward,
    .backward = linear_backward,
    .destroy = node_destroy_plain,
};

enum status node_create_linear(struct node *base, struct node **ret_node)
{
    assert(base->x->block == 1);
    base->y->block = 1;
    base->keeps_x = true;
    base->keeps_y = base->has_relu;
    return node_create_plain(base, &linear_ops, ret_node);
}
