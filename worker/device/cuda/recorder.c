/* Records pairs of CUDA events, and turns them into times of the host. */
#include "worker/device/cuda/recorder.h"

#include "common/base/clock.h"
#include "worker/device/cuda/context.h"

#include <assert.h>
#include <stdlib.h>

#define ANCHOR_NS UINT64_C(1000000000) // a clock that is 50 ppm fast is 50 us ahead by then

static int create_laps(struct recorder *recorder)
{
    int result = (int)cudaEventCreateWithFlags(&recorder->anchor, cudaEventDefault);
    recorder->laps = calloc(RECORDER_LAPS, sizeof(*recorder->laps));
    if (recorder->laps == NULL) {
        return (int)cudaErrorMemoryAllocation;
    }
    for (uint32_t i = 0; i < RECORDER_LAPS && result == 0; i++) {
        struct recorder_lap *lap = &recorder->laps[i];
        result = (int)cudaEventCreateWithFlags(&lap->begin, cudaEventDefault);
        if (result == 0) {
            result = (int)cudaEventCreateWithFlags(&lap->end, cudaEventDefault);
        }
    }
    return result;
}

static void destroy_event(cudaEvent_t event)
{
    if (event != NULL) {
        cudaEventDestroy(event);
    }
}

void recorder_finish(struct recorder *recorder)
{
    for (uint32_t i = 0; recorder->laps != NULL && i < RECORDER_LAPS; i++) {
        destroy_event(recorder->laps[i].begin);
        destroy_event(recorder->laps[i].end);
    }
    destroy_event(recorder->anchor);
    free(recorder->laps);
    *recorder = (struct recorder){0};
}

enum status recorder_start(struct recorder *recorder, const struct device_recording *now,
                           cudaStream_t compute)
{
    int result = 0;
    recorder->now = *now;
    if (!now->is_on) {
        return STATUS_OK;
    }
    if (recorder->laps == NULL) {
        result = create_laps(recorder);
    }
    if (result != 0 ||
        (recorder->anchor_ns > 0 && clock_now_ns() - recorder->anchor_ns < ANCHOR_NS)) {
        return cuda_check(result, "create events for a timeline");
    }
    result = (int)cudaEventRecord(recorder->anchor, compute);
    if (result == 0) {
        result = (int)cudaEventSynchronize(recorder->anchor);
    }
    recorder->anchor_ns = clock_now_ns();
    return cuda_check(result, "compare clocks");
}

int recorder_begin(struct recorder *recorder, enum device_stream stream, enum device_work work,
                   uint32_t bucket, cudaStream_t queue)
{
    if (!recorder->now.is_on || recorder->laps == NULL) {
        return 0;
    }
    assert(recorder->open[stream] == NULL);
    if (recorder->count == RECORDER_LAPS) {
        recorder->dropped++;
        return 0;
    }
    struct recorder_lap *lap = &recorder->laps[(recorder->first + recorder->count) % RECORDER_LAPS];
    recorder->count++;
    recorder->open[stream] = lap;
    lap->span = (struct device_span){
        .stream = stream, .work = work, .step = recorder->now.step, .bucket = bucket};
    lap->is_ended = false;
    return (int)cudaEventRecord(lap->begin, queue);
}

int recorder_end(struct recorder *recorder, enum device_stream stream, cudaStream_t queue)
{
    struct recorder_lap *lap = recorder->open[stream];
    recorder->open[stream] = NULL;
    if (lap == NULL) {
        return 0;
    }
    lap->is_ended = true;
    return (int)cudaEventRecord(lap->end, queue);
}

/* When an event was reached, by the host's clock. It may have been before the anchor. */
static int time_of(const struct recorder *recorder, cudaEvent_t event, uint64_t *ret_ns)
{
    float ms = 0;
    int result = (int)cudaEventElapsedTime(&ms, recorder->anchor, event);
    *ret_ns = recorder->anchor_ns + (uint64_t)(int64_t)((double)ms * 1e6);
    return result;
}

enum status recorder_read(struct recorder *recorder, struct device_span *ret_spans, size_t span_max,
                          size_t *ret_count)
{
    int result = 0;
    *ret_count = 0;
    while (recorder->count > 0 && *ret_count < span_max && result == 0) {
        struct recorder_lap *lap = &recorder->laps[recorder->first];
        result = lap->is_ended ? (int)cudaEventQuery(lap->end) : (int)cudaErrorNotReady;
        if (result == 0) {
            result = time_of(recorder, lap->begin, &lap->span.begin_ns);
        }
        if (result == 0) {
            result = time_of(recorder, lap->end, &lap->span.end_ns);
        }
        if (result == 0) {
            ret_spans[(*ret_count)++] = lap->span;
            recorder->first = (recorder->first + 1) % RECORDER_LAPS;
            recorder->count--;
        }
    }
    if (result == (int)cudaErrorNotReady) {
        (void)cudaGetLastError(); // it is none
        result = 0;
    }
    return cuda_check(result, "time streams");
}
