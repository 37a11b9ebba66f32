/* Measures the time between pairs of CUDA events. */
#include "worker/device/cuda/stopwatch.h"

#include <assert.h>

int stopwatch_init(struct stopwatch *stopwatch, cudaStream_t stream)
{
    int result = 0;
    stopwatch->stream = stream;
    for (uint32_t i = 0; i < STOPWATCH_LAPS && result == 0; i++) {
        result = (int)cudaEventCreateWithFlags(&stopwatch->begins[i], cudaEventDefault);
        if (result == 0) {
            result = (int)cudaEventCreateWithFlags(&stopwatch->ends[i], cudaEventDefault);
        }
    }
    return result;
}

void stopwatch_finish(struct stopwatch *stopwatch)
{
    for (uint32_t i = 0; i < STOPWATCH_LAPS; i++) {
        if (stopwatch->begins[i] != NULL) {
            cudaEventDestroy(stopwatch->begins[i]);
        }
        if (stopwatch->ends[i] != NULL) {
            cudaEventDestroy(stopwatch->ends[i]);
        }
    }
    *stopwatch = (struct stopwatch){0};
}

static uint32_t next_lap(const struct stopwatch *stopwatch)
{
    return (stopwatch->first + stopwatch->count) % STOPWATCH_LAPS;
}

int stopwatch_begin(struct stopwatch *stopwatch)
{
    assert(!stopwatch->is_running);
    if (stopwatch->count == STOPWATCH_LAPS) {
        return 0;
    }
    stopwatch->is_running = true;
    return (int)cudaEventRecord(stopwatch->begins[next_lap(stopwatch)], stopwatch->stream);
}

int stopwatch_end(struct stopwatch *stopwatch)
{
    if (!stopwatch->is_running) {
        return 0;
    }
    int result = (int)cudaEventRecord(stopwatch->ends[next_lap(stopwatch)], stopwatch->stream);
    stopwatch->is_running = false;
    stopwatch->count++;
    return result;
}

int stopwatch_read(struct stopwatch *stopwatch, uint64_t *sum_ns)
{
    int result = 0;
    while (stopwatch->count > 0 && result == 0) {
        uint32_t lap = stopwatch->first;
        float ms = 0;
        result = (int)cudaEventQuery(stopwatch->ends[lap]);
        if (result == 0) {
            result = (int)cudaEventElapsedTime(&ms, stopwatch->begins[lap], stopwatch->ends[lap]);
        }
        if (result == 0) {
            *sum_ns += (uint64_t)((double)ms * 1e6 + 0.5);
            stopwatch->first = (lap + 1) % STOPWATCH_LAPS;
            stopwatch->count--;
        }
    }
    if (result == (int)cudaErrorNotReady) {
        (void)cudaGetLastError(); // it is none
        result = 0;
    }
    return result;
}
