/* A program of the oneDNN backend: a graph in memory, and its nodes run one after the other. */
#include "worker/device/cpu/program.h"

#include "common/base/log.h"
#include "common/base/memory.h"
#include "worker/device/cpu/loops.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct cpu_program {
    struct program base;
    struct node_context context;
    struct graph graph;
    char *arena;
    size_t arena_bytes;
};

static enum status (*const kinds[])(struct node *base, struct node **ret_node) = {
    [OP_CONV2D] = node_create_conv2d,
    [OP_LINEAR] = node_create_linear,
    [OP_RELU] = node_create_relu,
    [OP_MAX_POOL] = node_create_max_pool,
    [OP_DROPOUT] = node_create_dropout,
    [OP_BATCH_NORM] = node_create_batch_norm,
    [OP_ADD] = node_create_add,
    [OP_SUBSAMPLE] = node_create_subsample,
    [OP_PAD] = node_create_pad,
    [OP_GLOBAL_POOL] = node_create_global_pool,
    [OP_SOFTMAX_LOSS] = node_create_softmax_loss,
};

static void program_destroy_cpu(struct program *base)
{
    struct cpu_program *program = (struct cpu_program *)base;
    graph_destroy_nodes(&program->graph);
    memory_destroy_large(program->arena, program->arena_bytes);
    free(program);
}

/* Takes the arena of a planned graph, and places the tensors and extras in it. */
static enum status place_in_arena(struct cpu_program *program, const struct graph_memory *memory)
{
    struct node_context *context = &program->context;
    program->arena_bytes = memory->bytes + MEMORY_ALIGNMENT;
    program->arena = memory_create_large(program->arena_bytes);
    if (program->arena == NULL) {
        return STATUS_NO_MEMORY;
    }
    graph_place(&program->graph, memory, program->arena);
    context->scratch = program->arena + memory->extra_offsets[0];
    context->weights = program->arena + memory->extra_offsets[1];
    return STATUS_OK;
}

/* Places all tensors, the scratch and the weights of one convolution in the arena. */
static enum status place(struct cpu_program *program)
{
    const struct node_context *context = &program->context;
    struct graph_memory *memory = calloc(1, sizeof(*memory));
    if (memory == NULL) {
        return STATUS_NO_MEMORY;
    }
    memory->is_trained = context->grads != NULL;
    memory->element_bytes = sizeof(float);
    memory->alignment = MEMORY_ALIGNMENT;
    memory->extras[0] = context->scratch_bytes;
    memory->extras[1] = context->weight_bytes;
    memory->extra_count = 2;
    enum status status = graph_plan(&program->graph, memory);
    if (status == STATUS_OK) {
        status = place_in_arena(program, memory);
    }
    free(memory);
    return status;
}

static enum status bind(const struct graph *graph)
{
    for (uint32_t i = 0; i < graph->node_count; i++) {
        struct node *node = graph->nodes[i];
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
    program->graph.tensors[0].data = cast.out;
    for (uint32_t i = 0; i < program->graph.node_count; i++) {
        struct node *node = program->graph.nodes[i];
        enum status status = program_await_params(input, &node->op);
        if (status != STATUS_OK) {
            return status;
        }
        op_watch_note(base->watch, program->graph.node_ops[i], true);
        status = node->ops->forward(node);
        if (status != STATUS_OK) {
            return status;
        }
        op_watch_note(base->watch, program->graph.node_ops[i], false);
    }
    *ret_result = program->context.result;
    return STATUS_OK;
}

static enum status backward(struct program *base, uint32_t last_op, uint32_t first_op)
{
    struct cpu_program *program = (struct cpu_program *)base;
    for (uint32_t i = program->graph.node_count; i-- > 0;) {
        if (program->graph.node_ops[i] > last_op || program->graph.node_ops[i] < first_op) {
            continue;
        }
        op_watch_note(base->watch, program->graph.node_ops[i], true);
        enum status status = program->graph.nodes[i]->ops->backward(program->graph.nodes[i]);
        if (status != STATUS_OK) {
            return status;
        }
        const struct tensor *target = program->graph.targets[i];
        if (target != NULL) {
            loops_add(target, target->grad, program->graph.nodes[i]->x->grad,
                      program->context.threads);
        }
        op_watch_note(base->watch, program->graph.node_ops[i], false);
    }
    return STATUS_OK;
}

void cpu_program_describe(const struct program *base, char *ret_text, size_t text_size)
{
    const struct cpu_program *program = (const struct cpu_program *)base;
    const dnnl_version_t *version = dnnl_version();
    int used = snprintf(ret_text, text_size, "oneDNN %d.%d.%d, %.1f MiB planned, %u threads",
                        version->major, version->minor, version->patch,
                        (double)program->arena_bytes / (1024 * 1024), program->context.threads);
    for (uint32_t i = 0; i < program->graph.node_count; i++) {
        const struct node *node = program->graph.nodes[i];
        if (node->ops->describe != NULL && used > 0 && (size_t)used + 2 < text_size) {
            used += snprintf(ret_text + used, text_size - (size_t)used, "; ");
            node->ops->describe(node, ret_text + used, text_size - (size_t)used);
            used += (int)strlen(ret_text + used);
        }
    }
}

/* oneDNN 3 has no Winograd for x86-64, and 2 has none for every shape and machine. */
static void say_if_winograd_is_missing(const struct node_context *context)
{
    bool is_missing = context->conv == CONV_WINOGRAD && context->winograd_passes == 0;
    if (is_missing && context->grads != NULL) {
        const dnnl_version_t *version = dnnl_version();
        log_warn(
            "Winograd was asked for, but oneDNN %d.%d.%d has it for none of these convolutions "
            "on this machine: they are direct",
            version->major, version->minor, version->patch);
    }
}

static const struct program_ops program_ops = {
    .awaits_params = true,
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
    program->context = (struct node_context){
        .engine = engine,
        .stream = stream,
        .threads = threads,
        .batch = options->batch_size,
        .params = options->params,
        .grads = options->grads,
        .statistics = options->statistics,
        .conv = options->conv,
        .is_bf16 = options->precision == PRECISION_BF16,
    };
    const struct graph_options graph = {
        .ops = options->ops,
        .op_count = options->op_count,
        .batch = options->batch_size,
        .is_trained = options->grads != NULL,
        .context = &program->context,
        .kinds = kinds,
        .flatten = node_create_flatten,
    };
    enum status status = graph_build(&graph, &program->graph);
    if (status == STATUS_OK) {
        say_if_winograd_is_missing(&program->context);
        status = place(program);
    }
    if (status == STATUS_OK) {
        status = bind(&program->graph);
    }
    if (status != STATUS_OK) {
        log_error("cannot compile the model for cpu: %s", status_text(status));
        program_destroy_cpu(&program->base);
        return status;
    }
    *ret_program = &program->base;
    return STATUS_OK;
}
