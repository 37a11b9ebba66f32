/* The optimizer's states on the GPU: kept there from the first update until somebody asks for them.
 */
#include "worker/device/cuda/updates.h"

#include "worker/device/cuda/host/report.h"

#include <assert.h>
#include <string.h>

enum status updates_hold(struct updates *updates, float *const *states, uint32_t state_count,
                         size_t value_count)
{
    assert(!updates->is_held && state_count <= UPDATES_STATES_MAX);
    size_t bytes = value_count * sizeof(float);
    int result = 0;
    for (uint32_t i = 0; i < state_count && result == 0; i++) {
        updates->host_states[i] = states[i];
        result = (int)cudaMalloc((void **)&updates->states[i], bytes);
    }
    if (result == (int)cudaErrorMemoryAllocation) {
        (void)cudaGetLastError(); // it has been dealt with
        report_error(
            "the GPU has no memory for the optimizer's states, %u vectors of %zu MiB: make "
            "the batch smaller",
            state_count, bytes >> 20);
        return STATUS_NO_MEMORY;
    }
    updates->state_count = state_count;
    updates->bytes = state_count * bytes;
    updates->is_held = true;
    return cuda_check(result, "get memory for the optimizer's states");
}

void updates_finish(struct updates *updates)
{
    for (uint32_t i = 0; i < UPDATES_STATES_MAX; i++) {
        cudaFree(updates->states[i]);
    }
    *updates = (struct updates){0};
}

/* All states, in one direction. Waits: the host's may change, or go, at any time after. */
static enum status copy_states(const struct updates *updates, const struct transfer *transfer,
                               enum cudaMemcpyKind direction)
{
    cudaStream_t stream = transfer->context->stream;
    bool is_down = direction == cudaMemcpyDeviceToHost;
    int result = 0;
    for (uint32_t i = 0; i < updates->state_count && result == 0; i++) {
        float *to = is_down ? updates->host_states[i] : updates->states[i];
        const float *from = is_down ? updates->states[i] : updates->host_states[i];
        result =
            (int)cudaMemcpyAsync(to, from, transfer->value_count * sizeof(*to), direction, stream);
    }
    if (result == 0) {
        result = (int)cudaStreamSynchronize(stream);
    }
    return cuda_check(result, "copy the optimizer's states");
}

/* Parameters, and what the libraries read in their place: the next forward need not copy them. */
static int update_both(const struct node_context *context, const struct optimizer_update *update,
                       const struct optimizer_vectors *vectors, size_t count)
{
    const struct cuda_weight_copy copy = {
        .rows = context->weight_table.on_gpu,
        .row_count = context->weight_table.count,
        .flat = context->params,
        .library = context->weights,
    };
    return kernel_update_both(context->type, update, vectors, &copy, count, context->stream);
}

/* Launches the update, and records it. */
static int launch_update(const struct updates *updates, const struct node_context *context,
                         const struct optimizer_update *update,
                         const struct optimizer_vectors *vectors, size_t count)
{
    struct recorder *recorder = context->recorder;
    int result = recorder_begin(recorder, DEVICE_COMPUTES, DEVICE_UPDATE, recorder->now.bucket,
                                context->stream);
    if (result == 0) {
        result = updates->keeps_weights ? update_both(context, update, vectors, count)
                                        : kernel_update(update, vectors, count, context->stream);
    }
    return result == 0 ? recorder_end(recorder, DEVICE_COMPUTES, context->stream) : result;
}

enum status updates_apply(struct updates *updates, const struct transfer *transfer,
                          const struct optimizer_update *update, struct cuda_span span)
{
    const struct node_context *context = transfer->context;
    bool has_first = updates->state_count > 0, has_second = updates->state_count > 1;
    const struct optimizer_vectors vectors = {
        .params = context->params + span.offset,
        .grads = context->grads + span.offset,
        .first = has_first ? updates->states[0] + span.offset : NULL,
        .second = has_second ? updates->states[1] + span.offset : NULL,
    };
    assert(updates->is_held);
    enum status status =
        updates->is_ahead ? STATUS_OK : copy_states(updates, transfer, cudaMemcpyHostToDevice);
    if (status == STATUS_OK) {
        updates->is_ahead = true;
        status = cuda_check(launch_update(updates, context, update, &vectors, span.count),
                            "update parameters");
    }
    return status;
}

enum status updates_flush(struct updates *updates, const struct transfer *transfer)
{
    const struct cuda_span span = updates->gathered;
    updates->gathered.count = 0;
    return span.count > 0 ? updates_apply(updates, transfer, &updates->gathered_update, span)
                          : STATUS_OK;
}

enum status updates_gather(struct updates *updates, const struct transfer *transfer,
                           const struct optimizer_update *update, struct cuda_span span)
{
    struct cuda_span *gathered = &updates->gathered;
    // Floats that must have the same bits; the struct has no padding.
    // NOLINTBEGIN(bugprone-suspicious-memory-comparison)
    bool is_more = gathered->count > 0 && span.offset + span.count == gathered->offset &&
                   memcmp(update, &updates->gathered_update, sizeof(*update)) == 0;
    // NOLINTEND(bugprone-suspicious-memory-comparison)
    enum status status = is_more ? STATUS_OK : updates_flush(updates, transfer);
    memcpy(&updates->gathered_update, update, sizeof(*update));
    *gathered = (struct cuda_span){span.offset, span.count + gathered->count};
    return status == STATUS_OK && span.offset == 0 ? updates_flush(updates, transfer) : status;
}

enum status updates_fetch(struct updates *updates, const struct transfer *transfer)
{
    enum status status = updates_flush(updates, transfer);
    if (status != STATUS_OK || !updates->is_ahead) {
        return status;
    }
    status = cuda_check((int)cudaMemcpyAsync(transfer->params, transfer->context->params,
                                             transfer->value_count * sizeof(float),
                                             cudaMemcpyDeviceToHost, transfer->context->stream),
                        "copy parameters");
    if (status == STATUS_OK) {
        status = copy_states(updates, transfer, cudaMemcpyDeviceToHost);
    }
    updates->is_ahead = status != STATUS_OK;
    return status;
}
