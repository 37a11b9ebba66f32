/* Takes spans from a device, and writes them on the tapes of its streams. */
#include "worker/train/stream_tapes.h"

#define SPANS 256 // read at once

static const enum trace_thread threads[DEVICE_STREAM_COUNT] = {
    [DEVICE_COMPUTES] = TRACE_GPU_COMPUTE,
    [DEVICE_BATCHES] = TRACE_GPU_BATCHES,
    [DEVICE_COPIES_UP] = TRACE_GPU_UP,
    [DEVICE_COPIES_DOWN] = TRACE_GPU_DOWN,
};

static const enum trace_kind kinds[] = {
    [DEVICE_FORWARD] = TRACE_GPU_FORWARD, [DEVICE_BACKWARD] = TRACE_GPU_BACKWARD,
    [DEVICE_UPDATE] = TRACE_GPU_UPDATE,   [DEVICE_COPY] = TRACE_GPU_COPY,
    [DEVICE_SUM] = TRACE_GPU_SUM,
};

_Static_assert(DEVICE_NO_BUCKET == TRACE_NO_BUCKET, "a span's bucket is an event's");

static bool is_open(const struct stream_tapes *streams)
{
    return streams->tapes[0] != NULL;
}

enum status stream_tapes_open(struct stream_tapes *streams, struct trace *trace,
                              const struct model *model, uint32_t number,
                              const struct trace_window *window)
{
    enum status status = STATUS_OK;
    if (!trace_has_folder(trace) || !model_has_spans(model)) {
        return STATUS_OK;
    }
    for (int i = 0; i < DEVICE_STREAM_COUNT && status == STATUS_OK; i++) {
        status = trace_open_tape(trace, threads[i], number, window, &streams->tapes[i]);
    }
    return status;
}

void stream_tapes_begin_step(const struct stream_tapes *streams, struct model *model, uint64_t step)
{
    if (is_open(streams)) {
        model_record_spans(model, trace_records_step(streams->tapes[0], step), step);
    }
}

static void record(const struct stream_tapes *streams, const struct device_span *span)
{
    trace_record(streams->tapes[span->stream], span->begin_ns, span->end_ns,
                 &(struct trace_tag){kinds[span->work], span->bucket, .step = span->step});
}

enum status stream_tapes_end_step(const struct stream_tapes *streams, struct model *model)
{
    struct device_span spans[SPANS];
    size_t count = SPANS;
    enum status status = STATUS_OK;
    if (!is_open(streams)) {
        return STATUS_OK;
    }
    model_record_spans(model, false, 0);
    while (count == SPANS && status == STATUS_OK) {
        uint64_t dropped = 0;
        status = model_read_spans(model, spans, SPANS, &count, &dropped);
        streams->tapes[0]->dropped += dropped;
        for (size_t i = 0; i < count; i++) {
            record(streams, &spans[i]);
        }
    }
    return status;
}
