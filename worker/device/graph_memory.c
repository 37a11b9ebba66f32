/* Where the tensors of a graph lie: lifetimes, and the arena. */
#include "worker/device/graph.h"
#include "worker/device/memory_plan.h"

#include <stdlib.h>

/* The time of a node's backward. */
static uint32_t backward_time(const struct graph *graph, uint32_t node)
{
    return 2 * graph->node_count - 1 - node;
}

static void extend(struct plan_buffer *buffer, uint32_t time)
{
    buffer->last = buffer->last < time ? time : buffer->last;
}

/* The tensor that a node reads, not its stand-in. */
static const struct tensor *input_of(const struct graph *graph, uint32_t node)
{
    const struct tensor *target = graph->targets[node];
    return target != NULL ? target : graph->nodes[node]->x;
}

static size_t bytes_of(const struct tensor *tensor, const struct graph_memory *memory)
{
    size_t bytes = tensor->element_bytes > 0 ? tensor->element_bytes : memory->element_bytes;
    return tensor_count(tensor) * bytes;
}

/* Data live from their writer to their last reader; in training to the last one whose backward
 * needs them. That of max pooling does not: it keeps which elements its maxima were, and masks for
 * a relu that was part of the convolution before it, so that what lies between these two is done
 * with after the pooling. It is the largest tensor of a model more often than not. */
static void plan_data(const struct graph *graph, const struct graph_memory *memory,
                      struct plan_buffer *buffers)
{
    for (uint32_t i = 1; i < graph->tensor_count; i++) {
        const struct tensor *tensor = &graph->tensors[i];
        buffers[i] = (struct plan_buffer){
            .bytes = tensor->is_stand_in ? 0 : bytes_of(tensor, memory),
            .first = tensor->producer,
            .last = tensor->last,
        };
    }
    for (uint32_t i = 0; i < graph->node_count && memory->is_trained; i++) {
        const struct node *node = graph->nodes[i];
        if (node->keeps_x) {
            extend(&buffers[input_of(graph, i) - graph->tensors], backward_time(graph, i));
        }
        if (node->keeps_y && !node->y->is_grad_masked) {
            extend(&buffers[node->y - graph->tensors], backward_time(graph, i));
        }
    }
}

/* Whose memory a tensor's gradient has. */
static const struct tensor *owner_of_gradient(const struct tensor *tensor)
{
    while (tensor->grad_of != NULL) {
        tensor = tensor->grad_of;
    }
    return tensor;
}

/* Gradients live from the last reader's backward to the writer's. */
static void plan_gradients(const struct graph *graph, const struct graph_memory *memory,
                           struct plan_buffer *buffers)
{
    for (uint32_t i = 1; i < graph->tensor_count; i++) {
        const struct tensor *tensor = &graph->tensors[i];
        struct plan_buffer *buffer = &buffers[owner_of_gradient(tensor) - graph->tensors];
        if (buffer->bytes == 0) {
            buffer->first = backward_time(graph, tensor->last);
            buffer->bytes = bytes_of(tensor, memory);
        }
        uint32_t first = backward_time(graph, tensor->last);
        buffer->first = buffer->first > first ? first : buffer->first;
        extend(buffer, backward_time(graph, tensor->producer));
    }
    for (uint32_t i = 0; i < graph->node_count; i++) {
        if (graph->targets[i] != NULL) {
            struct plan_buffer *buffer = &buffers[graph->nodes[i]->x - graph->tensors];
            buffer->first = buffer->last = backward_time(graph, i);
        }
    }
}

enum status graph_plan(const struct graph *graph, struct graph_memory *memory)
{
    uint32_t count = graph->tensor_count, extras = 2 * count;
    struct plan_buffer *buffers = calloc(extras + memory->extra_count, sizeof(*buffers));
    if (buffers == NULL) {
        return STATUS_NO_MEMORY;
    }
    plan_data(graph, memory, buffers);
    if (memory->is_trained) {
        plan_gradients(graph, memory, buffers + count);
    }
    for (uint32_t i = 0; i < memory->extra_count; i++) {
        buffers[extras + i] =
            (struct plan_buffer){.bytes = memory->extras[i], .last = 2 * graph->node_count};
    }
    memory->bytes = memory_plan(buffers, extras + memory->extra_count, memory->alignment);
    for (uint32_t i = 0; i < count; i++) {
        size_t owner = (size_t)(owner_of_gradient(&graph->tensors[i]) - graph->tensors);
        memory->data[i] = buffers[i].offset;
        memory->grad[i] = buffers[count + owner].offset;
    }
    for (uint32_t i = 0; i < memory->extra_count; i++) {
        memory->extra_offsets[i] = buffers[extras + i].offset;
    }
    free(buffers);
    return STATUS_OK;
}

void graph_place(struct graph *graph, const struct graph_memory *memory, void *arena)
{
    char *bytes = arena;
    for (uint32_t i = 1; i < graph->tensor_count; i++) {
        graph->tensors[i].data = (void *)(bytes + memory->data[i]);
        graph->tensors[i].grad = memory->is_trained ? (void *)(bytes + memory->grad[i]) : NULL;
    }
    for (uint32_t i = 0; i < graph->node_count; i++) {
        if (graph->targets[i] != NULL) {
            graph->nodes[i]->x->data = graph->targets[i]->data;
        }
    }
}
