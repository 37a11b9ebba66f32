/* Launches sums over rows, and checks what calls of CUDA return. */
#include "worker/device/cuda/context.h"
#include "worker/device/cuda/host/report.h"

#define THREADS_WANTED ((size_t)1 << 17) // half of what a large GPU runs at once
#define PARTS_MAX      4096              // more would take longer to add up
#define ROWS_MIN       16                // of a part

enum status cuda_check(int result, const char *what)
{
    if (result == 0) {
        return STATUS_OK;
    }
    cudaError_t error = (cudaError_t)result;
    report_error("CUDA cannot %s: %s", what, cudaGetErrorString(error));
    return error == cudaErrorMemoryAllocation ? STATUS_NO_MEMORY : STATUS_DEVICE;
}

/* Threads that share a group of channels, a pack or one. */
static size_t part_count(const struct node_context *context, size_t rows, size_t channels)
{
    size_t lanes = 16 / cuda_element_bytes(context);
    size_t groups = channels % lanes == 0 ? channels / lanes : channels;
    size_t parts = THREADS_WANTED / groups, most = rows / ROWS_MIN;
    parts = parts < most ? parts : most;
    return parts < 1 ? 1 : parts > PARTS_MAX ? PARTS_MAX : parts;
}

size_t cuda_reserve_sums(struct node_context *context, size_t rows, size_t channels)
{
    size_t parts = part_count(context, rows, channels);
    size_t bytes = 2 * parts * channels * sizeof(double);
    size_t sum_bytes = (2 * channels + 1) * sizeof(double);
    context->part_bytes = context->part_bytes < bytes ? bytes : context->part_bytes;
    context->sum_bytes = context->sum_bytes < sum_bytes ? sum_bytes : context->sum_bytes;
    return parts;
}

enum status cuda_sum_rows(struct node_context *context, void *dy, size_t rows, size_t outputs,
                          float *to)
{
    const struct cuda_norm norm = {.channels = outputs,
                                   .rows = rows,
                                   .counted = rows,
                                   .parts = part_count(context, rows, outputs)};
    const struct cuda_norm_sums sums = {
        .rows = {.dy = dy, .parts = context->parts},
        .channel = {.sums = context->sums, .dbias = to},
        .finish = CUDA_FINISH_BIAS,
    };
    return cuda_check(kernel_sums(context->type, &norm, &sums, context->stream), "sum rows");
}
