/* Turns operations into nodes, plans memory, runs them.
 *
 * Operations form a chain (device_compile has checked). On the way:
 *     a relu behind a convolution or a linear layer becomes part of that node
 *     other relus, and dropout, work in place
 *     a linear layer behind blocked channels gets a flatten node before it */
#include "worker/device/cpu/program.h"

#include "common/log.h"
#include "common/memory.h"
#include "worker/device/cpu/memory_plan.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NODES_MAX   (2 * DEVICE_OPS_MAX)
#define TENSORS_MAX (NODES_MAX + 1)

struct cpu_program {
    struct program base;
    struct cpu_context context;
    struct node *nodes[NODES_MAX];
    uint32_t node_ops[NODES_MAX]; // the operation that each node belongs to
    uint32_t node_count;
    struct cpu_tensor tensors[TENSORS_MAX]; // 0: the pixels
    uint32_t tensor_count;
    char *arena;
    size_t arena_bytes;
};

static enum status (*const creators[])(struct node *base, struct node **ret_node) = {
    [OP_CONV2D] = node_create_conv2d,   [OP_LINEAR] = node_create_linear,
    [OP_RELU] = node_create_relu,       [OP_MAX_POOL] = node_create_max_pool,
    [OP_DROPOUT] = node_create_dropout, [OP_SOFTMAX_LOSS] = node_create_softmax_loss,
};

static void program_destroy_cpu(struct program *base)
{
    struct cpu_program *program = (struct cpu_program *)base;
    for (uint32_t i = 0; i < program->node_count; i++) {
        program->nodes[i]->ops->destroy(program->nodes[i]);
    }
    memory_destroy_large(program->arena, program->arena_bytes);
    free(program);
}

static struct cpu_tensor *add_tensor(struct cpu_program *program, struct shape shape)
{
    assert(program->tensor_count < TENSORS_MAX);
    struct cpu_tensor *tensor = &program->tensors[program->tensor_count++];
    *tensor = (struct cpu_tensor){.shape = shape, .batch = program->context.batch, .block = 1};
    return tensor;
}

/* Adds a node that reads x and writes y. */
static enum status add_node(struct cpu_program *program, uint32_t op_index, const struct node *base,
                            enum status (*create)(struct node *base, struct node **ret_node))
{
    struct node node = *base;
    node.context = &program->context;
    uint32_t index = program->node_count;
    assert(index < NODES_MAX);
    if (base->x != base->y) {
        base->y->producer = index;
    }
    base->x->last = base->y->last = index;
    enum status status = create(&node, &program->nodes[index]);
    if (status == STATUS_OK) {
        program->node_ops[index] = op_index;
        program->node_count++;
    }
    return status;
}

/* A linear layer reads channels that are not in blocks. */
static enum status add_flatten(struct cpu_program *program, uint32_t op_index,
                               struct cpu_tensor **x)
{
    struct node node = {.x = *x, .y = add_tensor(program, (*x)->shape)};
    *x = node.y;
    return add_node(program, op_index, &node, node_create_flatten);
}

static bool takes_relu(const struct program_options *options, uint32_t index)
{
    enum op_kind kind = options->ops[index].kind;
    return (kind == OP_CONV2D || kind == OP_LINEAR) && index + 1 < options->op_count &&
           options->ops[index + 1].kind == OP_RELU;
}

static enum status add_operation(struct cpu_program *program, const struct program_options *options,
                                 uint32_t index, struct cpu_tensor **x)
{
    const struct op *op = &options->ops[index];
    if (op->kind == OP_RELU && index > 0 && takes_relu(options, index - 1)) {
        return STATUS_OK;
    }
    if (op->kind == OP_LINEAR && (*x)->block != 1) {
        enum status status = add_flatten(program, index, x);
        if (status != STATUS_OK) {
            return status;
        }
    }
    bool is_in_place =
        (op->kind == OP_RELU || op->kind == OP_DROPOUT || op->kind == OP_SOFTMAX_LOSS) &&
        !(*x)->is_pixels;
    struct node node = {.op = *op, .x = *x, .y = *x, .has_relu = takes_relu(options, index)};
    if (!is_in_place) {
        node.y = add_tensor(program, op->y);
        node.y->is_rectified = node.has_relu;
    }
    *x = node.y;
    return add_node(program, index, &node, creators[op->kind]);
}

/* The time of a node's backward. */
static uint32_t backward_time(const struct cpu_program *program, uint32_t node)
{
    return 2 * program->node_count - 1 - node;
}

/* When the data of a tensor are used for the last time. In general backward needs them, that of the
 * reader and that of the writer. But max pooling keeps which elements its maxima were, and masks
 * for a relu that was part of a convolution: what lies between these two is done with after the
 * pooling. It is the largest tensor of a model more often than not. */
static uint32_t data_last(const struct cpu_program *program, const struct cpu_tensor *tensor,
                          bool is_trained)
{
    const struct node *writer = program->nodes[tensor->producer];
    const struct node *reader = program->nodes[tensor->last];
    bool is_between_two = tensor->last == tensor->producer + 1;
    bool is_masked = !writer->has_relu || tensor->is_grad_masked;
    if (!is_trained || (is_between_two && is_masked && writer->op.kind == OP_CONV2D &&
                        reader->op.kind == OP_MAX_POOL)) {
        return tensor->last;
    }
    return backward_time(program, tensor->producer);
}

/* Places all tensors, and the scratch, in the arena. */
static enum status plan(struct cpu_program *program, bool is_trained)
{
    static struct plan_buffer buffers[2 * TENSORS_MAX + 1];
    uint32_t count = 0;
    for (uint32_t i = 1; i < program->tensor_count; i++) {
        const struct cpu_tensor *tensor = &program->tensors[i];
        size_t bytes = cpu_tensor_count(tensor) * sizeof(float);
        buffers[count++] = (struct plan_buffer){
            .bytes = bytes,
            .first = tensor->producer,
            .last = data_last(program, tensor, is_trained),
        };
        buffers[count++] = (struct plan_buffer){
            .bytes = is_trained ? bytes : 0,
            .first = backward_time(program, tensor->last),
            .last = backward_time(program, tensor->producer),
        };
    }
    buffers[count++] = (struct plan_buffer){.bytes = program->context.scratch_bytes,
                                            .last = 2 * program->node_count};
    program->arena_bytes = memory_plan(buffers, count) + MEMORY_ALIGNMENT;
    program->arena = memory_create_large(program->arena_bytes);
    if (program->arena == NULL) {
        return STATUS_NO_MEMORY;
    }
    for (uint32_t i = 1; i < program->tensor_count; i++) {
        const struct plan_buffer *data = &buffers[2 * (size_t)(i - 1)], *grad = data + 1;
        program->tensors[i].data = (float *)(void *)(program->arena + data->offset);
        if (is_trained) {
            program->tensors[i].grad = (float *)(void *)(program->arena + grad->offset);
        }
    }
    program->context.scratch = program->arena + buffers[count - 1].offset;
    return STATUS_OK;
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
        .conv = options->conv,
    };
    struct cpu_tensor *x = add_tensor(program, options->ops[0].x);
    x->is_pixels = true;
    enum status status = STATUS_OK;
    for (uint32_t i = 0; i < options->op_count && status == STATUS_OK; i++) {
        status = add_operation(program, options, i, &x);
    }
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
