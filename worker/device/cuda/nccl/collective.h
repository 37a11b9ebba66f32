/* The mean of gradients over the GPUs of all workers, wherever they are, by NCCL.
 *
 *     introduce   each worker's GPU says which it is; rank 0's also where it waits
 *     join        a communicator, once the id of rank 0 has reached all
 *     mean        queued on a stream, bucket by bucket, in the same order everywhere
 *     stop        on any thread: a communicator that is aborted waits for nobody
 *
 * No call blocks inside NCCL: the communicator is a non-blocking one, whose calls may go on in the
 * library's own threads. They are waited for here, in naps, so that a stop comes through; a mutex
 * keeps the communicator from being aborted while another thread is in a call. */
#ifndef WORKER_DEVICE_CUDA_NCCL_COLLECTIVE_H
#define WORKER_DEVICE_CUDA_NCCL_COLLECTIVE_H

#include "worker/device/cuda/nccl/nccl.h"
#include "worker/device/device.h"

#include <pthread.h>

struct collective {
    pthread_mutex_t mutex;
    const struct nccl_library *library;
    struct nccl_comm *comm; // owned; NULL: not joined, or stopped
    bool is_stopped;
};

/* Reports why not. */
enum status collective_introduce(int gpu, bool is_first,
                                 struct device_introduction *ret_introduction);

void collective_init(struct collective *collective);
void collective_finish(struct collective *collective); // when all workers have what they need

/* See program_join. Once; reports. */
enum status collective_join(struct collective *collective, const struct program_joining *joining);

/* Queues: the values become the mean over all workers. STATUS_INTERRUPTED after a stop. */
enum status collective_mean(struct collective *collective, float *values, size_t count,
                            cudaStream_t stream);

void collective_stop(struct collective *collective);

#endif
