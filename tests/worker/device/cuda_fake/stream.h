/* Streams and events of CUDA as threads of the host: the part of the fake runtime that decides what
 * may run at the same time.
 *
 * The backend's own C files are linked against the fake in the place of CUDA's libraries. What then
 * is shown is the logic of the host: which work is queued where, what waits for what, which memory
 * is whose. It is not shown that a GPU computes the same.
 *
 *     a stream        a thread, and a queue of tasks that it runs in order
 *     device memory   ordinary memory, filled with not-a-number
 *     a launch        a task that runs the kernels' bodies in a loop
 *
 * So the thread sanitizer sees a missing event as the race that it is. For that, what a stream has
 * done must reach the host by waits alone: queueing takes no lock that a stream's thread has held.
 *
 * With RINGSIDE_FAKE_CUDA=lazy a stream runs nothing before somebody waits for it, and then no more
 * than is waited for: whoever reads without a wait reads what was there before, in every run. */
#ifndef TESTS_WORKER_DEVICE_CUDA_FAKE_STREAM_H
#define TESTS_WORKER_DEVICE_CUDA_FAKE_STREAM_H

#include <cuda_runtime_api.h>

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Queues run(argument). The task owns its argument. */
void fake_stream_queue(cudaStream_t stream, void (*run)(void *argument), void *argument);

/* The same with a copy of `size` bytes, which are freed after the task. */
void fake_stream_queue_copy(cudaStream_t stream, void (*run)(void *argument), const void *argument,
                            size_t size);

#ifdef __cplusplus
}
#endif

#endif
