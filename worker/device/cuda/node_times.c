/* Pairs of events with time, one for each pass of each node. */
#include "worker/device/cuda/node_times.h"

#include <assert.h>
#include <stdlib.h>

static cudaEvent_t *pair_of(const struct node_times *times, enum node_pass pass, uint32_t node)
{
    return &times->events[2 * ((size_t)pass * times->node_count + node)];
}

enum status node_times_init(struct node_times *times, uint32_t node_count)
{
    int result = 0;
    times->node_count = node_count;
    times->events = calloc(4 * (size_t)node_count + 1, sizeof(cudaEvent_t));
    if (times->events == NULL) {
        return STATUS_NO_MEMORY;
    }
    for (size_t i = 0; i < 4 * (size_t)node_count && result == 0; i++) {
        result = (int)cudaEventCreateWithFlags(&times->events[i], cudaEventDefault);
    }
    return cuda_check(result, "create events");
}

void node_times_finish(struct node_times *times)
{
    for (size_t i = 0; times->events != NULL && i < 4 * (size_t)times->node_count; i++) {
        if (times->events[i] != NULL) {
            cudaEventDestroy(times->events[i]);
        }
    }
    free(times->events);
    *times = (struct node_times){0};
}

enum status node_times_begin(struct node_times *times, enum node_pass pass, uint32_t node,
                             cudaStream_t stream)
{
    return times->events == NULL
               ? STATUS_OK
               : cuda_check((int)cudaEventRecord(pair_of(times, pass, node)[0], stream),
                            "time an operation");
}

enum status node_times_end(struct node_times *times, enum node_pass pass, uint32_t node,
                           cudaStream_t stream)
{
    return times->events == NULL
               ? STATUS_OK
               : cuda_check((int)cudaEventRecord(pair_of(times, pass, node)[1], stream),
                            "time an operation");
}

enum status node_times_read(struct node_times *times, const struct graph *graph,
                            cudaStream_t stream, uint32_t op_count, struct op_time *ret_times)
{
    assert(times->events != NULL && times->node_count == graph->node_count);
    int result = (int)cudaStreamSynchronize(stream);
    for (uint32_t i = 0; i < op_count; i++) {
        ret_times[i] = (struct op_time){0};
    }
    for (uint32_t i = 0; i < times->node_count && result == 0; i++) {
        struct op_time *time = &ret_times[graph->node_ops[i]];
        for (int pass = NODE_FORWARD; pass <= NODE_BACKWARD && result == 0; pass++) {
            const cudaEvent_t *pair = pair_of(times, (enum node_pass)pass, i);
            float ms = 0;
            result = (int)cudaEventElapsedTime(&ms, pair[0], pair[1]);
            *(pass == NODE_FORWARD ? &time->forward_us : &time->backward_us) += 1000 * ms;
        }
    }
    return cuda_check(result, "read the times of operations");
}
