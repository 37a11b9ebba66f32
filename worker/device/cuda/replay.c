/* Captures launches as CUDA graphs, and replays them. */
#include "worker/device/cuda/replay.h"

#include "worker/device/cuda/host/report.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Times in a row that a unit goes elsewhere before that is where it goes.
#define MOVED_COUNT 2

enum status replay_init(struct replay *replay, cudaStream_t stream, uint32_t unit_count)
{
    replay->stream = stream;
    replay->unit_count = unit_count;
    replay->graphs = calloc((size_t)REPLAY_PASSES_MAX * unit_count, sizeof(*replay->graphs));
    replay->is_on = replay->graphs != NULL;
    return replay->graphs != NULL ? STATUS_OK : STATUS_NO_MEMORY;
}

void replay_finish(struct replay *replay)
{
    for (size_t i = 0; i < (size_t)replay->pass_count * replay->unit_count; i++) {
        if (replay->graphs[i].graph != NULL) {
            cudaGraphExecDestroy(replay->graphs[i].graph);
        }
    }
    free(replay->graphs);
    *replay = (struct replay){0};
}

static uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static bool is_same(const struct cuda_pass *a, const struct cuda_pass *b)
{
    return a->count == b->count && a->is_training == b->is_training &&
           a->sums_over_workers == b->sums_over_workers && a->is_mixed == b->is_mixed &&
           bits_of(a->gradient_scale) == bits_of(b->gradient_scale);
}

void replay_begin_pass(struct replay *replay, const struct cuda_pass *pass)
{
    uint32_t index = 0;
    replay->current = NULL;
    if (!replay->is_on || pass->sums_over_workers) {
        return;
    }
    while (index < replay->pass_count && !is_same(&replay->passes[index], pass)) {
        index++;
    }
    if (index == REPLAY_PASSES_MAX) {
        return;
    }
    if (index == replay->pass_count) {
        replay->passes[replay->pass_count++] = *pass;
    }
    replay->current = replay->graphs + (size_t)index * replay->unit_count;
}

/* From here on launches come one by one. */
static void give_up(struct replay *replay, const char *what, const char *why)
{
    (void)cudaGetLastError(); // it has been dealt with
    replay->is_on = false;
    replay->current = NULL;
    report_info("CUDA graphs are off, and kernels are launched one by one: cannot %s: %s", what,
                why);
}

/* What queue(context) launches, as a graph, without running it. NULL if that cannot be had. */
static cudaGraph_t capture(struct replay *replay, enum status (*queue)(void *context),
                           void *context)
{
    cudaGraph_t graph = NULL;
    int result = (int)cudaStreamBeginCapture(replay->stream, cudaStreamCaptureModeThreadLocal);
    if (result != 0) {
        give_up(replay, "begin to capture", cudaGetErrorString((cudaError_t)result));
        return NULL;
    }
    report_begin_trial();
    enum status status = queue(context);
    const char *said = report_end_trial();
    result = (int)cudaStreamEndCapture(replay->stream, &graph); // in any case
    if (status == STATUS_OK && result == 0) {
        return graph;
    }
    if (graph != NULL) {
        cudaGraphDestroy(graph);
    }
    give_up(replay, "capture",
            status != STATUS_OK && said[0] != '\0' ? said
                                                   : cudaGetErrorString((cudaError_t)result));
    return NULL;
}

/* Whether there is a graph from here on. */
static bool make_graph(struct replay *replay, struct replay_graph *made,
                       enum status (*queue)(void *context), void *context)
{
    cudaGraph_t graph = capture(replay, queue, context);
    if (graph == NULL) {
        return false;
    }
    int result = (int)cudaGraphGetNodes(graph, NULL, &made->launch_count);
    made->state = made->launch_count < REPLAY_LAUNCHES_MIN ? REPLAY_TOO_SMALL : REPLAY_CAPTURED;
    if (result == 0 && made->state == REPLAY_CAPTURED) {
        result = (int)cudaGraphInstantiate(&made->graph, graph, 0);
    }
    cudaGraphDestroy(graph);
    if (result != 0) {
        made->graph = NULL;
        give_up(replay, "instantiate a graph", cudaGetErrorString((cudaError_t)result));
    }
    return made->graph != NULL;
}

/* Whether a unit that was seen goes as far as then. */
static bool goes_as_before(struct replay_graph *seen, uint32_t extent)
{
    if (seen->extent == extent) {
        seen->other_count = 0;
        return true;
    }
    bool is_again = seen->other_count > 0 && seen->other_extent == extent;
    seen->other_count = is_again ? seen->other_count + 1 : 1;
    seen->other_extent = extent;
    if (seen->other_count < MOVED_COUNT) {
        return false;
    }
    if (seen->graph != NULL) {
        cudaGraphExecDestroy(seen->graph); // one that still runs ends first
    }
    *seen = (struct replay_graph){.state = REPLAY_SEEN, .extent = extent};
    return true;
}

enum status replay_run(struct replay *replay, struct replay_unit unit,
                       enum status (*queue)(void *context), void *context)
{
    assert(replay->current == NULL || unit.index < replay->unit_count);
    struct replay_graph *seen = replay->current != NULL ? &replay->current[unit.index] : NULL;
    if (seen == NULL) {
        return queue(context);
    }
    if (seen->state == REPLAY_UNSEEN) {
        seen->state = REPLAY_SEEN;
        seen->extent = unit.extent;
        return queue(context);
    }
    if (!goes_as_before(seen, unit.extent) || seen->state == REPLAY_TOO_SMALL) {
        return queue(context);
    }
    if (seen->state == REPLAY_SEEN && !make_graph(replay, seen, queue, context)) {
        return queue(context);
    }
    int result = (int)cudaGraphLaunch(seen->graph, replay->stream);
    if (result != 0) {
        give_up(replay, "launch a graph", cudaGetErrorString((cudaError_t)result));
        return queue(context);
    }
    return STATUS_OK;
}

bool replay_describe(const struct replay *replay, char *ret_text, size_t text_size)
{
    size_t graph_count = 0, launch_count = 0;
    for (size_t i = 0; i < (size_t)replay->pass_count * replay->unit_count; i++) {
        if (replay->graphs[i].graph != NULL) {
            graph_count++;
            launch_count += replay->graphs[i].launch_count;
        }
    }
    snprintf(ret_text, text_size, "%zu launches in %zu CUDA graphs", launch_count, graph_count);
    return replay->is_on && graph_count > 0;
}
