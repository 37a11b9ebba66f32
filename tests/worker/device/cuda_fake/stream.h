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
 * Time is counted, not measured: a stream's clock goes on by a nanosecond for each byte that it
 * copies and by a microsecond for anything else it does, and to that of whoever it waits for.
 *
 * With FAKE_CUDA=lazy a stream runs nothing before somebody waits for it, and then no more
 * than is waited for: whoever reads without a wait reads what was there before, in every run. With
 * =idle it runs nothing at all: for tests of what is launched, not of what that computes. */
#ifndef TESTS_WORKER_DEVICE_CUDA_FAKE_STREAM_H
#define TESTS_WORKER_DEVICE_CUDA_FAKE_STREAM_H

#include <cuda_runtime_api.h>

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a stream is to do: run(argument), on a copy of the argument. */
struct fake_task {
    void (*run)(void *argument);
    const void *argument;
    size_t argument_bytes;
    uint64_t cost_ns; // of the stream's time
};

#define FAKE_LAUNCH_NS 1000

/* Into the graph of a stream that captures. */
cudaError_t fake_stream_queue(cudaStream_t stream, const struct fake_task *task);

/* The same, of a kernel. */
cudaError_t fake_stream_launch(cudaStream_t stream, void (*run)(void *argument),
                               const void *argument, size_t argument_bytes);

/* What a graph has captured, at its launch. */
void fake_stream_replay(cudaStream_t stream, const struct fake_task *task);

/* How much all streams were given to do so far: launches, copies and fills, those of graphs as
 * well; and how often the host gave them something, a graph once. A test that has loaded the fake
 * as a module finds these by their names. */
uint64_t fake_stream_queued(void);
uint64_t fake_stream_handed_over(void);
void fake_stream_hand_over(void); // counts a graph
/* The same, which takes its own time. */
cudaError_t fake_stream_launch_task(cudaStream_t stream, const struct fake_task *task);

/* What the stream's work is captured for, or NULL: see capture.h. */
struct fake_capture;
struct fake_capture *fake_stream_capture(cudaStream_t stream);
void fake_stream_set_capture(cudaStream_t stream, struct fake_capture *capture);

#ifdef __cplusplus
}
#endif

#endif
