/* Sums over rows, and results of CUDA. */
#include "worker/device/cuda/context.h"
#include "worker/device/cuda/host/report.h"

// Enough to keep a large GPU busy, few enough to be added up by a warp.
#define PARTS_MAX 512
#define ROWS_MIN  32 // of a part

enum status cuda_check(int result, const char *what)
{
    if (result == 0) {
        return STATUS_OK;
    }
    cudaError_t error = (cudaError_t)result;
    report_error("CUDA cannot %s: %s", what, cudaGetErrorString(error));
    return error == cudaErrorMemoryAllocation ? STATUS_NO_MEMORY : STATUS_DEVICE;
}

static size_t part_count(size_t rows)
{
    size_t parts = rows / ROWS_MIN;
    return parts < 1 ? 1 : parts > PARTS_MAX ? PARTS_MAX : parts;
}

size_t cuda_reserve_sums(struct node_context *context, size_t rows, size_t channels)
{
    size_t parts = part_count(rows), bytes = 2 * parts * channels * sizeof(double);
    size_t sum_bytes = (2 * channels + 1) * sizeof(double);
    context->part_bytes = context->part_bytes < bytes ? bytes : context->part_bytes;
    context->sum_bytes = context->sum_bytes < sum_bytes ? sum_bytes : context->sum_bytes;
    return parts;
}

enum status cuda_sum_rows(struct node_context *context, void *dy, size_t rows, size_t outputs,
                          float *to)
{
    const struct cuda_norm norm = {
        .channels = outputs, .rows = rows, .counted = rows, .parts = part_count(rows)};
    const struct cuda_norm_operands operands = {.dy = dy, .parts = context->parts};
    int result = kernel_norm_sums(context->type, &norm, &operands, context->sums, context->stream);
    if (result == 0) {
        result = kernel_sums_to_floats(context->sums, to, outputs, context->stream);
    }
    return cuda_check(result, "sum rows");
}
