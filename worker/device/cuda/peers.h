/* The mean of gradients over the GPUs of a host, each of which belongs to a process of its own: no
 * value comes to the host.
 *
 *     worker 0   backward of b | all are ready | sum part 0 into all | all have summed
 *     worker 1   backward of b | all are ready | sum part 1 into all | all have summed
 *
 * Processes map each other's vectors by CUDA's handles for that (IPC), so the GPUs have to reach
 * each other's memory; several processes on one GPU do. They wait for each other at two barriers
 * for each bucket (flags.h). The host queues all of it and waits for nothing; sums go on beside the
 * backward of later buckets, on the stream of copies.
 *
 * What a sum queues is the same in every step. So where streams can capture barriers, backward and
 * all sums are one CUDA graph, in which the stream of copies is a branch:
 *
 *     compute    backward of 0 | backward of 1 | backward of 2 |       | updates
 *                             \               \               \     /
 *     down                      sum of 0        sum of 1        sum of 2
 *
 * Elsewhere, and in steps that are not replayed, sums are launched between units of backward. Each
 * worker decides that for itself: the others see no difference.
 *
 * In whatever order a GPU takes up this work, workers never wait for each other for ever. Of all
 * sums that are not over, take the first one, by step and then by bucket. The sums before it are
 * over, so it waits for the backward of its own bucket alone. On no worker does that wait for
 * anything but sums of the step before.
 *
 * A worker that is lost leaves the others' streams waiting. Each of them then raises by
 * itself the flags that it waits for, until its streams are done.
 *
 * Where NCCL takes the mean, it replaces flags and sums, and all else stays. */
#ifndef WORKER_DEVICE_CUDA_PEERS_H
#define WORKER_DEVICE_CUDA_PEERS_H

#include "worker/device/cuda/memory/flags.h"
#include "worker/device/cuda/nccl/collective.h"
#include "worker/device/cuda/transfer.h"

/* What is known of a bucket. */
struct peer_bucket {
    struct program_sum sum;
    cudaEvent_t summed; // owned
    bool is_queued;     // a sum that no update has taken
};

/* Zeroed: there are none. */
struct peers {
    uint32_t rank, world;
    float *grads[CUDA_PEERS_MAX]; // (world) by rank; this GPU's own is borrowed
    void *mapped[CUDA_PEERS_MAX]; // (world) what has to be unmapped
    struct peer_bucket *buckets;  // (bucket_count), owned
    uint32_t bucket_count;
    struct collective *collective; // borrowed; NULL: the GPUs sum by themselves
    struct flags flags;
    bool can_be_captured; // what sums queue
};

/* Writes how others reach the gradients, which lie in an allocation of the GPU. Logs. */
enum status peers_share(const float *grads, const void *allocation, size_t value_count,
                        unsigned char ret_share[PROGRAM_SHARE_BYTES]);

/* Zeroed before. What it holds is peers_finish's, also if it fails. Waits for the stream, on which
 * it tries what sums queue. Logs. */
enum status peers_meet(struct peers *peers, const struct program_peers *options, float *grads,
                       size_t value_count, cudaStream_t stream);

/* After a meeting, of a program that replays launches: finds out whether sums can be replayed as
 * well. Waits for the stream. Logs why not. */
void peers_try_capture(struct peers *peers, cudaStream_t stream);

/* The same by NCCL, for which the collective is joined if it has not been; zeroed before, or joined
 * with other buckets, whose sums have all been applied. */
enum status peers_join(struct peers *peers, struct collective *collective,
                       const struct program_joining *options);
void peers_finish(struct peers *peers); // when nothing is queued; zeroed is fine

/* Waits until the streams have done what was queued, and ends their waits for other workers, which
 * are to be void. */
void peers_await_end(const struct peers *peers, const struct transfer *transfer);

/* Queues the sum of a bucket in the place of gradients that come down, behind all that has been
 * queued to compute. */
enum status peers_sum(struct peers *peers, struct transfer *transfer, uint32_t bucket);

/* The same within a unit that may be captured, which ends with peers_end_unit: from there on what
 * computes is behind all of its sums. */
enum status peers_sum_in_unit(const struct peers *peers, struct transfer *transfer,
                              uint32_t bucket);
enum status peers_end_unit(struct transfer *transfer);

/* As peers_sum, of those that have joined: behind the backward of its range, whose end has been
 * marked. */
enum status peers_sum_joined(struct peers *peers, struct transfer *transfer,
                             const struct program_sum *sum);

/* Keeps the computing stream from going on before the means of a span are there. */
enum status peers_await(struct peers *peers, const struct transfer *transfer,
                        struct cuda_span span);

#endif
