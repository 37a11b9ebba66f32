/* Places the tensors of a program in memory, and runs its nodes. */
#include "worker/device/cpu/program.h"

#include "common/log.h"
#include "common/memory.h"
#include "worker/device/cpu/elementwise.h"
#include "worker/device/cpu/memory_plan.h"
#include "worker/device/cpu/program_state.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void program_destroy_cpu(struct program *base)
{
    struct cpu_program *program = (struct cpu_program *)base;
    for (uint32_t i = 0; i < program->node_count; i++) {
        program->nodes[i]->ops->destroy(program->nodes[i]);
    }
    memory_destroy_large(program->arena, program->arena_bytes);
    free(program);
}

/* The time of a node's backward. */
static uint32_t backward_time(const struct cpu_program *program, uint32_t node)
{
    return 2 * program->node_count - 1 - node;
}

static void extend(struct plan_buffer *buffer, uint32_t time)
{
    buffer->last = buffer->last < time ? time : buffer->last;
}

/* The tensor that a node reads, not its stand-in. */
static const struct cpu_tensor *input_of(const struct cpu_program *program, uint32_t node)
{
    const struct cpu_tensor *target = program->targets[node];
    return target != NULL ? target : program->nodes[node]->x;
}

/* Data live from their writer to their last reader; in training to the last one whose backward
 * needs them. That of max pooling does not: it keeps which elements its maxima were, and masks for
 * a relu that was part of the convolution before it, so that what lies between these two is done
 * with after the pooling. It is the largest tensor of a model more often than not. */
static void plan_data(const struct cpu_program *program, bool is_trained,
                      struct plan_buffer *buffers)
{
    for (uint32_t i = 1; i < program->tensor_count; i++) {
        const struct cpu_tensor *tensor = &program->tensors[i];
        buffers[i] = (struct plan_buffer){
            .bytes = tensor->is_stand_in ? 0 : cpu_tensor_count(tensor) * sizeof(float),
            .first = tensor->producer,
            .last = tensor->last,
        };
    }
    for (uint32_t i = 0; i < program->node_count && is_trained; i++) {
        const struct node *node = program->nodes[i];
        if (node->keeps_x) {
            extend(&buffers[input_of(program, i) - program->tensors], backward_time(program, i));
        }
        if (node->keeps_y && !node->y->is_grad_masked) {
            extend(&buffers[node->y - program->tensors], backward_time(program, i));
        }
    }
}

/* Whose memory a tensor's gradient has. */
static struct cpu_tensor *owner_of_gradient(struct cpu_tensor *tensor)
{
    while (tensor->grad_of != NULL) {
        tensor = tensor->grad_of;
    }
    return tensor;
}

/* Gradients live from the last reader's backward to the writer's. */
static void plan_gradients(struct cpu_program *program, struct plan_buffer *buffers)
{
    for (uint32_t i = 1; i < program->tensor_count; i++) {
        struct cpu_tensor *tensor = &program->tensors[i];
        struct plan_buffer *buffer = &buffers[owner_of_gradient(tensor) - program->tensors];
        if (buffer->bytes == 0) {
            buffer->first = backward_time(program, tensor->last);
            buffer->bytes = cpu_tensor_count(tensor) * sizeof(float);
        }
        uint32_t first = backward_time(program, tensor->last);
        buffer->first = buffer->first > first ? first : buffer->first;
        extend(buffer, backward_time(program, tensor->producer));
    }
    for (uint32_t i = 0; i < program->node_count; i++) {
        if (program->targets[i] != NULL) {
            struct plan_buffer *buffer = &buffers[program->nodes[i]->x - program->tensors];
            buffer->first = buffer->last = backward_time(program, i);
        }
    }
}

static void place_tensors(struct cpu_program *program, bool is_trained,
                          const struct plan_buffer *buffers)
{
    uint32_t count = program->tensor_count;
    for (uint32_t i = 1; i < count; i++) {
        struct cpu_tensor *tensor = &program->tensors[i];
        tensor->data = (float *)(void *)(program->arena + buffers[i].offset);
        if (is_trained) {
            size_t owner = (size_t)(owner_of_gradient(tensor) - program->tensors);
            tensor->grad = (float *)(void *)(program->arena + buffers[count + owner].offset);
        }
    }
    for (uint32_t i = 0; i < program->node_count; i++) {
        if (program->targets[i] != NULL) {
            program->nodes[i]->x->data = program->targets[i]->data;
        }
    }
    program->context.scratch = program->arena + buffers[0].offset;
    program->context.weights = program->arena + buffers[2 * count].offset;
}

/* Places all tensors, the scratch and the weights of one convolution in the arena. */
static enum status plan(struct cpu_program *program, bool is_trained)
{
    uint32_t count = program->tensor_count;
    struct plan_buffer *buffers = calloc(2 * (size_t)count + 1, sizeof(*buffers));
    if (buffers == NULL) {
        return STATUS_NO_MEMORY;
    }
    // The pixels have no memory here; their place is that of the scratch.
    plan_data(program, is_trained, buffers);
    uint32_t end = 2 * program->node_count;
    buffers[0] = (struct plan_buffer){.bytes = program->context.scratch_bytes, .last = end};
    buffers[2 * count] = (struct plan_buffer){.bytes = program->context.weight_bytes, .last = end};
    if (is_trained) {
        plan_gradients(program, buffers + count);
    }
    program->arena_bytes = memory_plan(buffers, 2 * count + 1) + MEMORY_ALIGNMENT;
    program->arena = memory_create_large(program->arena_bytes);
    if (program->arena != NULL) {
        place_tensors(program, is_trained, buffers);
    }
    free(buffers);
    return program->arena != NULL ? STATUS_OK : STATUS_NO_MEMORY;
}

static enum status bind(struct cpu_program *program)
{
    for (uint32_t i = 0; i < program->node_count; i++) {
        struct node *node = program->nodes[i];
        enum status status = node->ops->bind != NULL ? node->ops->bind(node) : STATUS_OK;
        if (status != STATUS_OK) {
            return status;
        }
    }
    return STATUS_OK;
}

static enum status forward(struct program *base, const struct program_input *input,
                           struct program_result *ret_result)
{
    struct cpu_program *program = (struct cpu_program *)base;
    program->context.input = input;
    // The pixels are read only: they have no gradient, and no node works on them in place.
    union {
        const float *in;
        float *out;
    } cast = {.in = input->pixels};
    program->tensors[0].data = cast.out;
    for (uint32_t i = 0; i < program->node_count; i++) {
        enum status status = program->nodes[i]->ops->forward(program->nodes[i]);
        if (status != STATUS_OK) {
            return status;
        }
    }
    *ret_result = program->context.result;
    return STATUS_OK;
}

static enum status backward(struct program *base, uint32_t last_op, uint32_t first_op)
{
    struct cpu_program *program = (struct cpu_program *)base;
    for (uint32_t i = program->node_count; i-- > 0;) {
        if (program->node_ops[i] > last_op || program->node_ops[i] < first_op) {
            continue;
        }
        enum status status = program->nodes[i]->ops->backward(program->nodes[i]);
        if (status != STATUS_OK) {
            return status;
        }
        const struct cpu_tensor *target = program->targets[i];
        if (target != NULL) {
            elementwise_add(target->grad, program->nodes[i]->x->grad, cpu_tensor_count(target),
                            program->context.threads);
        }
    }
    return STATUS_OK;
}

void cpu_program_describe(const struct program *base, char *ret_text, size_t text_size)
{
    const struct cpu_program *program = (const struct cpu_program *)base;
    int used = snprintf(ret_text, text_size, "%.1f MiB planned, %u threads",
                        (double)program->arena_bytes / (1024 * 1024), program->context.threads);
    for (uint32_t i = 0; i < program->node_count; i++) {
        const struct node *node = program->nodes[i];
        if (node->ops->describe != NULL && used > 0 && (size_t)used + 2 < text_size) {
            used += snprintf(ret_text + used, text_size - (size_t)used, "; ");
            node->ops->describe(node, ret_text + used, text_size - (size_t)used);
            used += (int)strlen(ret_text + used);
        }
    }
}

static const struct program_ops program_ops = {
    .forward = forward,
    .backward = backward,
    .destroy = program_destroy_cpu,
};

enum status cpu_program_create(const struct program_options *options, dnnl_engine_t engine,
                               dnnl_stream_t stream, uint32_t threads, struct program **ret_program)
{
    struct cpu_program *program = calloc(1, sizeof(*program));
    if (program == NULL) {
        return STATUS_NO_MEMORY;
    }
    program->base.ops = &program_ops;
    program->context = (struct cpu_context){
        .engine = engine,
        .stream = stream,
        .threads = threads,
        .batch = options->batch_size,
        .params = options->params,
        .grads = options->grads,
        .statistics = options->statistics,
        .conv = options->conv,
    };
    enum status status = cpu_graph_build(program, options);
    if (status == STATUS_OK) {
        status = plan(program, options->grads != NULL);
    }
    if (status == STATUS_OK) {
        status = bind(program);
    }
    if (status != STATUS_OK) {
        log_error("cannot compile the model for cpu: %s", status_text(status));
        program_destroy_cpu(&program->base);
        return status;
    }
    *ret_program = &program->base;
    return STATUS_OK;
}
