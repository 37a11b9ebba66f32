/* Captures, graphs, and what is launched of them. */
#include "tests/worker/device/cuda_fake/capture.h"

#include "tests/worker/device/cuda_fake/runtime.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define BRANCHES_MAX 4
#define MARKS_MAX    4096

/* What a branch does next. */
struct entry {
    enum { ENTRY_TASK, ENTRY_RECORD, ENTRY_WAIT } kind;
    uint32_t branch;
    uint32_t mark;         // recorded, or waited for
    struct fake_task task; // whose argument is owned
};

/* Entries of all branches, in the order in which they were captured. */
struct CUgraph_st {
    struct entry *entries; // (count)
    size_t count;
    uint32_t branch_count, mark_count;
};

struct CUgraphExec_st {
    struct CUgraph_st graph;
    cudaStream_t streams[BRANCHES_MAX]; // of branches but the first
    cudaEvent_t *events;                // (mark_count)
};

/* How many entries of each branch come before some point. */
struct past {
    size_t counts[BRANCHES_MAX];
};

struct fake_capture {
    uint64_t number;
    cudaStream_t streams[BRANCHES_MAX]; // (branch_count) the first one is where it began
    struct past ends[BRANCHES_MAX];     // (branch_count) what comes before the next entry
    struct past *marks;                 // (mark_count) of the graph
    struct CUgraph_st *graph;           // NULL: there is no capture
    bool is_spoilt;
};

static _Thread_local struct fake_capture current;

static void *must_allocate(void *memory, size_t bytes)
{
    void *larger = realloc(memory, bytes + 1);
    if (larger == NULL) {
        abort();
    }
    return larger;
}

static void add_entry(struct CUgraph_st *graph, const struct entry *entry)
{
    void *argument = must_allocate(NULL, entry->task.argument_bytes);
    if (entry->kind == ENTRY_TASK) {
        memcpy(argument, entry->task.argument, entry->task.argument_bytes);
    }
    graph->entries = must_allocate(graph->entries, (graph->count + 1) * sizeof(*entry));
    graph->entries[graph->count] = *entry;
    graph->entries[graph->count++].task.argument = argument;
}

static void clear(struct CUgraph_st *graph)
{
    for (size_t i = 0; i < graph->count; i++) {
        union {
            const void *in;
            void *out;
        } cast = {.in = graph->entries[i].task.argument};
        free(cast.out);
    }
    free(graph->entries);
}

static cudaError_t spoil(cudaError_t error)
{
    current.is_spoilt = true;
    return fake_fail(error);
}

cudaError_t fake_capture_forbid(void)
{
    return current.graph != NULL ? spoil(cudaErrorStreamCaptureUnsupported) : cudaSuccess;
}

static uint32_t branch_of(cudaStream_t stream)
{
    uint32_t branch = 0;
    assert(fake_stream_capture(stream) == &current); // of this thread
    while (current.streams[branch] != stream) {
        branch++;
        assert(branch < current.graph->branch_count);
    }
    return branch;
}

static void append(uint32_t branch, struct entry entry)
{
    entry.branch = branch;
    add_entry(current.graph, &entry);
    current.ends[branch].counts[branch]++;
}

cudaError_t fake_capture_add(cudaStream_t stream, const struct fake_task *task)
{
    if (current.is_spoilt) {
        return fake_fail(cudaErrorStreamCaptureInvalidated);
    }
    append(branch_of(stream), (struct entry){.kind = ENTRY_TASK, .task = *task});
    return cudaSuccess;
}

struct fake_mark fake_capture_record(cudaStream_t stream)
{
    if (fake_stream_capture(stream) == NULL) {
        return (struct fake_mark){0};
    }
    uint32_t branch = branch_of(stream), index = current.graph->mark_count++;
    assert(index < MARKS_MAX);
    append(branch, (struct entry){.kind = ENTRY_RECORD, .mark = index});
    current.marks[index] = current.ends[branch];
    return (struct fake_mark){current.number, index};
}

/* The stream goes on in the capture as a new branch. */
static void join(cudaStream_t stream)
{
    uint32_t branch = current.graph->branch_count++;
    assert(branch < BRANCHES_MAX);
    current.streams[branch] = stream;
    current.ends[branch] = (struct past){0};
    fake_stream_set_capture(stream, &current);
}

static void merge(struct past *end, const struct past *before)
{
    for (uint32_t i = 0; i < BRANCHES_MAX; i++) {
        size_t count = before->counts[i];
        end->counts[i] = end->counts[i] < count ? count : end->counts[i];
    }
}

cudaError_t fake_capture_wait(cudaStream_t stream, struct fake_mark mark)
{
    bool captures = fake_stream_capture(stream) != NULL;
    bool is_inside = current.graph != NULL && mark.capture == current.number;
    if (!is_inside) {
        return captures ? spoil(cudaErrorStreamCaptureIsolation)
                        : fake_fail(cudaErrorCapturedEvent);
    }
    if (!captures) {
        join(stream);
    }
    uint32_t branch = branch_of(stream);
    append(branch, (struct entry){.kind = ENTRY_WAIT, .mark = mark.index});
    merge(&current.ends[branch], &current.marks[mark.index]);
    return cudaSuccess;
}

void fake_capture_leave(cudaStream_t stream)
{
    if (fake_stream_capture(stream) != NULL) {
        current.streams[branch_of(stream)] = NULL;
        current.is_spoilt = true;
    }
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode)
{
    static _Atomic uint64_t number;
    assert(mode == cudaStreamCaptureModeThreadLocal);
    assert(current.graph == NULL && fake_stream_capture(stream) == NULL);
    current = (struct fake_capture){.number = atomic_fetch_add(&number, 1) + 1,
                                    .marks = must_allocate(NULL, MARKS_MAX * sizeof(struct past)),
                                    .graph = must_allocate(NULL, sizeof(*current.graph))};
    *current.graph = (struct CUgraph_st){0};
    join(stream);
    return cudaSuccess;
}

/* Whether the first branch has waited for all that the others do. */
static bool is_joined(const struct fake_capture *capture)
{
    for (uint32_t i = 1; i < capture->graph->branch_count; i++) {
        if (capture->ends[0].counts[i] < capture->ends[i].counts[i]) {
            return false;
        }
    }
    return true;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *ret_graph)
{
    const struct fake_capture ended = current;
    assert(ended.graph != NULL && ended.streams[0] == stream);
    current = (struct fake_capture){0};
    free(ended.marks);
    for (uint32_t i = 0; i < ended.graph->branch_count; i++) {
        if (ended.streams[i] != NULL) {
            fake_stream_set_capture(ended.streams[i], NULL);
        }
    }
    *ret_graph = NULL;
    if (ended.is_spoilt || !is_joined(&ended)) {
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
    *count = 0;
    for (size_t i = 0; i < graph->count; i++) {
        *count += graph->entries[i].kind == ENTRY_TASK;
    }
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
    *exec = (struct CUgraphExec_st){
        .graph = {.branch_count = graph->branch_count, .mark_count = graph->mark_count},
        .events = must_allocate(NULL, graph->mark_count * sizeof(cudaEvent_t)),
    };
    for (size_t i = 0; i < graph->count; i++) {
        add_entry(&exec->graph, &graph->entries[i]);
    }
    for (uint32_t i = 1; i < graph->branch_count; i++) {
        cudaStreamCreateWithFlags(&exec->streams[i], cudaStreamNonBlocking);
    }
    for (uint32_t i = 0; i < graph->mark_count; i++) {
        cudaEventCreateWithFlags(&exec->events[i], cudaEventDisableTiming);
    }
    *ret_exec = exec;
    return cudaSuccess;
}

/* What has been launched of it ends first. */
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec)
{
    for (uint32_t i = 0; i < exec->graph.mark_count; i++) {
        cudaEventSynchronize(exec->events[i]);
    }
    for (uint32_t i = 1; i < exec->graph.branch_count; i++) {
        cudaStreamDestroy(exec->streams[i]);
    }
    for (uint32_t i = 0; i < exec->graph.mark_count; i++) {
        cudaEventDestroy(exec->events[i]);
    }
    free(exec->events);
    clear(&exec->graph);
    free(exec);
    return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream)
{
    assert(current.graph == NULL);
    if (fake_has_mode("unlaunchable")) {
        return fake_fail(cudaErrorMemoryAllocation);
    }
    fake_stream_hand_over();
    for (size_t i = 0; i < exec->graph.count; i++) {
        const struct entry *entry = &exec->graph.entries[i];
        cudaStream_t branch = entry->branch == 0 ? stream : exec->streams[entry->branch];
        if (entry->kind == ENTRY_TASK) {
            fake_stream_replay(branch, &entry->task);
        } else if (entry->kind == ENTRY_RECORD) {
            cudaEventRecord(exec->events[entry->mark], branch);
        } else {
            cudaStreamWaitEvent(branch, exec->events[entry->mark], 0);
        }
    }
    return cudaSuccess;
}
