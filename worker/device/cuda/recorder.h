/* What the streams of a program do, and when, by pairs of events around what is queued on them. The
 * GPU stamps an event when it comes to it. The host's time of one event, the anchor, makes times of
 * the host of all others. GPUs' clocks drift, so the anchor is set anew once a second: the host
 * waits for the computing stream then, between two steps.
 *
 * An event lies beside a CUDA graph, never in one, so a span is a unit of launches: forward,
 * backward of a bucket. */
#ifndef WORKER_DEVICE_CUDA_RECORDER_H
#define WORKER_DEVICE_CUDA_RECORDER_H

#include "worker/device/device_spans.h"

#include <cuda_runtime_api.h>

#define RECORDER_LAPS 4096 // that nobody has read; more are dropped, and counted

struct recorder_lap {
    cudaEvent_t begin, end; // owned
    struct device_span span;
    bool is_ended; // queued whole
};

/* Zeroed: records nothing. */
struct recorder {
    struct device_recording now; // what spans that begin are of
    struct recorder_lap *laps;   // (RECORDER_LAPS) a ring, owned; NULL: nothing was recorded yet
    uint32_t first, count;       // of laps that were not read
    struct recorder_lap *open[DEVICE_STREAM_COUNT]; // between begin and end
    uint64_t dropped;
    cudaEvent_t anchor; // owned
    uint64_t anchor_ns; // of the host
};

void recorder_finish(struct recorder *recorder); // when streams have ended; zeroed is fine

/* Before a step's first launch: what it is of. Sets the anchor if that is due. Reports. */
enum status recorder_start(struct recorder *recorder, const struct device_recording *now,
                           cudaStream_t compute);

/* Around what is queued on a stream, one span of it at a time. The result is CUDA's error, or 0. */
int recorder_begin(struct recorder *recorder, enum device_stream stream, enum device_work work,
                   uint32_t bucket, cudaStream_t queue);
int recorder_end(struct recorder *recorder, enum device_stream stream, cudaStream_t queue);

/* See program_read_spans. Reports. */
enum status recorder_read(struct recorder *recorder, struct device_span *ret_spans, size_t span_max,
                          size_t *ret_count);

#endif
