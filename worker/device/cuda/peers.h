/* The mean of gradients over the GPUs of a host, each of which belongs to a process of its own: no
 * value comes to the host.
 *
 *     worker 0   backward of b | ready b | wait: all ready | sum part 0 into all | summed | wait
 *     worker 1   backward of b | ready b | wait: all ready | sum part 1 into all | summed | wait
 *
 * Processes map each other's vectors by CUDA's handles for that (IPC), so the GPUs have to reach
 * each other's memory; several processes on one GPU do. Flags are words of page-locked memory of
 * the host, which all processes have mapped: a stream writes its own and waits for the others' by
 * the driver's memory operations, on which no multiprocessor spins. The host queues all of it and
 * waits for nothing; sums go on beside the backward of later buckets, on the stream of copies.
 *
 * A worker that is lost leaves the others' streams waiting. The one that notices writes the flags
 * in its place.
 *
 * Where NCCL takes the mean, it replaces flags and sums, and all else stays. */
#ifndef WORKER_DEVICE_CUDA_PEERS_H
#define WORKER_DEVICE_CUDA_PEERS_H

#include "worker/device/cuda/nccl/collective.h"
#include "worker/device/cuda/transfer.h"

#include <cuda.h>

/* What is known of a bucket. */
struct peer_bucket {
    cudaEvent_t summed; // owned
    size_t offset;
    bool is_queued; // a sum that no update has taken
};

/* Zeroed: there are none. */
struct peers {
    uint32_t rank, world;
    float *grads[CUDA_PEERS_MAX]; // (world) by rank; this GPU's own is borrowed
    void *mapped[CUDA_PEERS_MAX]; // (world) what has to be unmapped
    struct peer_bucket *buckets;  // (bucket_count), owned
    uint32_t bucket_count;
    struct collective *collective; // borrowed; NULL: the GPUs sum by themselves
    void *flags;                   // host, borrowed; NULL: not locked
    CUdeviceptr flag_address;      // where this GPU sees them
    unsigned wait_flags;           // of the driver's
    CUresult (*queue_operations)(CUstream stream, unsigned count,
                                 CUstreamBatchMemOpParams *operations, unsigned flags);
};

/* Writes how others reach the gradients, which lie in an allocation of the GPU. Logs. */
enum status peers_share(const float *grads, const void *allocation, size_t value_count,
                        unsigned char ret_share[PROGRAM_SHARE_BYTES]);

/* Zeroed before. What it holds is peers_finish's, also if it fails. Waits for the stream, on which
 * it tries what sums queue. Logs. */
enum status peers_meet(struct peers *peers, const struct program_peers *options, float *grads,
                       size_t value_count, cudaStream_t stream);

/* The same by NCCL, for which the collective is joined if it has not been; zeroed before, or joined
 * with other buckets, whose sums have all been applied. */
enum status peers_join(struct peers *peers, struct collective *collective,
                       const struct program_joining *options);
void peers_finish(struct peers *peers); // when nothing is queued; zeroed is fine

/* Queues a sum in the place of gradients that come down, behind the backward of its range. */
enum status peers_sum(struct peers *peers, struct transfer *transfer,
                      const struct program_sum *sum);

/* Keeps the computing stream from going on before the means of a span are there. */
enum status peers_await(struct peers *peers, const struct transfer *transfer,
                        struct cuda_span span);

#endif
