/* What the streams of a device did, and when, for a timeline: a device that computes while the host
 * goes on has a time of its own. */
#ifndef WORKER_DEVICE_DEVICE_SPANS_H
#define WORKER_DEVICE_DEVICE_SPANS_H

#include "common/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DEVICE_NO_BUCKET UINT32_MAX

enum device_stream {
    DEVICE_COMPUTES,    // passes, updates
    DEVICE_BATCHES,     // copies of batches to the device
    DEVICE_COPIES_UP,   // of parameters and mean gradients to the device
    DEVICE_COPIES_DOWN, // of gradients to the host; sums with other devices
    DEVICE_STREAM_COUNT
};

enum device_work { DEVICE_FORWARD, DEVICE_BACKWARD, DEVICE_UPDATE, DEVICE_COPY, DEVICE_SUM };

/* Steps and buckets as the caller counts them. */
struct device_span {
    enum device_stream stream;
    enum device_work work;
    uint64_t step;
    uint32_t bucket;           // DEVICE_NO_BUCKET: all of them, or none
    uint64_t begin_ns, end_ns; // of clock_now_ns
};

/* The caller's to set, before it queues: what spans say. Spans are kept where it is on. */
struct device_recording {
    bool is_on;
    uint64_t step;
    uint32_t bucket;
};

struct program;

/* Whether a program's device has streams that can be recorded. */
bool program_has_spans(const struct program *program);

/* Spans that are over, each once, those of a stream in their order: as many as there is room for.
 * Does not wait. *ret_dropped: spans since the last call for which the device had no room. */
enum status program_read_spans(struct program *program, struct device_span *ret_spans,
                               size_t span_max, size_t *ret_count, uint64_t *ret_dropped);

#endif
