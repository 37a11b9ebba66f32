/* Streams that capture, and CUDA graphs. What CUDA forbids a thread that captures is refused here,
 * and spoils the capture: waits, questions, memory, and what a library does once, the first time
 * that it is used. Captures of other threads are no concern (cudaStreamCaptureModeThreadLocal). */
#ifndef TESTS_WORKER_DEVICE_CUDA_FAKE_CAPTURE_H
#define TESTS_WORKER_DEVICE_CUDA_FAKE_CAPTURE_H

#include "tests/worker/device/cuda_fake/stream.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Spoils what this thread captures, and fails; cudaSuccess if it captures nothing. */
cudaError_t fake_capture_forbid(void);

cudaError_t fake_capture_add(struct fake_capture *capture, const struct fake_task *task);

/* A stream that `waiting` captures, or NULL, waits for an event that was recorded inside a capture,
 * or NULL. */
cudaError_t fake_capture_wait(struct fake_capture *waiting, const struct fake_capture *inside);

#ifdef __cplusplus
}
#endif

#endif
