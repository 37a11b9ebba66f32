/* How long copies on a stream take, by pairs of events with time: one before a run of copies, one
 * behind it. What the stream waited for before it does not count.
 *
 * Nobody waits for an event of a stopwatch. They are read in their order, as far as the stream has
 * come, when somebody has waited for the stream anyway. */
#ifndef WORKER_DEVICE_CUDA_STOPWATCH_H
#define WORKER_DEVICE_CUDA_STOPWATCH_H

#include "common/base/status.h"

#include <cuda_runtime_api.h>

#include <stdbool.h>
#include <stdint.h>

#define STOPWATCH_LAPS 1024 // that nobody has read; more are not timed. A step has as many buckets

/* Zeroed: stands still. */
struct stopwatch {
    cudaStream_t stream;                                      // borrowed
    cudaEvent_t begins[STOPWATCH_LAPS], ends[STOPWATCH_LAPS]; // owned; a ring
    uint32_t first, count;                                    // of laps that were not read
    bool is_running;                                          // between begin and end
};

/* Borrows the stream until finish. What it holds is stopwatch_finish's, also if it fails. The
 * result is CUDA's error, or 0; as below. */
int stopwatch_init(struct stopwatch *stopwatch, cudaStream_t stream);
void stopwatch_finish(struct stopwatch *stopwatch); // when the stream has ended

/* Around a run of copies, which may be empty. */
int stopwatch_begin(struct stopwatch *stopwatch);
int stopwatch_end(struct stopwatch *stopwatch);

/* Adds to *sum_ns how long the laps took that are over. Does not wait. */
int stopwatch_read(struct stopwatch *stopwatch, uint64_t *sum_ns);

#endif
