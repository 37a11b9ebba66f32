/* Barriers at which streams of several processes of a host wait for each other, by flags: words of
 * page-locked memory of the host, which all processes have mapped. A stream writes words, and waits
 * for them, by the driver's memory operations, on which no multiprocessor spins.
 *
 * There is a flag for each barrier, from each process to each other one. It is up (1) or down (0).
 * At a barrier a process raises its flags to all others, waits until theirs to it are up, and
 * lowers those. So what a stream does at a barrier is the same every time: a CUDA graph that has
 * captured it is launched again unchanged.
 *
 * A process must not raise a flag that the other one has not lowered yet. That never happens if
 * every process crosses the same barriers in the same order, again and again, and there are at
 * least two of them, A and B: between the k-th time that P raises A to Q and the next time, P
 * crosses B. There it waits for Q's flag of B, which Q raises after it has crossed A for the k-th
 * time, and so has lowered P's flag. The same holds for every other barrier, since each process
 * crosses another one before it comes back.
 *
 * Only Q lowers flags to Q. So Q's host may end a wait of Q's streams, and no other, by raising
 * flags to Q: those that a stream has already lowered have done their part. */
#ifndef WORKER_DEVICE_CUDA_MEMORY_FLAGS_H
#define WORKER_DEVICE_CUDA_MEMORY_FLAGS_H

#include "common/base/status.h"

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FLAGS_PROCESSES_MAX 16

struct flags_options {
    uint32_t rank, world; // of the process; at most FLAGS_PROCESSES_MAX
    uint32_t barrier_count;

    // (world, barrier_count, world) words: to whom, of which barrier, from whom. Borrowed; whole
    // pages, zeroed at first, and the same ones for all processes.
    void *memory;
    size_t bytes;
};

/* Zeroed: closed. */
struct flags {
    struct flags_options options;
    bool is_locked;
    CUdeviceptr address; // of the words, as this GPU sees them
    unsigned wait_flags; // of the driver's
    CUresult (*queue_operations)(CUstream stream, unsigned count,
                                 CUstreamBatchMemOpParams *operations, unsigned flags);
};

/* Tries on the stream what barriers queue, and waits. STATUS_UNSUPPORTED, logged, where that cannot
 * be. What it holds is flags_close's, also if it fails. */
enum status flags_open(struct flags *flags, const struct flags_options *options,
                       cudaStream_t stream);
void flags_close(struct flags *flags); // when nothing is queued

/* Whether the stream can capture a barrier, and a graph replay it: tries both, and waits. If not,
 * writes why. */
bool flags_try_capture(const struct flags *flags, cudaStream_t stream, char *ret_why,
                       size_t why_size);

/* Queues a barrier. What the stream has done before is then visible to all GPUs behind it. The
 * result is the driver's error, or 0. */
int flags_cross(const struct flags *flags, cudaStream_t stream, uint32_t barrier);

/* Ends this process's waits that are queued by now. Any thread. */
void flags_release(const struct flags *flags);

#endif
