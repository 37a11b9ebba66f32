/* Plans the buffers of a list of operations in one allocation, and runs the kernels on them. */
#include "worker/device/ref/program.h"

#include "common/base/log.h"
#include "common/base/memory.h"
#include "worker/device/ref/kernels.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct ref_program {
    struct program base;
    struct op *ops; // (op_count), owned
    uint32_t op_count;
    uint32_t batch_size;
    const float *params;
    float *grads; // NULL: evaluation only
    float *statistics;

    // Buffers of each operation, inside `memory`.
    float **results;   // (op_count) of (N, y)
    float **gradients; // (op_count) of (N, y): of the loss by that result; the last is NULL
    double **saved;    // (op_count): batch_norm
    float *spares[2];  // a gradient on its way to where one is already
    double *scratch;
    void *memory;
    size_t memory_bytes;

    // Between forward and the end of backward.
    struct program_input input;
    uint32_t backward_next;            // operations below this have not run backward yet
    bool has_gradient[DEVICE_OPS_MAX]; // of a result: one of its readers has written it
    enum status status;
};

static const struct ref_kernel *const kernels[] = {
    [OP_CONV2D] = &ref_conv2d,
    [OP_LINEAR] = &ref_linear,
    [OP_RELU] = &ref_relu,
    [OP_MAX_POOL] = &ref_max_pool,
    [OP_DROPOUT] = &ref_dropout,
    [OP_BATCH_NORM] = &ref_batch_norm,
    [OP_ADD] = &ref_add,
    [OP_SUBSAMPLE] = &ref_subsample,
    [OP_PAD] = &ref_pad,
    [OP_GLOBAL_POOL] = &ref_global_pool,
    [OP_SOFTMAX_LOSS] = &ref_softmax_loss,
};

/* Takes count items of item_bytes from the plan; returns where they begin, in bytes. Past SIZE_MAX
 * the plan stays there, and creating the memory fails. */
static size_t reserve(size_t *plan_bytes, size_t count, size_t item_bytes)
{
    size_t begin = *plan_bytes;
    size_t bytes;
    if (__builtin_mul_overflow(count, item_bytes, &bytes) ||
        __builtin_add_overflow(bytes, MEMORY_ALIGNMENT - 1, &bytes) ||
        __builtin_add_overflow(begin, bytes - bytes % MEMORY_ALIGNMENT, plan_bytes)) {
        *plan_bytes = SIZE_MAX;
    }
    return begin;
}

struct buffer_plan {
    size_t results[DEVICE_OPS_MAX], gradients[DEVICE_OPS_MAX], saved[DEVICE_OPS_MAX]; // in bytes
    size_t scratch, spares[2];
    size_t bytes;
};

static void plan_buffers(const struct ref_program *program, struct buffer_plan *ret_plan)
{
    size_t scratch_count = 0, largest = 0;
    ret_plan->bytes = 0;
    for (uint32_t i = 0; i < program->op_count; i++) {
        const struct op *op = &program->ops[i];
        size_t count = program->batch_size * ref_element_count(op->y);
        ret_plan->results[i] = reserve(&ret_plan->bytes, count, sizeof(float));
        if (program->grads != NULL && i + 1 < program->op_count) {
            ret_plan->gradients[i] = reserve(&ret_plan->bytes, count, sizeof(float));
            largest = largest < count ? count : largest;
        }
        ret_plan->saved[i] =
            reserve(&ret_plan->bytes, op->kind == OP_BATCH_NORM ? 2 * (size_t)op->x.channels : 0,
                    sizeof(double));
        if (scratch_count < ref_scratch_count(op)) {
            scratch_count = ref_scratch_count(op);
        }
    }
    ret_plan->scratch = reserve(&ret_plan->bytes, scratch_count, sizeof(double));
    for (uint32_t i = 0; i < 2; i++) {
        ret_plan->spares[i] = reserve(&ret_plan->bytes, largest, sizeof(float));
    }
}

static enum status create_buffers(struct ref_program *program)
{
    struct buffer_plan plan;
    plan_buffers(program, &plan);
    program->memory_bytes = plan.bytes;
    program->memory = plan.bytes == SIZE_MAX ? NULL : memory_create_large(plan.bytes);
    if (program->memory == NULL) {
        log_error("device ref: no memory for a program of %zu MiB at a batch of %u; "
                  "make the batch smaller",
                  plan.bytes >> 20, program->batch_size);
        return STATUS_NO_MEMORY;
    }
    char *memory = program->memory;
    for (uint32_t i = 0; i < program->op_count; i++) {
        program->results[i] = (void *)(memory + plan.results[i]);
        if (program->grads != NULL && i + 1 < program->op_count) {
            program->gradients[i] = (void *)(memory + plan.gradients[i]);
        }
        program->saved[i] = (void *)(memory + plan.saved[i]);
    }
    program->scratch = (void *)(memory + plan.scratch);
    for (uint32_t i = 0; i < 2; i++) {
        program->spares[i] = (void *)(memory + plan.spares[i]);
    }
    return STATUS_OK;
}

static struct ref_call make_call(struct ref_program *program, uint32_t index)
{
    const struct op *op = &program->ops[index];
    bool is_first = op->input == DEVICE_INPUT_PIXELS;
    struct ref_call call = {
        .op = op,
        .batch_size = program->batch_size,
        .input = &program->input,
        .x = is_first ? program->input.pixels : program->results[op->input],
        .other = op->kind == OP_ADD ? program->results[op->other] : NULL,
        .y = program->results[index],
        .dy = program->gradients[index],
        .params = program->params,
        .grads = program->grads,
        .statistics = program->statistics,
        .saved = program->saved[index],
        .scratch = program->scratch,
        .status = &program->status,
    };
    return call;
}

static enum status forward(struct program *base, const struct program_input *input,
                           struct program_result *ret_result)
{
    struct ref_program *program = (struct ref_program *)base;
    assert(input->count <= program->batch_size);
    assert(!input->is_training || program->grads != NULL);

    program->input = *input;
    program->status = STATUS_OK;
    for (uint32_t i = 0; i < program->op_count && program->status == STATUS_OK; i++) {
        struct ref_call call = make_call(program, i);
        call.result = ret_result;
        program->status = program_await_params(input, call.op);
        if (program->status != STATUS_OK) {
            break;
        }
        op_watch_note(base->watch, i, true);
        kernels[call.op->kind]->forward(&call);
        op_watch_note(base->watch, i, false);
    }
    program->backward_next = input->is_training ? program->op_count : 0;
    memset(program->has_gradient, 0, sizeof(program->has_gradient));
    return program->status;
}

/* Where a kernel writes the gradient of an input: in its place, if it is the first to do so. */
static float *gradient_target(const struct ref_program *program, uint32_t input, uint32_t spare)
{
    if (input == DEVICE_INPUT_PIXELS) {
        return NULL;
    }
    return program->has_gradient[input] ? program->spares[spare] : program->gradients[input];
}

/* A result that several operations read has the sum of their gradients. */
static void collect_gradient(struct ref_program *program, uint32_t input, const float *written)
{
    if (input == DEVICE_INPUT_PIXELS) {
        return;
    }
    float *gradient = program->gradients[input];
    size_t count = program->batch_size * ref_element_count(program->ops[input].y);
    for (size_t i = 0; gradient != written && i < count; i++) {
        gradient[i] += written[i];
    }
    program->has_gradient[input] = true;
}

static enum status backward(struct program *base, uint32_t last_op, uint32_t first_op)
{
    struct ref_program *program = (struct ref_program *)base;
    assert(last_op + 1 == program->backward_next); // after forward, from the end, each once

    for (uint32_t i = last_op + 1; i-- > first_op && program->status == STATUS_OK;) {
        struct ref_call call = make_call(program, i);
        call.dx = gradient_target(program, call.op->input, 0);
        if (call.op->kind == OP_ADD) {
            call.dother = gradient_target(program, call.op->other, 1);
        }
        op_watch_note(base->watch, i, true);
        kernels[call.op->kind]->backward(&call);
        collect_gradient(program, call.op->input, call.dx);
        if (call.op->kind == OP_ADD) {
            collect_gradient(program, call.op->other, call.dother);
        }
        op_watch_note(base->watch, i, false);
    }
    program->backward_next = first_op;
    return program->status;
}

static void destroy(struct program *base)
{
    struct ref_program *program = (struct ref_program *)base;
    memory_destroy_large(program->memory, program->memory_bytes);
    free(program->saved);
    free(program->gradients);
    free(program->results);
    free(program->ops);
    free(program);
}

static const struct program_ops ref_program_ops = {
    .awaits_params = true,
    .forward = forward,
    .backward = backward,
    .destroy = destroy,
};

enum status ref_program_create(const struct program_options *options, struct program **ret_program)
{
    struct ref_program *program = calloc(1, sizeof(*program));
    if (program == NULL) {
        return STATUS_NO_MEMORY;
    }
    program->base.ops = &ref_program_ops;
    program->op_count = options->op_count;
    program->batch_size = options->batch_size;
    program->params = options->params;
    program->grads = options->grads;
    program->statistics = options->statistics;
    program->ops = calloc(options->op_count, sizeof(*program->ops));
    program->results = calloc(options->op_count, sizeof(*program->results));
    program->gradients = calloc(options->op_count, sizeof(*program->gradients));
    program->saved = calloc(options->op_count, sizeof(*program->saved));

    enum status status = STATUS_NO_MEMORY;
    if (program->ops != NULL && program->results != NULL && program->gradients != NULL &&
        program->saved != NULL) {
        memcpy(program->ops, options->ops, options->op_count * sizeof(*program->ops));
        status = create_buffers(program);
    }
    if (status != STATUS_OK) {
        destroy(&program->base);
        return status;
    }
    *ret_program = &program->base;
    return STATUS_OK;
}

void ref_program_describe(const struct program *base, char *ret_text, size_t text_size)
{
    const struct ref_program *program = (const struct ref_program *)base;
    snprintf(ret_text, text_size, "plain loops, 1 thread, buffers of %.1f MiB at a batch of %u",
             (double)program->memory_bytes / 0x1p20, program->batch_size);
}
