/* Times plans by CUDA events.
 *
 * Runs are queued one behind the other, so that the device does not wait for the host between them,
 * and events stand between groups of them. The median group counts: a clock that changes, or
 * somebody else on the device, spoils few of them. */
#include "worker/device/cuda/dnn/dnn_timing.h"

#include "worker/device/cuda/host/report.h"

#include <cuda_runtime_api.h>

#include <stdlib.h>
#include <string.h>

#define WARM_RUNS  2
#define GROUPS     5
#define GROUP_RUNS 4
#define LEAST_GAIN 0.97f // of the time of a plan before it, that a faster one may take at most
#define HOPELESS   3     // times slower in the second run than the fastest plan: not run again
#define FILL       0x3C  // bytes that are small numbers as floats and as bfloat16: 0.0115
#define ALIGNMENT  256
#define UNTIMED_US (-1.0f)

/* What plans run on. */
struct arena {
    const struct dnn_target *target;
    char *memory;
    size_t operand_bytes, bytes; // the workspace is behind the operands
    struct dnn_operands operands;
    cudaEvent_t events[GROUPS + 1];
};

static size_t take(struct arena *arena, size_t bytes)
{
    size_t begin = arena->operand_bytes;
    arena->operand_bytes += (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    return begin;
}

static void *at(const struct arena *arena, size_t place)
{
    return arena->memory != NULL ? arena->memory + place : NULL;
}

/* Places the operands in the arena's memory; at first only to learn how much that is. */
static void lay_out(struct arena *arena, const struct dnn_conv *conv, enum dnn_pass pass)
{
    size_t element = arena->target->precision == PRECISION_BF16 ? 2 : sizeof(float);
    size_t x = (size_t)conv->batch * conv->inputs * conv->x_rows * conv->x_columns;
    size_t y = (size_t)conv->batch * conv->outputs * conv->y_rows * conv->y_columns;
    size_t w = (size_t)conv->inputs * conv->outputs * conv->window * conv->window;
    bool is_forward = pass == DNN_FORWARD;
    arena->operand_bytes = 0;
    size_t places[] = {
        take(arena, x * element),
        take(arena, w * element),
        take(arena, y * element),
        take(arena, conv->outputs * element),
        take(arena, conv->outputs * sizeof(float)),
        take(arena, conv->outputs * sizeof(float)),
    };
    bool has_statistics = is_forward && conv->has_statistics;
    arena->operands = (struct dnn_operands){
        .x = at(arena, places[0]),
        .w = at(arena, places[1]),
        .y = at(arena, places[2]),
        .bias = is_forward && conv->has_bias ? at(arena, places[3]) : NULL,
        .sums = has_statistics ? at(arena, places[4]) : NULL,
        .square_sums = has_statistics ? at(arena, places[5]) : NULL,
        .workspace = at(arena, arena->operand_bytes),
    };
}

static int open_arena(struct arena *arena, const struct dnn_conv *conv, enum dnn_pass pass,
                      size_t workspace_bytes)
{
    lay_out(arena, conv, pass);
    arena->bytes = arena->operand_bytes + workspace_bytes;
    int result = (int)cudaMalloc((void **)&arena->memory, arena->bytes);
    for (uint32_t i = 0; i <= GROUPS && result == 0; i++) {
        result = (int)cudaEventCreateWithFlags(&arena->events[i], cudaEventDefault);
    }
    if (result == 0) {
        lay_out(arena, conv, pass);
        result = (int)cudaMemsetAsync(arena->memory, FILL, arena->bytes, arena->target->stream);
    }
    if (result != 0) {
        (void)cudaGetLastError(); // it is dealt with: see the caller
    }
    return result;
}

static void close_arena(struct arena *arena)
{
    for (uint32_t i = 0; i <= GROUPS; i++) {
        if (arena->events[i] != NULL) {
            cudaEventDestroy(arena->events[i]);
        }
    }
    cudaFree(arena->memory);
}

/* Queues runs, and an event behind each group of them. */
static int run_groups(const struct arena *arena, const struct dnn_plan *plan, uint32_t group_count,
                      uint32_t group_runs)
{
    cudaStream_t stream = arena->target->stream;
    int result = (int)cudaEventRecord(arena->events[0], stream);
    for (uint32_t i = 0; i < group_count && result == 0; i++) {
        for (uint32_t k = 0; k < group_runs && result == 0; k++) {
            result = (int)dnn_plan_run(arena->target, plan, &arena->operands);
        }
        if (result == 0) {
            result = (int)cudaEventRecord(arena->events[i + 1], stream);
        }
    }
    return result == 0 ? (int)cudaEventSynchronize(arena->events[group_count]) : result;
}

static int order(const void *a, const void *b)
{
    float left = *(const float *)a, right = *(const float *)b;
    return left < right ? -1 : left > right;
}

/* The median of what groups took, for one run. */
static int read_groups(const struct arena *arena, uint32_t group_count, uint32_t group_runs,
                       float *ret_us)
{
    float ms[GROUPS];
    int result = 0;
    for (uint32_t i = 0; i < group_count && result == 0; i++) {
        result = (int)cudaEventElapsedTime(&ms[i], arena->events[i], arena->events[i + 1]);
    }
    if (result == 0) {
        qsort(ms, group_count, sizeof(ms[0]), order);
        *ret_us = 1000 * ms[group_count / 2] / (float)group_runs;
    }
    return result;
}

/* How long a run takes; that of one which is hopeless beside `best_us` is only estimated. */
static int time_plan(const struct arena *arena, const struct dnn_plan *plan, float best_us,
                     float *ret_us)
{
    int result = run_groups(arena, plan, WARM_RUNS, 1);
    if (result == 0) {
        result = (int)cudaEventElapsedTime(ret_us, arena->events[WARM_RUNS - 1],
                                           arena->events[WARM_RUNS]);
        *ret_us *= 1000;
    }
    if (result != 0 || (best_us > 0 && *ret_us > HOPELESS * best_us)) {
        return result;
    }
    result = run_groups(arena, plan, GROUPS, GROUP_RUNS);
    return result == 0 ? read_groups(arena, GROUPS, GROUP_RUNS, ret_us) : result;
}

/* Whether the plan runs; says so if it does not. */
static bool try_plan(const struct arena *arena, struct dnn_contest *contest, uint32_t index,
                     float best_us)
{
    float us = 0;
    report_begin_trial();
    int result = time_plan(arena, &contest->plans[index], best_us, &us);
    const char *said = report_end_trial();
    if (result == 0) {
        contest->times_us[index] = us;
        return true;
    }
    report_warn("engine %s is passed over, since it does not run: %s", contest->engines[index].text,
                said[0] != '\0' ? said : cudaGetErrorString(cudaGetLastError()));
    return false;
}

uint32_t dnn_contest_run(const struct dnn_target *target, const struct dnn_conv *conv,
                         enum dnn_pass pass, struct dnn_contest *contest)
{
    struct arena arena = {.target = target};
    size_t workspace_bytes = 0;
    uint32_t best = contest->count;
    for (uint32_t i = 0; i < contest->count; i++) {
        size_t bytes = contest->plans[i].workspace_bytes;
        workspace_bytes = workspace_bytes < bytes ? bytes : workspace_bytes;
        contest->times_us[i] = UNTIMED_US;
    }
    if (open_arena(&arena, conv, pass, workspace_bytes) != 0) {
        report_warn("engines cannot be timed: the GPU has no %zu MiB free for that",
                    arena.bytes >> 20);
        close_arena(&arena);
        return contest->count > 0 ? 0 : best;
    }
    for (uint32_t i = 0; i < contest->count; i++) {
        float best_us = best < contest->count ? contest->times_us[best] : 0;
        if (try_plan(&arena, contest, i, best_us) &&
            (best == contest->count || contest->times_us[i] < LEAST_GAIN * best_us)) {
            best = i;
        }
    }
    cudaStreamSynchronize(target->stream);
    close_arena(&arena);
    return best;
}
