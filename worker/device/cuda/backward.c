/* Runs backward of a program on a GPU, and what becomes of gradients then: they are copied to the
 * host, summed over the GPUs of a host, or left where updates take them. */
#include "worker/device/cuda/program_state.h"
#include "worker/device/cuda/weights.h"

#include <assert.h>

/* Operations `last` down to `first`, each with its nodes. */
struct range {
    struct cuda_program *program;
    uint32_t last, first;
};

static bool has_node(const struct range *range, uint32_t i)
{
    uint32_t op = range->program->graph.node_ops[i];
    return op <= range->last && op >= range->first;
}

static enum status launch_range(void *context)
{
    const struct range *range = context;
    struct cuda_program *program = range->program;
    enum status status = STATUS_OK;
    program->context.gradient_count = 0; // what a capture that failed has left
    for (uint32_t i = program->graph.node_count; i-- > 0 && status == STATUS_OK;) {
        if (has_node(range, i)) {
            status = cuda_launch_node(program, NODE_BACKWARD, i);
        }
    }
    return status == STATUS_OK ? weights_return(&program->context) : status;
}

/* All of backward, and with it the sum of each bucket, behind what the bucket is of. */
static enum status launch_with_sums(void *context)
{
    const struct range *whole = context;
    struct cuda_program *program = whole->program;
    struct range rest = *whole; // what has been launched ends above its last operation
    enum status status = STATUS_OK;
    for (uint32_t i = 0; i < program->peers.bucket_count && status == STATUS_OK; i++) {
        rest.first = program->peers.buckets[i].sum.first_op;
        if (i == 0 || rest.first < program->peers.buckets[i - 1].sum.first_op) {
            status = launch_range(&rest);
            rest.last = rest.first - 1; // of the last bucket it is not read
        }
        if (status == STATUS_OK) {
            status = peers_sum_in_unit(&program->peers, &program->transfer, i);
        }
    }
    assert(status != STATUS_OK || rest.first == 0);
    return status == STATUS_OK ? peers_end_unit(&program->transfer) : status;
}

/* Queues the gradients of a range's nodes. */
static enum status bring_gradients(const struct range *range)
{
    struct transfer *transfer = &range->program->transfer;
    const struct graph *graph = &range->program->graph;
    enum status status = transfer_begin_range(transfer);
    for (uint32_t i = graph->node_count; i-- > 0 && status == STATUS_OK;) {
        if (has_node(range, i)) {
            status = transfer_bring(transfer, cuda_params_of(graph->nodes[i]));
        }
    }
    return status == STATUS_OK ? transfer_end_range(transfer, range->first) : status;
}

/* Queues the sums of the buckets that are complete with a range. */
static enum status sum_gradients(const struct range *range)
{
    struct peers *peers = &range->program->peers;
    enum status status = STATUS_OK;
    for (uint32_t i = 0; i < peers->bucket_count && status == STATUS_OK; i++) {
        if (peers->buckets[i].sum.first_op == range->first) {
            status = peers_sum(peers, &range->program->transfer, i);
        }
    }
    return status;
}

/* What becomes of the gradients of a range whose backward has been queued. */
static enum status pass_on(const struct range *range)
{
    struct cuda_program *program = range->program;
    if (!program->keeps_gradients) {
        return bring_gradients(range);
    }
    if (cuda_is_one_unit(program)) {
        return STATUS_OK;
    }
    if (program->is_exposed || program->peers.collective != NULL) {
        return transfer_mark_range(&program->transfer, range->first);
    }
    return sum_gradients(range);
}

/* Of backward as one unit: takes up operations of several calls, and says whether more are to
 * come. */
static bool waits_for_more(struct range *range)
{
    struct cuda_program *program = range->program;
    if (!cuda_is_one_unit(program)) {
        return false;
    }
    program->waiting_op = program->is_waiting ? program->waiting_op : range->last;
    program->is_waiting = range->first > 0;
    range->last = program->waiting_op;
    return program->is_waiting;
}

static enum status run_range(struct range *range)
{
    struct cuda_program *program = range->program;
    struct recorder *recorder = &program->recorder;
    cudaStream_t stream = program->context.stream;
    const struct replay_unit unit = {.index = program->sums_in_unit
                                                  ? cuda_unit_of_sums(program)
                                                  : cuda_unit_of_backward(program, range->first),
                                     .extent = range->last};
    recorder->now.bucket = cuda_recorded_bucket(program);
    enum status status = cuda_check(
        recorder_begin(recorder, DEVICE_COMPUTES, DEVICE_BACKWARD, recorder->now.bucket, stream),
        "record backward");
    if (status == STATUS_OK) {
        status = replay_run(&program->replay, unit,
                            program->sums_in_unit ? launch_with_sums : launch_range, range);
    }
    return status == STATUS_OK
               ? cuda_check(recorder_end(recorder, DEVICE_COMPUTES, stream), "record backward")
               : status;
}

enum status cuda_program_backward(struct program *base, uint32_t last_op, uint32_t first_op)
{
    struct range range = {(struct cuda_program *)base, last_op, first_op};
    if (waits_for_more(&range)) {
        return STATUS_OK;
    }
    enum status status = run_range(&range);
    return status == STATUS_OK ? pass_on(&range) : status;
}

enum status cuda_program_await(struct program *base, uint32_t first_op)
{
    struct cuda_program *program = (struct cuda_program *)base;
    assert(!program->keeps_gradients || program->is_exposed);
    enum status status = transfer_await_grads(&program->transfer, first_op);
    return status == STATUS_OK ? transfer_read_clock(&program->transfer, &program->base.copy_ns)
                               : status;
}
