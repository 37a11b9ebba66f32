/* Softmax and cross-entropy, a thread for each sample. The losses of samples are added up on the
 * host, in their order: see program.c. */
#include "worker/device/cuda/context.h"

#include <stdlib.h>

struct softmax_loss {
    struct node base;
    float *probabilities; // (N, classes), device memory, owned
};

static enum status loss_bind(struct node *node)
{
    struct softmax_loss *loss = (struct softmax_loss *)node;
    size_t count = (size_t)node->context->batch * node->op.x.channels;
    return cuda_check((int)cudaMalloc((void **)&loss->probabilities, count * sizeof(float)),
                      "get memory for probabilities");
}

static struct cuda_loss shape_of(const struct node *node)
{
    const struct cuda_pass *pass = &node->context->pass;
    return (struct cuda_loss){.classes = node->op.x.channels,
                              .count = pass->count,
                              .gradient_scale = pass->gradient_scale,
                              .is_mixed = pass->is_mixed};
}

static enum status loss_forward(struct node *node)
{
    const struct node_context *context = node->context;
    const struct cuda_loss shape = shape_of(node);
    return cuda_check(kernel_loss(context->type, &shape, node->x->data, context->labels,
                                  context->mixed, ((struct softmax_loss *)node)->probabilities,
                                  context->losses, context->hits, context->batch, context->stream),
                      "compute the loss");
}

static enum status loss_backward(struct node *node)
{
    const struct node_context *context = node->context;
    const struct cuda_loss shape = shape_of(node);
    if (node->x->is_pixels) {
        return STATUS_OK;
    }
    return cuda_check(kernel_loss_back(context->type, &shape,
                                       ((struct softmax_loss *)node)->probabilities,
                                       context->labels, context->mixed, node->x->grad,
                                       (size_t)context->batch * shape.classes, context->stream),
                      "compute the gradient of the loss");
}

static void loss_destroy(struct node *node)
{
    cudaFree(((struct softmax_loss *)node)->probabilities);
    free(node);
}

static const struct node_ops loss_ops = {
    .bind = loss_bind,
    .forward = loss_forward,
    .backward = loss_backward,
    .destroy = loss_destroy,
};

enum status cuda_create_softmax_loss(struct node *base, struct node **ret_node)
{
    struct softmax_loss *loss = calloc(1, sizeof(*loss));
    if (loss == NULL) {
        return STATUS_NO_MEMORY;
    }
    loss->base = *base;
    loss->base.ops = &loss_ops;
    *ret_node = &loss->base;
    return STATUS_OK;
}
