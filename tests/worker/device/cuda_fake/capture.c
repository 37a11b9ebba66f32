/* Captures, graphs, and what is launched of them. */
#include "tests/worker/device/cuda_fake/capture.h"

#include "tests/worker/device/cuda_fake/runtime.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct fake_capture {
    cudaStream_t stream;
    struct CUgraph_st *graph;
    bool is_spoilt;
    bool has_branch; // another stream waits for it, and would have to be waited for
};

/* Tasks in a line: of one stream. */
struct CUgraph_st {
    struct fake_task *tasks; // (count); arguments are owned
    size_t count;
};

struct CUgraphExec_st {
    struct CUgraph_st graph;
};

static _Thread_local struct fake_capture current; // stream NULL: there is none

static void *must_allocate(void *memory, size_t bytes)
{
    void *larger = realloc(memory, bytes + 1);
    if (larger == NULL) {
        abort();
    }
    return larger;
}

static void add_task(struct CUgraph_st *graph, const struct fake_task *task)
{
    void *argument = must_allocate(NULL, task->argument_bytes);
    memcpy(argument, task->argument, task->argument_bytes);
    graph->tasks = must_allocate(graph->tasks, (graph->count + 1) * sizeof(*task));
    graph->tasks[graph->count] = *task;
    graph->tasks[graph->count++].argument = argument;
}

static void clear(struct CUgraph_st *graph)
{
    for (size_t i = 0; i < graph->count; i++) {
        union {
            const void *in;
            void *out;
        } cast = {.in = graph->tasks[i].argument};
        free(cast.out);
    }
    free(graph->tasks);
}

static cudaError_t spoil(cudaError_t error)
{
    current.is_spoilt = true;
    return fake_fail(error);
}

cudaError_t fake_capture_forbid(void)
{
    return current.stream != NULL ? spoil(cudaErrorStreamCaptureUnsupported) : cudaSuccess;
}

cudaError_t fake_capture_add(struct fake_capture *capture, const struct fake_task *task)
{
    assert(capture == &current); // of this thread
    if (capture->is_spoilt) {
        return fake_fail(cudaErrorStreamCaptureInvalidated);
    }
    add_task(capture->graph, task);
    return cudaSuccess;
}

cudaError_t fake_capture_wait(struct fake_capture *waiting, const struct fake_capture *inside)
{
    if (waiting == inside) {
        return cudaSuccess;
    }
    if (waiting != NULL) {
        return spoil(cudaErrorStreamCaptureIsolation);
    }
    current.has_branch = true;
    return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode)
{
    assert(mode == cudaStreamCaptureModeThreadLocal);
    assert(current.stream == NULL && fake_stream_capture(stream) == NULL);
    current = (struct fake_capture){.stream = stream,
                                    .graph = must_allocate(NULL, sizeof(*current.graph))};
    *current.graph = (struct CUgraph_st){0};
    fake_stream_set_capture(stream, &current);
    return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *ret_graph)
{
    const struct fake_capture ended = current;
    assert(ended.stream == stream);
    current = (struct fake_capture){0};
    fake_stream_set_capture(stream, NULL);
    *ret_graph = NULL;
    if (ended.is_spoilt || ended.has_branch) {
        cudaGraphDestroy(ended.graph);
        return fake_fail(ended.is_spoilt ? cudaErrorStreamCaptureInvalidated
                                         : cudaErrorStreamCaptureUnjoined);
    }
    *ret_graph = ended.graph;
    return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    clear(graph);
    free(graph);
    return cudaSuccess;
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count)
{
    assert(nodes == NULL);
    *count = graph->count;
    return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *ret_exec, cudaGraph_t graph,
                                 unsigned long long flags)
{
    cudaError_t error = fake_capture_forbid();
    assert(flags == 0);
    if (error == cudaSuccess && fake_has_mode("uninstantiable")) {
        error = fake_fail(cudaErrorMemoryAllocation);
    }
    if (error != cudaSuccess) {
        return error;
    }
    cudaGraphExec_t exec = must_allocate(NULL, sizeof(*exec));
    *exec = (struct CUgraphExec_st){0};
    for (size_t i = 0; i < graph->count; i++) {
        add_task(&exec->graph, &graph->tasks[i]);
    }
    *ret_exec = exec;
    return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec)
{
    clear(&exec->graph);
    free(exec);
    return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream)
{
    assert(current.stream == NULL);
    if (fake_has_mode("unlaunchable")) {
        return fake_fail(cudaErrorMemoryAllocation);
    }
    for (size_t i = 0; i < exec->graph.count; i++) {
        fake_stream_queue(stream, &exec->graph.tasks[i]);
    }
    return cudaSuccess;
}
