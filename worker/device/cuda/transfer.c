/* Copies on streams of their own, which events keep in step with the one that computes. */
#include "worker/device/cuda/transfer.h"

#include "worker/device/cuda/memory/page_lock.h"

#include <assert.h>
#include <stdlib.h>

// Parameters of a piece: large enough for the bus, small enough for the first node not to wait
// long.
#define PIECE_FLOATS ((size_t)1 << 20)

static void unlock(float *values, bool is_locked)
{
    if (is_locked) {
        page_unlock(values);
    }
}

static int create_events(cudaEvent_t *events, uint32_t count)
{
    int result = 0;
    for (uint32_t i = 0; i < count && result == 0; i++) {
        result = (int)cudaEventCreateWithFlags(&events[i], cudaEventDisableTiming);
    }
    return result;
}

static void destroy_event(cudaEvent_t event)
{
    if (event != NULL) {
        cudaEventDestroy(event);
    }
}

static void destroy_events(cudaEvent_t *events, uint32_t count)
{
    for (uint32_t i = 0; events != NULL && i < count; i++) {
        destroy_event(events[i]);
    }
    free(events);
}

enum status transfer_init(struct transfer *transfer, const struct node_context *context,
                          const struct program_options *options, size_t value_count,
                          size_t statistic_count)
{
    transfer->context = context;
    transfer->params = options->params;
    transfer->grads = options->grads;
    transfer->statistics = options->statistics;
    transfer->value_count = value_count;
    transfer->statistic_count = statistic_count;
    transfer->op_count = options->grads != NULL ? options->op_count : 0;
    transfer->piece_count = (uint32_t)((value_count + PIECE_FLOATS - 1) / PIECE_FLOATS);
    transfer->sent = calloc(transfer->piece_count + 1, sizeof(cudaEvent_t));
    transfer->brought = calloc(transfer->op_count + 1, sizeof(cudaEvent_t));
    if (transfer->sent == NULL || transfer->brought == NULL) {
        return STATUS_NO_MEMORY;
    }
    int result = (int)cudaStreamCreateWithFlags(&transfer->up, cudaStreamNonBlocking);
    if (result == 0) {
        result = (int)cudaStreamCreateWithFlags(&transfer->down, cudaStreamNonBlocking);
    }
    if (result == 0) {
        result = create_events(&transfer->computed, 1);
    }
    if (result == 0) {
        result = create_events(&transfer->joined, 1);
    }
    if (result == 0) {
        result = create_events(&transfer->returned, 1);
    }
    if (result == 0) {
        result = create_events(transfer->sent, transfer->piece_count);
    }
    if (result == 0) {
        result = create_events(transfer->brought, transfer->op_count);
    }
    if (result == 0) {
        result = stopwatch_init(&transfer->up_watch, transfer->up);
    }
    if (result == 0) {
        result = stopwatch_init(&transfer->down_watch, transfer->down);
    }
    if (result == 0 && value_count > 0) {
        transfer->locked_params = page_lock(transfer->params, value_count * sizeof(float));
        transfer->locked_grads =
            transfer->grads != NULL && page_lock(transfer->grads, value_count * sizeof(float));
    }
    if (result == 0 && statistic_count > 0) {
        transfer->locked_statistics =
            page_lock(transfer->statistics, statistic_count * sizeof(float));
    }
    return cuda_check(result, "create streams of copies");
}

static void close_stream(cudaStream_t stream)
{
    if (stream != NULL) {
        cudaStreamSynchronize(stream);
        cudaStreamDestroy(stream);
    }
}

void transfer_finish(struct transfer *transfer)
{
    close_stream(transfer->up);
    close_stream(transfer->down);
    destroy_event(transfer->computed);
    destroy_event(transfer->joined);
    destroy_event(transfer->returned);
    destroy_events(transfer->sent, transfer->piece_count);
    destroy_events(transfer->brought, transfer->op_count);
    stopwatch_finish(&transfer->up_watch);
    stopwatch_finish(&transfer->down_watch);
    unlock(transfer->params, transfer->locked_params);
    unlock(transfer->grads, transfer->locked_grads);
    unlock(transfer->statistics, transfer->locked_statistics);
    *transfer = (struct transfer){0};
}

/* Keeps copies of a way from going on before what has been queued to compute is done. */
static int follow_compute(struct transfer *transfer, cudaStream_t stream)
{
    int result = (int)cudaEventRecord(transfer->computed, transfer->context->stream);
    return result == 0 ? (int)cudaStreamWaitEvent(stream, transfer->computed, 0) : result;
}

static struct cuda_span piece_of(const struct transfer *transfer, uint32_t index)
{
    size_t offset = index * PIECE_FLOATS, rest = transfer->value_count - offset;
    return (struct cuda_span){offset, rest < PIECE_FLOATS ? rest : PIECE_FLOATS};
}

enum status transfer_send_params(struct transfer *transfer, bool is_timed)
{
    float *to = transfer->context->params;
    struct recorder *recorder = transfer->context->recorder;
    int result = follow_compute(transfer, transfer->up); // which may still read the old ones
    if (result == 0) {
        result =
            recorder_begin(recorder, DEVICE_COPIES_UP, DEVICE_COPY, DEVICE_NO_BUCKET, transfer->up);
    }
    if (result == 0 && is_timed && transfer->piece_count > 0) {
        result = stopwatch_begin(&transfer->up_watch);
    }
    for (uint32_t i = 0; i < transfer->piece_count && result == 0; i++) {
        struct cuda_span piece = piece_of(transfer, i);
        result =
            (int)cudaMemcpyAsync(to + piece.offset, transfer->params + piece.offset,
                                 piece.count * sizeof(*to), cudaMemcpyHostToDevice, transfer->up);
        if (result == 0 && is_timed && i + 1 == transfer->piece_count) {
            result = stopwatch_end(&transfer->up_watch); // over when the last piece is there
        }
        if (result == 0 && i + 1 == transfer->piece_count) {
            result = recorder_end(recorder, DEVICE_COPIES_UP, transfer->up);
        }
        if (result == 0) {
            result = (int)cudaEventRecord(transfer->sent[i], transfer->up);
        }
    }
    transfer->pieces_awaited = 0;
    return cuda_check(result, "copy parameters");
}

enum status transfer_send_statistics(struct transfer *transfer, bool is_training)
{
    const struct node_context *context = transfer->context;
    int result = 0;
    if (!transfer->keeps_statistics && transfer->statistic_count > 0) {
        result = (int)cudaMemcpyAsync(context->statistics, transfer->statistics,
                                      transfer->statistic_count * sizeof(float),
                                      cudaMemcpyHostToDevice, context->stream);
    }
    transfer->keeps_statistics = transfer->keeps_statistics || is_training;
    return cuda_check(result, "copy statistics");
}

enum status transfer_fetch_statistics(struct transfer *transfer, cudaEvent_t forward)
{
    cudaStream_t stream = transfer->up; // the other one is behind backward
    if (!transfer->keeps_statistics) {
        return STATUS_OK;
    }
    int result = (int)cudaStreamWaitEvent(stream, forward, 0);
    if (result == 0 && transfer->statistic_count > 0) {
        result = (int)cudaMemcpyAsync(transfer->statistics, transfer->context->statistics,
                                      transfer->statistic_count * sizeof(float),
                                      cudaMemcpyDeviceToHost, stream);
    }
    if (result == 0) {
        result = (int)cudaStreamSynchronize(stream);
    }
    transfer->keeps_statistics = result != 0;
    return cuda_check(result, "bring statistics");
}

enum status transfer_await_params(struct transfer *transfer, size_t end)
{
    int result = 0;
    while (result == 0 && transfer->pieces_awaited < transfer->piece_count &&
           piece_of(transfer, transfer->pieces_awaited).offset < end) {
        cudaEvent_t sent = transfer->sent[transfer->pieces_awaited++];
        result = (int)cudaStreamWaitEvent(transfer->context->stream, sent, 0);
    }
    return cuda_check(result, "wait for parameters");
}

/* Pieces up to the end of some parameters. */
static size_t pieces_up_to(size_t end)
{
    return (end + PIECE_FLOATS - 1) / PIECE_FLOATS;
}

bool transfer_covers(size_t awaited, size_t end)
{
    return pieces_up_to(end) <= pieces_up_to(awaited);
}

enum status transfer_begin_range(struct transfer *transfer)
{
    transfer->run = (struct cuda_span){0};
    int result = follow_compute(transfer, transfer->down);
    if (result == 0) {
        result = stopwatch_begin(&transfer->down_watch);
    }
    if (result == 0) {
        struct recorder *recorder = transfer->context->recorder;
        result = recorder_begin(recorder, DEVICE_COPIES_DOWN, DEVICE_COPY, recorder->now.bucket,
                                transfer->down);
    }
    return cuda_check(result, "order the copies of gradients");
}

static enum status bring_run(struct transfer *transfer)
{
    struct cuda_span run = transfer->run;
    if (run.count == 0) {
        return STATUS_OK;
    }
    return cuda_check(
        (int)cudaMemcpyAsync(transfer->grads + run.offset, transfer->context->grads + run.offset,
                             run.count * sizeof(float), cudaMemcpyDeviceToHost, transfer->down),
        "copy gradients");
}

enum status transfer_bring(struct transfer *transfer, struct cuda_span span)
{
    struct cuda_span *run = &transfer->run;
    if (span.count > 0 && span.offset + span.count == run->offset) { // backward goes down
        *run = (struct cuda_span){span.offset, span.count + run->count};
        return STATUS_OK;
    }
    if (span.count == 0) {
        return STATUS_OK;
    }
    enum status status = bring_run(transfer);
    *run = span;
    return status;
}

enum status transfer_end_range(struct transfer *transfer, uint32_t first_op)
{
    assert(first_op < transfer->op_count);
    enum status status = bring_run(transfer);
    if (status != STATUS_OK) {
        return status;
    }
    int result = stopwatch_end(&transfer->down_watch);
    if (result == 0) {
        result = recorder_end(transfer->context->recorder, DEVICE_COPIES_DOWN, transfer->down);
    }
    if (result == 0) {
        result = (int)cudaEventRecord(transfer->brought[first_op], transfer->down);
    }
    return cuda_check(result, "mark the end of gradients");
}

enum status transfer_mark_range(struct transfer *transfer, uint32_t first_op)
{
    assert(first_op < transfer->op_count);
    return cuda_check((int)cudaEventRecord(transfer->brought[first_op], transfer->context->stream),
                      "mark the end of gradients");
}

enum status transfer_follow_range(struct transfer *transfer, uint32_t first_op)
{
    assert(first_op < transfer->op_count);
    return cuda_check((int)cudaStreamWaitEvent(transfer->down, transfer->brought[first_op], 0),
                      "wait for gradients");
}

enum status transfer_fork(struct transfer *transfer)
{
    return cuda_check(follow_compute(transfer, transfer->down), "wait for gradients");
}

enum status transfer_join(struct transfer *transfer)
{
    int result = (int)cudaEventRecord(transfer->joined, transfer->down);
    if (result == 0) {
        result = (int)cudaStreamWaitEvent(transfer->context->stream, transfer->joined, 0);
    }
    return cuda_check(result, "wait for sums");
}

enum status transfer_send_grads(struct transfer *transfer, struct cuda_span span)
{
    cudaStream_t compute = transfer->context->stream;
    struct recorder *recorder = transfer->context->recorder;
    int result =
        recorder_begin(recorder, DEVICE_COPIES_UP, DEVICE_COPY, recorder->now.bucket, transfer->up);
    if (result == 0) {
        result = stopwatch_begin(&transfer->up_watch);
    }
    if (result == 0) {
        result = (int)cudaMemcpyAsync(transfer->context->grads + span.offset,
                                      transfer->grads + span.offset, span.count * sizeof(float),
                                      cudaMemcpyHostToDevice, transfer->up);
    }
    if (result == 0) {
        result = stopwatch_end(&transfer->up_watch);
    }
    if (result == 0) {
        result = recorder_end(recorder, DEVICE_COPIES_UP, transfer->up);
    }
    if (result == 0) {
        result = (int)cudaEventRecord(transfer->returned, transfer->up);
    }
    if (result == 0) {
        result = (int)cudaStreamWaitEvent(compute, transfer->returned, 0);
    }
    return cuda_check(result, "copy mean gradients");
}

enum status transfer_await_grads(struct transfer *transfer, uint32_t first_op)
{
    assert(first_op < transfer->op_count);
    return cuda_check((int)cudaEventSynchronize(transfer->brought[first_op]), "run backward");
}

enum status transfer_read_clock(struct transfer *transfer, uint64_t *copy_ns)
{
    int result = stopwatch_read(&transfer->up_watch, copy_ns);
    if (result == 0) {
        result = stopwatch_read(&transfer->down_watch, copy_ns);
    }
    return cuda_check(result, "time copies");
}
