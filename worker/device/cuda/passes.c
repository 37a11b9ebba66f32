/* Runs forward and updates of a program on a GPU, and the copies before and after them. */
#include "worker/device/cuda/node_check.h"
#include "worker/device/cuda/program_state.h"
#include "worker/device/cuda/weights.h"

#include <assert.h>

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

/* The batch. What is small lies in the way of computing. */
static enum status bring_input(struct cuda_program *program, const struct program_input *input)
{
    const struct node_context *context = &program->context;
    int result =
        upload(program, context->labels, input->labels, context->batch * sizeof(*input->labels));
    if (result == 0 && input->mixed != NULL) {
        result =
            upload(program, context->mixed, input->mixed, context->batch * sizeof(*input->mixed));
    }
    if (result == 0 && input->is_training) {
        result = upload(program, context->sample_keys, input->sample_keys,
                        context->batch * sizeof(*input->sample_keys));
    }
    enum status status = cuda_check(result, "copy the input");
    return status == STATUS_OK ? input_bring(&program->input, input, &program->graph.tensors[0])
                               : status;
}

/* Losses and hits of the samples. */
static enum status queue_result(struct cuda_program *program)
{
    const struct node_context *context = &program->context;
    int result =
        download(program, program->losses, context->losses, context->batch * sizeof(double));
    if (result == 0) {
        result = download(program, program->hits, context->hits, context->batch * sizeof(uint32_t));
    }
    if (result == 0) {
        result = (int)cudaEventRecord(program->result_is_there, context->stream);
    }
    return cuda_check(result, "bring a result");
}

/* The losses of samples are added up in their order. */
static enum status await_result(struct program *base, struct program_result *ret_result)
{
    struct cuda_program *program = (struct cuda_program *)base;
    struct program_result sum = {0};
    enum status status =
        cuda_check((int)cudaEventSynchronize(program->result_is_there), "run forward");
    if (status != STATUS_OK) {
        return status;
    }
    for (uint32_t n = 0; n < program->context.pass.count; n++) {
        sum.loss_sum += program->losses[n];
        sum.correct_count += program->hits[n];
    }
    *ret_result = sum;
    return transfer_read_clock(&program->transfer, &program->base.copy_ns);
}

/* Nodes of a forward unit: those from `first` up to `end`. */
struct work {
    struct cuda_program *program;
    uint32_t first, end;
    bool has_weights; // the libraries have the weights of these nodes
};

static enum status launch_backward_of(struct cuda_program *program, uint32_t i)
{
    const struct node_context *context = &program->context;
    struct node *node = program->graph.nodes[i];
    const struct tensor *target = program->graph.targets[i];
    enum status status = node->ops->backward(node);
    if (status != STATUS_OK || target == NULL) {
        return status;
    }
    return cuda_check(kernel_add(context->type, target->grad, node->x->grad, target->grad, false,
                                 tensor_count(target), context->stream),
                      "add gradients");
}

enum status cuda_launch_node(struct cuda_program *program, enum node_pass pass, uint32_t i)
{
    struct node *node = program->graph.nodes[i];
    cudaStream_t stream = program->context.stream;
    enum status status = node_times_begin(&program->times, pass, i, stream);
    if (status == STATUS_OK) {
        status = pass == NODE_FORWARD ? node->ops->forward(node) : launch_backward_of(program, i);
    }
    if (status == STATUS_OK) {
        status = node_times_end(&program->times, pass, i, stream);
    }
    return program->checks_nodes ? node_check(node, program->graph.node_ops[i], pass, status)
                                 : status;
}

/* The weights of nodes `first` to `end`, which the libraries read. */
static enum status take_weights(const struct cuda_program *program, uint32_t first, uint32_t end)
{
    size_t lowest = SIZE_MAX, highest = 0;
    for (uint32_t i = first; i < end; i++) {
        struct cuda_span params = cuda_params_of(program->graph.nodes[i]);
        if (params.count > 0) {
            size_t last = params.offset + params.count;
            lowest = params.offset < lowest ? params.offset : lowest;
            highest = last > highest ? last : highest;
        }
    }
    return weights_take(&program->context, lowest, highest);
}

static enum status launch_forward(void *context)
{
    const struct work *work = context;
    enum status status =
        work->has_weights ? STATUS_OK : take_weights(work->program, work->first, work->end);
    for (uint32_t i = work->first; i < work->end && status == STATUS_OK; i++) {
        status = cuda_launch_node(work->program, NODE_FORWARD, i);
    }
    return status;
}

/* The end of the parameters that a node reads; 0 if it has none. */
static size_t params_end(const struct cuda_program *program, uint32_t i)
{
    struct cuda_span params = cuda_params_of(program->graph.nodes[i]);
    return params.count > 0 ? params.offset + params.count : 0;
}

/* The nodes from `first` on that can run once the first parameters among theirs are there. */
static enum status run_forward(struct cuda_program *program, uint32_t first, uint32_t *ret_end)
{
    struct work work = {.program = program, .first = first, .end = first};
    size_t awaited = 0;
    while (work.end < program->graph.node_count &&
           (awaited == 0 || transfer_covers(awaited, params_end(program, work.end)))) {
        awaited = awaited > 0 ? awaited : params_end(program, work.end);
        work.end++;
    }
    *ret_end = work.end;
    enum status status = transfer_await_params(&program->transfer, awaited);
    const struct replay_unit unit = {.index = first, .extent = work.end};
    return status == STATUS_OK ? replay_run(&program->replay, unit, launch_forward, &work) : status;
}

/* Whether parameters stay on the GPU from step to step, but for a few in which they come anew. */
static bool has_params(const struct cuda_program *program)
{
    return program->updates.is_held || program->updates.is_ahead;
}

/* All weights, unless the updates have written them. A server updates parameters alone. */
static enum status keep_weights(struct cuda_program *program)
{
    if (program->updates.keeps_weights) {
        return STATUS_OK;
    }
    enum status status = take_weights(program, 0, program->graph.node_count);
    program->updates.keeps_weights =
        status == STATUS_OK && !program->is_exposed && program->context.weight_table.count > 0;
    return status;
}

/* All nodes at once, when all parameters are there. */
static enum status run_whole_forward(struct cuda_program *program)
{
    enum status status = transfer_await_params(&program->transfer, program->value_count);
    if (status == STATUS_OK) {
        status = keep_weights(program);
    }
    if (status != STATUS_OK) {
        return status;
    }
    uint32_t end = program->graph.node_count;
    struct work work = {.program = program, .end = end, .has_weights = true};
    const struct replay_unit unit = {.index = cuda_unit_of_whole_forward(program), .extent = end};
    return replay_run(&program->replay, unit, launch_forward, &work);
}

/* Recorded steps are launched bucket by bucket: events around sums lie beside graphs. */
static bool sums_in_unit(const struct cuda_program *program)
{
    return program->keeps_gradients && program->peers.can_be_captured &&
           program->replay.current != NULL && !program->base.recording.is_on;
}

static void begin_pass(struct cuda_program *program, const struct program_input *input)
{
    struct node_context *context = &program->context;
    assert(input->count <= context->batch);
    context->pass = (struct cuda_pass){
        .count = input->count,
        .gradient_scale = input->gradient_scale,
        .is_training = input->is_training,
        .sums_over_workers = input->sum_over_workers != NULL,
        .is_mixed = input->mixed != NULL,
    };
    context->sum_over_workers = input->sum_over_workers;
    context->sum_context = input->context;
    program->keeps_gradients = input->keeps_gradients;
    program->is_waiting = false;
    replay_begin_pass(&program->replay, &context->pass);
    program->sums_in_unit = sums_in_unit(program);
}

static enum status launch_all_forward(struct cuda_program *program)
{
    if (has_params(program)) {
        return run_whole_forward(program);
    }
    for (uint32_t i = 0; i < program->graph.node_count;) {
        enum status status = run_forward(program, i, &i);
        if (status != STATUS_OK) {
            return status;
        }
    }
    return STATUS_OK;
}

static enum status run_all_forward(struct cuda_program *program)
{
    cudaStream_t stream = program->context.stream;
    enum status status = cuda_check(recorder_begin(&program->recorder, DEVICE_COMPUTES,
                                                   DEVICE_FORWARD, DEVICE_NO_BUCKET, stream),
                                    "record forward");
    if (status == STATUS_OK) {
        status = launch_all_forward(program);
    }
    return status == STATUS_OK
               ? cuda_check(recorder_end(&program->recorder, DEVICE_COMPUTES, stream),
                            "record forward")
               : status;
}

static enum status begin_forward(struct program *base, const struct program_input *input)
{
    struct cuda_program *program = (struct cuda_program *)base;
    begin_pass(program, input);
    enum status status =
        recorder_start(&program->recorder, &base->recording, program->context.stream);
    if (status != STATUS_OK) {
        return status;
    }
    status = updates_flush(&program->updates, &program->transfer);
    if (status != STATUS_OK) {
        return status;
    }
    if (!program->updates.is_ahead) {
        program->updates.keeps_weights = false;
        status = transfer_send_params(&program->transfer, input->is_training);
        if (status != STATUS_OK) {
            return status;
        }
    }
    status = transfer_send_statistics(&program->transfer, input->is_training);
    if (status != STATUS_OK) {
        return status;
    }
    status = bring_input(program, input);
    if (status != STATUS_OK) {
        return status;
    }
    status = run_all_forward(program);
    return status == STATUS_OK ? queue_result(program) : status;
}

static enum status forward(struct program *base, const struct program_input *input,
                           struct program_result *ret_result)
{
    enum status status = begin_forward(base, input);
    return status == STATUS_OK ? await_result(base, ret_result) : status;
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
    assert(!program->is_waiting);
    program->recorder.now.bucket = cuda_recorded_bucket(program);
    assert(offset <= program->value_count && count <= program->value_count - offset);
    enum status status = STATUS_OK;
    if (cuda_is_one_unit(program)) {
        return updates_gather(&program->updates, &program->transfer, update, span);
    }
    if (program->keeps_gradients) {
        status = peers_await(&program->peers, &program->transfer, span);
    } else if (count > 0) {
        status = transfer_send_grads(&program->transfer, span);
    }
    return status == STATUS_OK ? updates_apply(&program->updates, &program->transfer, update, span)
                               : status;
}

static enum status fetch(struct program *base)
{
    struct cuda_program *program = (struct cuda_program *)base;
    enum status status = updates_fetch(&program->updates, &program->transfer);
    program->updates.is_ahead = program->updates.is_ahead || program->is_exposed;
    return status;
}

static enum status fetch_statistics(struct program *base)
{
    struct cuda_program *program = (struct cuda_program *)base;
    return transfer_fetch_statistics(&program->transfer, program->result_is_there);
}

static enum status read_times(struct program *base, struct op_time *ret_times)
{
    struct cuda_program *program = (struct cuda_program *)base;
    if (program->times.events == NULL) {
        return STATUS_UNSUPPORTED; // nobody asked for a clock
    }
    return node_times_read(&program->times, &program->graph, program->context.stream,
                           program->op_count, ret_times);
}

static enum status read_spans(struct program *base, struct device_span *ret_spans, size_t span_max,
                              size_t *ret_count, uint64_t *ret_dropped)
{
    struct recorder *recorder = &((struct cuda_program *)base)->recorder;
    *ret_dropped = recorder->dropped;
    recorder->dropped = 0;
    return recorder_read(recorder, ret_spans, span_max, ret_count);
}

const struct program_ops cuda_program_ops = {
    .forward = forward,
    .begin_forward = begin_forward,
    .await_result = await_result,
    .backward = cuda_program_backward,
    .await = cuda_program_await,
    .hold = hold,
    .apply = apply,
    .fetch = fetch,
    .fetch_statistics = fetch_statistics,
    .share = cuda_program_share,
    .meet = cuda_program_meet,
    .join = cuda_program_join,
    .stop = cuda_program_stop,
    .sum = cuda_program_sum,
    .part = cuda_program_part,
    .expose = cuda_program_expose,
    .read_times = read_times,
    .read_spans = read_spans,
    .destroy = cuda_program_destroy,
};
