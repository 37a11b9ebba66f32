/* Places a graph in the GPU's memory. What it does there is in passes.c. */
#include "worker/device/cuda/program.h"

#include "worker/device/cuda/host/report.h"
#include "worker/device/cuda/memory/memory_handle.h"
#include "worker/device/cuda/program_state.h"
#include "worker/device/cuda/weights.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Buffers of a graph's arena that live all the time.
enum extra { EXTRA_WORKSPACE, EXTRA_DWEIGHTS, EXTRA_PARTS, EXTRA_SUMS, EXTRA_COUNT };

static enum status (*const kinds[])(struct node *base, struct node **ret_node) = {
    [OP_CONV2D] = cuda_create_conv2d,
    [OP_LINEAR] = cuda_create_linear,
    [OP_RELU] = cuda_create_relu,
    [OP_MAX_POOL] = cuda_create_max_pool,
    [OP_DROPOUT] = cuda_create_dropout,
    [OP_BATCH_NORM] = cuda_create_batch_norm,
    [OP_ADD] = cuda_create_add,
    [OP_SUBSAMPLE] = cuda_create_subsample,
    [OP_PAD] = cuda_create_pad,
    [OP_GLOBAL_POOL] = cuda_create_global_pool,
    [OP_SOFTMAX_LOSS] = cuda_create_softmax_loss,
};

void cuda_program_destroy(struct program *base)
{
    struct cuda_program *program = (struct cuda_program *)base;
    collective_stop(&program->collective); // by then all workers have what they need
    cuda_program_ops.part(base);
    collective_finish(&program->collective);
    cudaStreamSynchronize(program->context.stream);
    replay_finish(&program->replay);
    node_times_finish(&program->times);
    recorder_finish(&program->recorder);
    input_finish(&program->input);
    transfer_finish(&program->transfer);
    updates_finish(&program->updates);
    graph_destroy_nodes(&program->graph);
    weights_finish(&program->context);
    if (program->result_is_there != NULL) {
        cudaEventDestroy(program->result_is_there);
    }
    cudaFree(program->arena);
    cudaFree(program->vectors);
    cudaFreeHost(program->losses);
    cudaFreeHost(program->hits);
    cudaFreeHost(program->context.host_sums);
    free(program);
}

/* ==========================================================================================
 * Memory
 * ========================================================================================== */

static size_t element_count(struct shape shape)
{
    return (size_t)shape.channels * shape.rows * shape.columns;
}

/* Lengths of the flat vectors: up to the end of the last tensor. */
static void measure_vectors(struct cuda_program *program, const struct program_options *options)
{
    for (uint32_t i = 0; i < options->op_count; i++) {
        const struct op *op = &options->ops[i];
        size_t end = op->weight + cuda_param_count(op);
        program->value_count = program->value_count < end ? end : program->value_count;
        if (op->kind == OP_BATCH_NORM) {
            program->statistic_count = op->statistics + 2 * (size_t)op->x.channels;
        }
    }
    program->kept_count = options->kept_count;
    program->kept_stride = cuda_aligned(program->value_count * sizeof(float)) / sizeof(float);
    program->pixel_count = options->batch_size * element_count(options->ops[0].x);
    program->input_bytes = input_bytes(options);
}

/* A part of the block of vectors, or, without a block, only its size. */
static void *take(struct cuda_program *program, size_t bytes)
{
    size_t begin = program->vector_bytes;
    program->vector_bytes = begin + cuda_aligned(bytes);
    return program->vectors != NULL ? (char *)program->vectors + begin : NULL;
}

static void lay_out_vectors(struct cuda_program *program)
{
    struct node_context *context = &program->context;
    program->vector_bytes = 0;
    context->params = take(program, program->value_count * sizeof(float));
    context->grads = take(program, context->is_trained ? program->value_count * sizeof(float) : 0);
    program->kept = take(program, program->kept_count * program->kept_stride * sizeof(float));
    context->statistics = take(program, program->statistic_count * sizeof(float));
    context->weights = take(program, context->weight_bytes);
    context->labels = take(program, context->batch * sizeof(uint32_t));
    context->mixed = take(program, context->batch * sizeof(struct mixed_label));
    context->sample_keys = take(program, context->batch * sizeof(uint64_t));
    context->losses = take(program, context->batch * sizeof(double));
    context->hits = take(program, context->batch * sizeof(uint32_t));
    for (uint32_t i = 0; i < INPUT_BUFFERS; i++) {
        program->input.buffers[i].values = take(program, program->input_bytes);
    }
    program->graph.tensors[0].data =
        take(program, program->pixel_count * cuda_element_bytes(context));
    program->vector_bytes = memory_handle_whole(program->vector_bytes); // others map it
}

/* How large a batch fits, if memory grows with it. */
static void report_too_large(const struct cuda_program *program)
{
    size_t free_bytes = 0, all_bytes = 0, asked = program->arena_bytes + program->vector_bytes;
    cudaMemGetInfo(&free_bytes, &all_bytes);
    size_t fixed = ((2 + program->kept_count) * program->value_count) * sizeof(float) +
                   program->context.weight_bytes + program->context.dweight_bytes +
                   program->context.workspace_bytes;
    size_t sample = asked > fixed ? (asked - fixed) / program->context.batch : 1;
    size_t fitting = free_bytes > fixed && sample > 0 ? (free_bytes - fixed) / sample : 0;
    report_error("the GPU has %zu MiB free of %zu, and a batch of %u asks for %zu MiB of tensors "
                 "and %zu MiB of parameters and inputs: about %zu images a batch would fit",
                 free_bytes >> 20, all_bytes >> 20, program->context.batch,
                 program->arena_bytes >> 20, program->vector_bytes >> 20, fitting);
}

static enum status get_memory(struct cuda_program *program)
{
    struct node_context *context = &program->context;
    int result = (int)cudaMalloc(&program->arena, program->arena_bytes);
    if (result == 0) {
        result = (int)cudaMalloc(&program->vectors, program->vector_bytes);
    }
    if (result == (int)cudaErrorMemoryAllocation) {
        (void)cudaGetLastError(); // it has been dealt with
        report_too_large(program);
        return STATUS_NO_MEMORY;
    }
    if (result == 0) {
        result = (int)cudaMallocHost((void **)&program->losses, context->batch * sizeof(double));
    }
    if (result == 0) {
        result = (int)cudaMallocHost((void **)&program->hits, context->batch * sizeof(uint32_t));
    }
    if (result == 0) {
        result = (int)cudaMallocHost((void **)&context->host_sums, context->sum_bytes);
    }
    if (result == 0) {
        result = (int)cudaEventCreateWithFlags(&program->result_is_there, cudaEventDisableTiming);
    }
    return cuda_check(result, "get memory");
}

static enum status plan_memory(struct cuda_program *program, struct graph_memory *memory)
{
    const struct node_context *context = &program->context;
    memory->is_trained = context->is_trained;
    memory->alignment = CUDA_ALIGNMENT;
    memory->element_bytes = cuda_element_bytes(context);
    memory->extras[EXTRA_WORKSPACE] = context->workspace_bytes;
    memory->extras[EXTRA_DWEIGHTS] = context->dweight_bytes;
    memory->extras[EXTRA_PARTS] = context->part_bytes;
    memory->extras[EXTRA_SUMS] = context->sum_bytes;
    memory->extra_count = EXTRA_COUNT;
    enum status status = graph_plan(&program->graph, memory);
    program->arena_bytes = memory->bytes;
    lay_out_vectors(program);
    return status;
}

static enum status take_memory(struct cuda_program *program)
{
    struct node_context *context = &program->context;
    struct graph_memory *memory = calloc(1, sizeof(*memory));
    if (memory == NULL) {
        return STATUS_NO_MEMORY;
    }
    enum status status = plan_memory(program, memory);
    if (status == STATUS_OK) {
        status = get_memory(program);
    }
    if (status == STATUS_OK) {
        char *arena = program->arena;
        graph_place(&program->graph, memory, arena);
        context->workspace = arena + memory->extra_offsets[EXTRA_WORKSPACE];
        context->dweights = arena + memory->extra_offsets[EXTRA_DWEIGHTS];
        context->parts = (void *)(arena + memory->extra_offsets[EXTRA_PARTS]);
        context->sums = (void *)(arena + memory->extra_offsets[EXTRA_SUMS]);
        lay_out_vectors(program);
    }
    free(memory);
    return status;
}

/* Appends to a text of `used` characters, as far as there is room. */
__attribute__((format(printf, 4, 5))) static void append(char *text, size_t text_size, size_t *used,
                                                         const char *format, ...)
{
    va_list values;
    va_start(values, format);
    if (*used < text_size) {
        vsnprintf(text + *used, text_size - *used, format, values);
        *used += strlen(text + *used);
    }
    va_end(values);
}

uint64_t cuda_program_memory(const struct program *base)
{
    const struct cuda_program *program = (const struct cuda_program *)base;
    return program->arena_bytes + program->vector_bytes + program->updates.bytes;
}

void cuda_program_describe(const struct program *base, char *ret_text, size_t text_size)
{
    const struct cuda_program *program = (const struct cuda_program *)base;
    const struct node_context *context = &program->context;
    char part[256];
    size_t used = 0;
    append(ret_text, text_size, &used, "%.1f MiB on the GPU",
           (double)cuda_program_memory(base) / (1024 * 1024));
    if (replay_describe(&program->replay, part, sizeof(part))) {
        append(ret_text, text_size, &used, "; %s", part);
    }
    if (context->plan_count > 0) {
        append(ret_text, text_size, &used, "; %u of %u plans kept from earlier jobs",
               context->kept_plan_count, context->plan_count);
    }
    for (uint32_t i = 0; i < program->graph.node_count; i++) {
        const struct node *node = program->graph.nodes[i];
        if (node->ops->describe != NULL) {
            node->ops->describe(node, part, sizeof(part));
            append(ret_text, text_size, &used, "; %s", part);
        }
    }
}

static void extend(struct tensor *tensor, uint32_t node)
{
    tensor->last = tensor->last < node ? node : tensor->last;
}

/* Has normalisations make the sums of adds that are right before them. */
static void move_adds(const struct graph *graph)
{
    for (uint32_t i = 0; i + 1 < graph->node_count; i++) {
        struct node *add = graph->nodes[i], *norm = graph->nodes[i + 1];
        if (add->op.kind == OP_ADD && !add->has_relu && norm->op.kind == OP_BATCH_NORM &&
            norm->x == add->y) {
            cuda_leave_add(add);
            cuda_take_add(norm, add);
            extend(add->x, i + 1);
            extend(add->other, i + 1);
        }
    }
}

/* Everything but memory. */
static enum status build(struct cuda_program *program, const struct program_options *options,
                         const struct dnn_target *dnn)
{
    program->base.ops = &cuda_program_ops;
    program->op_count = options->op_count;
    struct node_context *context = &program->context;
    context->recorder = &program->recorder;
    context->dnn = *dnn;
    context->dnn.precision = options->precision;
    context->type = options->precision == PRECISION_BF16 ? CUDA_TYPE_BF16 : CUDA_TYPE_FLOAT;
    context->batch = options->batch_size;
    context->is_trained = options->grads != NULL;
    context->weight_table.rows =
        calloc(2 * (size_t)options->op_count, sizeof(struct cuda_weight_row));
    context->gradient_table.rows = calloc(options->op_count, sizeof(struct cuda_weight_row));
    if (context->weight_table.rows == NULL || context->gradient_table.rows == NULL) {
        return STATUS_NO_MEMORY;
    }
    measure_vectors(program, options);
    const struct graph_options graph = {
        .ops = options->ops,
        .op_count = options->op_count,
        .batch = options->batch_size,
        .is_trained = context->is_trained,
        .context = context,
        .kinds = kinds,
    };
    enum status status = graph_build(&graph, &program->graph);
    if (status == STATUS_OK) {
        move_adds(&program->graph);
        weights_place(context);
    }
    return status;
}

static enum status bind(const struct graph *graph)
{
    enum status status = STATUS_OK;
    for (uint32_t i = 0; i < graph->node_count && status == STATUS_OK; i++) {
        struct node *node = graph->nodes[i];
        status = node->ops->bind != NULL ? node->ops->bind(node) : STATUS_OK;
    }
    return status;
}

static enum status create_parts(struct cuda_program *program, const struct program_options *options,
                                const struct cuda_place *place)
{
    enum status status = build(program, options, place->dnn);
    if (status != STATUS_OK) {
        return status;
    }
    status = take_memory(program);
    if (status != STATUS_OK) {
        return status;
    }
    status = transfer_init(&program->transfer, &program->context, options, program->value_count,
                           program->statistic_count);
    if (status != STATUS_OK) {
        return status;
    }
    status = input_init(&program->input, &program->context, options);
    if (status != STATUS_OK) {
        return status;
    }
    status = weights_bind(&program->context);
    if (status != STATUS_OK) {
        return status;
    }
    status = bind(&program->graph);
    if (status == STATUS_OK && place->times_nodes) {
        status = node_times_init(&program->times, program->graph.node_count);
    }
    bool is_watched = place->checks_nodes || place->times_nodes;
    if (status != STATUS_OK || !place->replays_launches || is_watched) {
        return status;
    }
    return replay_init(&program->replay, place->stream, cuda_unit_count(program));
}

enum status cuda_program_create(const struct program_options *options,
                                const struct cuda_place *place, struct program **ret_program)
{
    struct cuda_program *program = calloc(1, sizeof(*program));
    if (program == NULL) {
        return STATUS_NO_MEMORY;
    }
    program->context.blas = place->blas;
    program->context.stream = place->stream;
    collective_init(&program->collective);
    program->checks_nodes = place->checks_nodes;
    enum status status = create_parts(program, options, place);
    if (status != STATUS_OK) {
        cuda_program_destroy(&program->base);
        return status;
    }
    *ret_program = &program->base;
    return STATUS_OK;
}

enum status cuda_program_try(const struct program_options *options, const struct dnn_target *dnn,
                             size_t *ret_bytes)
{
    struct cuda_program *program = calloc(1, sizeof(*program));
    struct graph_memory *memory = calloc(1, sizeof(*memory));
    enum status status = STATUS_NO_MEMORY;
    if (program != NULL && memory != NULL) {
        status = build(program, options, dnn);
    }
    if (status == STATUS_OK) {
        status = plan_memory(program, memory);
        *ret_bytes = program->arena_bytes + program->vector_bytes;
    }
    if (program != NULL) {
        graph_destroy_nodes(&program->graph);
        weights_finish(&program->context);
    }
    free(memory);
    free(program);
    return status;
}
