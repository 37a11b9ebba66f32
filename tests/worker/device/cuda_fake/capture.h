/* Streams that capture, and CUDA graphs. What CUDA forbids a thread that captures is refused here,
 * and spoils the capture: waits, questions, memory, and what a library does once, the first time
 * that it is used. Captures of other threads are no concern (cudaStreamCaptureModeThreadLocal).
 *
 * A capture begins in one stream, and other streams join it by waiting for an event that was
 * recorded in it. Each is a branch, and has to be waited for before the capture ends. A graph's
 * branches but the first have streams of their own, between which events are recorded and waited
 * for at each launch: so branches run beside each other, and only as far as they were captured to.
 */
#ifndef TESTS_WORKER_DEVICE_CUDA_FAKE_CAPTURE_H
#define TESTS_WORKER_DEVICE_CUDA_FAKE_CAPTURE_H

#include "tests/worker/device/cuda_fake/stream.h"

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Where in a capture an event was recorded. */
struct fake_mark {
    uint64_t capture; // its number; 0: outside of any
    uint32_t index;   // of the capture's marks
};

/* Spoils what this thread captures, and fails; cudaSuccess if it captures nothing. */
cudaError_t fake_capture_forbid(void);

cudaError_t fake_capture_add(cudaStream_t stream, const struct fake_task *task);

/* In a stream that captures, or not. */
struct fake_mark fake_capture_record(cudaStream_t stream);

/* A stream that captures, or an event that was recorded in a capture; or both. */
cudaError_t fake_capture_wait(cudaStream_t stream, struct fake_mark mark);

/* Of a stream that is destroyed: spoils the capture that it is a branch of. */
void fake_capture_leave(cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
