/* Places a graph in the GPU's memory, and runs it. */
#include "worker/device/cuda/program.h"

#include "worker/device/cuda/report.h"
#include "worker/device/cuda/transfer.h"
#include "worker/device/cuda/updates.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Buffers of a graph's arena that live all the time.
enum extra { EXTRA_WORKSPACE, EXTRA_DWEIGHTS, EXTRA_PARTS, EXTRA_SUMS, EXTRA_COUNT };

struct cuda_program {
    struct program base;
    struct node_context context;
    struct graph graph;
    struct transfer transfer; // of parameters and gradients
    struct updates updates;   // of parameters, if the program makes them
    bool keeps_gradients;     // those of the last forward stay on the GPU
    float *statistics;        // host, borrowed
    size_t value_count, statistic_count, pixel_count;
    float *pixels; // (N, C, H, W), device memory, owned, as is all that follows
    void *arena, *vectors;
    size_t arena_bytes, vector_bytes;

    // Pinned, on the host: what a forward brings back.
    double *losses;
    uint32_t *hits;
};

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

static void destroy(struct program *base)
{
    struct cuda_program *program = (struct cuda_program *)base;
    cudaStreamSynchronize(program->context.stream);
    transfer_finish(&program->transfer);
    updates_finish(&program->updates);
    graph_destroy_nodes(&program->graph);
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

/* Lengths of weight and bias of an operation. */
static size_t param_count(const struct op *op)
{
    return op_weight_count(op) + (op->has_bias ? op->y.channels : 0);
}

/* Lengths of the flat vectors: up to the end of the last tensor. */
static void measure_vectors(struct cuda_program *program, const struct program_options *options)
{
    for (uint32_t i = 0; i < options->op_count; i++) {
        const struct op *op = &options->ops[i];
        size_t end = op->weight + param_count(op);
        program->value_count = program->value_count < end ? end : program->value_count;
        if (op->kind == OP_BATCH_NORM) {
            program->statistic_count = op->statistics + 2 * (size_t)op->x.channels;
        }
    }
    program->pixel_count = options->batch_size * element_count(options->ops[0].x);
}

/* A part of the block of vectors, or, without a block, only its size. */
static void *take(struct cuda_program *program, size_t bytes)
{
    size_t begin = program->vector_bytes;
    program->vector_bytes = begin + (bytes + 255) / 256 * 256;
    return program->vectors != NULL ? (char *)program->vectors + begin : NULL;
}

static void lay_out_vectors(struct cuda_program *program)
{
    struct node_context *context = &program->context;
    program->vector_bytes = 0;
    context->params = take(program, program->value_count * sizeof(float));
    context->grads = take(program, context->is_trained ? program->value_count * sizeof(float) : 0);
    context->statistics = take(program, program->statistic_count * sizeof(float));
    context->weights = take(program, program->value_count * cuda_element_bytes(context));
    context->labels = take(program, context->batch * sizeof(uint32_t));
    context->sample_keys = take(program, context->batch * sizeof(uint64_t));
    context->losses = take(program, context->batch * sizeof(double));
    context->hits = take(program, context->batch * sizeof(uint32_t));
    program->pixels = take(program, program->pixel_count * sizeof(float));
    program->graph.tensors[0].data =
        take(program, program->pixel_count * cuda_element_bytes(context));
}

/* How large a batch fits, if memory grows with it. */
static void report_too_large(const struct cuda_program *program)
{
    size_t free_bytes = 0, all_bytes = 0, asked = program->arena_bytes + program->vector_bytes;
    cudaMemGetInfo(&free_bytes, &all_bytes);
    size_t fixed = (2 * program->value_count) * sizeof(float) +
                   program->value_count * cuda_element_bytes(&program->context) +
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
    return cuda_check(result, "get memory");
}

static enum status plan_memory(struct cuda_program *program, struct graph_memory *memory)
{
    const struct node_context *context = &program->context;
    memory->is_trained = context->is_trained;
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

static enum status place(struct cuda_program *program)
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

/* ==========================================================================================
 * Running
 * ========================================================================================== */

static int upload(const struct cuda_program *program, void *to, const void *from, size_t bytes)
{
    return bytes == 0 ? 0
                      : (int)cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice,
                                             program->context.stream);
}

static int download(const struct cuda_program *program, void *to, const void *from, size_t bytes)
{
    return bytes == 0 ? 0
                      : (int)cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost,
                                             program->context.stream);
}

/* Statistics and the batch. */
static enum status bring_input(struct cuda_program *program, const struct program_input *input)
{
    const struct node_context *context = &program->context;
    struct tensor *pixels = &program->graph.tensors[0];
    const struct cuda_shape shape = {.channels = pixels->shape.channels,
                                     .pixels = (size_t)pixels->shape.rows * pixels->shape.columns};
    int result = upload(program, context->statistics, program->statistics,
                        program->statistic_count * sizeof(float));
    if (result == 0) {
        result =
            upload(program, program->pixels, input->pixels, program->pixel_count * sizeof(float));
    }
    if (result == 0) {
        result = upload(program, context->labels, input->labels,
                        context->batch * sizeof(*input->labels));
    }
    if (result == 0 && input->is_training) {
        result = upload(program, context->sample_keys, input->sample_keys,
                        context->batch * sizeof(*input->sample_keys));
    }
    if (result == 0) {
        result = kernel_pixels(context->type, &shape, program->pixels, pixels->data,
                               program->pixel_count, context->stream);
    }
    return cuda_check(result, "copy the input");
}

/* Waits; the losses of samples are added up in their order. */
static enum status bring_result(struct cuda_program *program, struct program_result *ret_result)
{
    const struct node_context *context = &program->context;
    struct program_result sum = {0};
    int result =
        download(program, program->losses, context->losses, context->batch * sizeof(double));
    if (result == 0) {
        result = download(program, program->hits, context->hits, context->batch * sizeof(uint32_t));
    }
    if (result == 0 && context->input->is_training) {
        result = download(program, program->statistics, context->statistics,
                          program->statistic_count * sizeof(float));
    }
    if (result == 0) {
        result = (int)cudaStreamSynchronize(context->stream);
    }
    for (uint32_t n = 0; result == 0 && n < context->input->count; n++) {
        sum.loss_sum += program->losses[n];
        sum.correct_count += program->hits[n];
    }
    *ret_result = sum;
    return cuda_check(result, "run forward");
}

/* The parameters of a node's operation: weight and bias, which lie behind each other. */
static struct cuda_span params_of(const struct node *node)
{
    return (struct cuda_span){node->op.weight, param_count(&node->op)};
}

static enum status run_forward(struct cuda_program *program, uint32_t i)
{
    struct node *node = program->graph.nodes[i];
    struct cuda_span params = params_of(node);
    enum status status =
        params.count > 0 ? transfer_await_params(&program->transfer, params.offset + params.count)
                         : STATUS_OK;
    return status == STATUS_OK ? node->ops->forward(node) : status;
}

static enum status forward(struct program *base, const struct program_input *input,
                           struct program_result *ret_result)
{
    struct cuda_program *program = (struct cuda_program *)base;
    assert(input->count <= program->context.batch);
    program->context.input = input;
    program->keeps_gradients = input->keeps_gradients;
    enum status status = program->updates.is_ahead
                             ? STATUS_OK
                             : transfer_send_params(&program->transfer, input->is_training);
    if (status == STATUS_OK) {
        status = bring_input(program, input);
    }
    for (uint32_t i = 0; i < program->graph.node_count && status == STATUS_OK; i++) {
        status = run_forward(program, i);
    }
    if (status == STATUS_OK) {
        status = bring_result(program, ret_result);
    }
    return status == STATUS_OK ? transfer_read_clock(&program->transfer, &program->base.copy_ns)
                               : status;
}

static enum status run_backward(struct cuda_program *program, uint32_t i)
{
    const struct node_context *context = &program->context;
    struct node *node = program->graph.nodes[i];
    const struct tensor *target = program->graph.targets[i];
    enum status status = node->ops->backward(node);
    if (status == STATUS_OK && target != NULL) {
        status = cuda_check(kernel_add(context->type, target->grad, node->x->grad, target->grad,
                                       false, tensor_count(target), context->stream),
                            "add gradients");
    }
    return status;
}

static bool is_in_range(const struct graph *graph, uint32_t i, uint32_t last_op, uint32_t first_op)
{
    return graph->node_ops[i] <= last_op && graph->node_ops[i] >= first_op;
}

/* Queues the gradients of a range's nodes. */
static enum status bring_gradients(struct cuda_program *program, uint32_t last_op,
                                   uint32_t first_op)
{
    const struct graph *graph = &program->graph;
    enum status status = transfer_begin_range(&program->transfer);
    for (uint32_t i = graph->node_count; i-- > 0 && status == STATUS_OK;) {
        if (is_in_range(graph, i, last_op, first_op)) {
            status = transfer_bring(&program->transfer, params_of(graph->nodes[i]));
        }
    }
    return status == STATUS_OK ? transfer_end_range(&program->transfer, first_op) : status;
}

static enum status backward(struct program *base, uint32_t last_op, uint32_t first_op)
{
    struct cuda_program *program = (struct cuda_program *)base;
    enum status status = STATUS_OK;
    for (uint32_t i = program->graph.node_count; i-- > 0 && status == STATUS_OK;) {
        if (is_in_range(&program->graph, i, last_op, first_op)) {
            status = run_backward(program, i);
        }
    }
    return status == STATUS_OK && !program->keeps_gradients
               ? bring_gradients(program, last_op, first_op)
               : status;
}

static enum status await(struct program *base, uint32_t first_op)
{
    struct cuda_program *program = (struct cuda_program *)base;
    assert(!program->keeps_gradients);
    enum status status = transfer_await_grads(&program->transfer, first_op);
    return status == STATUS_OK ? transfer_read_clock(&program->transfer, &program->base.copy_ns)
                               : status;
}

static enum status hold(struct program *base, float *const *states, uint32_t state_count)
{
    struct cuda_program *program = (struct cuda_program *)base;
    return updates_hold(&program->updates, states, state_count, program->value_count);
}

static enum status apply(struct program *base, const struct optimizer_update *update,
                         uint64_t offset, uint64_t count)
{
    struct cuda_program *program = (struct cuda_program *)base;
    const struct cuda_span span = {offset, count};
    assert(offset <= program->value_count && count <= program->value_count - offset);
    enum status status = program->keeps_gradients || count == 0
                             ? STATUS_OK
                             : transfer_send_grads(&program->transfer, span);
    return status == STATUS_OK ? updates_apply(&program->updates, &program->transfer, update, span)
                               : status;
}

static enum status fetch(struct program *base)
{
    struct cuda_program *program = (struct cuda_program *)base;
    return updates_fetch(&program->updates, &program->transfer);
}

static const struct program_ops cuda_program_ops = {
    .forward = forward,
    .backward = backward,
    .await = await,
    .hold = hold,
    .apply = apply,
    .fetch = fetch,
    .destroy = destroy,
};

void cuda_program_describe(const struct program *base, char *ret_text, size_t text_size)
{
    const struct cuda_program *program = (const struct cuda_program *)base;
    size_t bytes = program->arena_bytes + program->vector_bytes + program->updates.bytes;
    int used = snprintf(ret_text, text_size, "%.1f MiB on the GPU", (double)bytes / (1024 * 1024));
    for (uint32_t i = 0; i < program->graph.node_count; i++) {
        const struct node *node = program->graph.nodes[i];
        if (node->ops->describe != NULL && used > 0 && (size_t)used + 2 < text_size) {
            used += snprintf(ret_text + used, text_size - (size_t)used, "; ");
            node->ops->describe(node, ret_text + used, text_size - (size_t)used);
            used += (int)strlen(ret_text + used);
        }
    }
}

/* Everything but memory. */
static enum status build(struct cuda_program *program, const struct program_options *options,
                         const struct dnn_target *dnn)
{
    program->base.ops = &cuda_program_ops;
    program->statistics = options->statistics;
    struct node_context *context = &program->context;
    context->dnn = *dnn;
    context->dnn.precision = options->precision;
    context->type = options->precision == PRECISION_BF16 ? CUDA_TYPE_BF16 : CUDA_TYPE_FLOAT;
    context->batch = options->batch_size;
    context->is_trained = options->grads != NULL;
    measure_vectors(program, options);
    const struct graph_options graph = {
        .ops = options->ops,
        .op_count = options->op_count,
        .batch = options->batch_size,
        .is_trained = context->is_trained,
        .context = context,
        .kinds = kinds,
    };
    return graph_build(&graph, &program->graph);
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

enum status cuda_program_create(const struct program_options *options, const struct dnn_target *dnn,
                                cublasLtHandle_t blas, cudaStream_t stream,
                                struct program **ret_program)
{
    struct cuda_program *program = calloc(1, sizeof(*program));
    if (program == NULL) {
        return STATUS_NO_MEMORY;
    }
    program->context.blas = blas;
    program->context.stream = stream;
    enum status status = build(program, options, dnn);
    if (status == STATUS_OK) {
        status = place(program);
    }
    if (status == STATUS_OK) {
        status =
            transfer_init(&program->transfer, &program->context, options, program->value_count);
    }
    if (status == STATUS_OK) {
        status = bind(&program->graph);
    }
    if (status != STATUS_OK) {
        destroy(&program->base);
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
    }
    free(memory);
    free(program);
    return status;
}
