/* Parameters and gradients between the host's vectors and the GPU's, on a stream for each way: a
 * GPU copies both ways at once, and neither queues behind the other.
 *
 *     compute    forward 0 1 2 …              backward … 2 1 0
 *     up         ^ parameters, in pieces              ^ mean gradients of ranges that are through
 *     down                                        v gradients, a range of operations at a time
 *
 * Parameters go up in pieces, in the order of the vector, which is that of forward: a node waits
 * for the pieces that it reads. Gradients of a range come down as soon as its backward is done,
 * while that of the next range goes on. All waits between streams are events; the host waits for
 * gradients alone. A mean gradient goes up when its range has come down, which the host has waited
 * for; the next gradients of the range are computed, and so come down, after what computes has
 * waited for that. So neither way has to wait for the other.
 *
 * Only page-locked memory is copied while the host goes on. The vectors are the caller's, so they
 * are locked where they are; what cannot be locked is copied all the same, and waited for. */
#ifndef WORKER_DEVICE_CUDA_TRANSFER_H
#define WORKER_DEVICE_CUDA_TRANSFER_H

#include "worker/device/cuda/context.h"
#include "worker/device/cuda/stopwatch.h"

/* A part of a flat vector. */
struct cuda_span {
    size_t offset, count;
};

struct transfer {
    const struct node_context *context; // borrowed; has the GPU's vectors
    cudaStream_t up, down;              // of copies, owned, as are the events
    cudaEvent_t computed;               // the other stream is where a copy may begin
    cudaEvent_t joined;                 // the other way round: what is queued down is done

    float *params, *grads; // host, borrowed; grads NULL: evaluation
    float *statistics;     // host, borrowed, as they are
    bool locked_params, locked_grads, locked_statistics;
    bool keeps_statistics; // the GPU's are those that count
    size_t value_count, statistic_count;

    cudaEvent_t *sent; // (piece_count) of parameters
    uint32_t piece_count, pieces_awaited;

    cudaEvent_t *brought; // (op_count) gradients of a range, by its first operation
    uint32_t op_count;
    cudaEvent_t returned; // mean gradients are on the GPU
    struct cuda_span run; // of gradients that lie beside each other, not yet queued
    struct stopwatch up_watch, down_watch;
};

/* Zeroed before. What it holds is transfer_finish's, also if it fails. Reports. */
enum status transfer_init(struct transfer *transfer, const struct node_context *context,
                          const struct program_options *options, size_t value_count,
                          size_t statistic_count);
void transfer_finish(struct transfer *transfer); // waits; zeroed is fine

/* Queues the host's parameters. They are read until a node has waited for the last of them. Timed:
 * transfer_read_clock will count it, as it does all copies of gradients. */
enum status transfer_send_params(struct transfer *transfer, bool is_timed);

/* Queues, before a forward, the host's statistics if those count. From a training forward on the
 * GPU's do. */
enum status transfer_send_statistics(struct transfer *transfer, bool is_training);

/* Statistics to the host, whose count again, when `forward` has come. Waits for no backward. */
enum status transfer_fetch_statistics(struct transfer *transfer, cudaEvent_t forward);

/* Keeps the computing stream from going on before parameters up to `end` are there. */
enum status transfer_await_params(struct transfer *transfer, size_t end);

/* Whether whoever has waited for the parameters up to `awaited` need not for those up to `end`. */
bool transfer_covers(size_t awaited, size_t end);

/* Queues gradients behind what has been queued to compute, those of a range in several spans. */
enum status transfer_begin_range(struct transfer *transfer);
enum status transfer_bring(struct transfer *transfer, struct cuda_span span);
enum status transfer_end_range(struct transfer *transfer, uint32_t first_op);

/* In the place of those three, for gradients that stay: notes where the backward of a range ends,
 * and keeps copies, and what else is queued behind them, from going on before it. */
enum status transfer_mark_range(struct transfer *transfer, uint32_t first_op);
enum status transfer_follow_range(struct transfer *transfer, uint32_t first_op);

/* Keep what is queued down from here on from going on before what has been queued to compute, and
 * the other way round. A capture of the computing stream goes on in the other one from the fork to
 * the join. */
enum status transfer_fork(struct transfer *transfer);
enum status transfer_join(struct transfer *transfer);

/* Queues mean gradients of the host, and keeps the computing stream from going on before they are
 * there. */
enum status transfer_send_grads(struct transfer *transfer, struct cuda_span span);

/* Waits until the gradients of a range, and of those queued before it, are on the host. */
enum status transfer_await_grads(struct transfer *transfer, uint32_t first_op);

/* Adds to *copy_ns how long copies took that are over, each once. Does not wait. */
enum status transfer_read_clock(struct transfer *transfer, uint64_t *copy_ns);

#endif
