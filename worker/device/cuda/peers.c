/* Handles of memory, barriers, and the sums between them. */
#include "worker/device/cuda/peers.h"

#include "worker/device/cuda/host/report.h"
#include "worker/device/cuda/memory/memory_handle.h"

#include <assert.h>
#include <stdlib.h>
#include <time.h>

#define NAP_NS 50000 // between two looks at streams that end

_Static_assert(PROGRAM_PEERS_MAX <= CUDA_PEERS_MAX, "a kernel adds up all of them");
_Static_assert(PROGRAM_PEERS_MAX <= FLAGS_PROCESSES_MAX, "all have flags");
_Static_assert(MEMORY_HANDLE_BYTES == PROGRAM_SHARE_BYTES, "a share is a handle of memory");

enum status peers_share(const float *grads, const void *allocation, size_t value_count,
                        unsigned char ret_share[PROGRAM_SHARE_BYTES])
{
    size_t offset = (size_t)((const char *)(const void *)grads - (const char *)allocation);
    return memory_handle_write(allocation, offset, value_count * sizeof(float), ret_share);
}

/* ============================================================================================
 * Meeting
 * ========================================================================================== */

static enum status map_peer(struct peers *peers, uint32_t rank, const unsigned char *share,
                            size_t value_count)
{
    void *grads = NULL;
    enum status status =
        memory_handle_open(share, value_count * sizeof(float), &peers->mapped[rank], &grads);
    peers->mapped[rank] = status == STATUS_OK ? peers->mapped[rank] : NULL;
    peers->grads[rank] = grads;
    return status;
}

static enum status create_buckets(struct peers *peers, uint32_t bucket_count)
{
    int result = 0;
    peers->buckets = calloc(bucket_count, sizeof(*peers->buckets));
    if (peers->buckets == NULL) {
        return STATUS_NO_MEMORY;
    }
    peers->bucket_count = bucket_count;
    for (uint32_t i = 0; i < bucket_count && result == 0; i++) {
        result = (int)cudaEventCreateWithFlags(&peers->buckets[i].summed, cudaEventDisableTiming);
    }
    return cuda_check(result, "create events");
}

static uint32_t barrier_of(uint32_t bucket, enum program_flag flag)
{
    return bucket * PROGRAM_FLAG_COUNT + flag;
}

enum status peers_meet(struct peers *peers, const struct program_peers *options, float *grads,
                       size_t value_count, cudaStream_t stream)
{
    const struct flags_options flags = {
        .rank = options->rank,
        .world = options->world,
        .barrier_count = barrier_of(options->bucket_count, 0),
        .memory = options->flags,
        .bytes = options->flag_bytes,
    };
    peers->rank = options->rank;
    peers->world = options->world;
    if (options->world > PROGRAM_PEERS_MAX) {
        report_info("gradients go by way of the host: more than %d workers", PROGRAM_PEERS_MAX);
        return STATUS_UNSUPPORTED;
    }
    enum status status = flags_open(&peers->flags, &flags, stream);
    for (uint32_t rank = 0; rank < options->world && status == STATUS_OK; rank++) {
        peers->grads[rank] = grads;
        if (rank != options->rank) {
            status = map_peer(peers, rank, options->shares[rank], value_count);
        }
    }
    if (status == STATUS_OK) {
        status = create_buckets(peers, options->bucket_count);
    }
    for (uint32_t i = 0; i < options->bucket_count && status == STATUS_OK; i++) {
        assert(i == 0 || options->sums[i].first_op <= options->sums[i - 1].first_op);
        peers->buckets[i].sum = options->sums[i];
    }
    return status;
}

void peers_try_capture(struct peers *peers, cudaStream_t stream)
{
    char why[256];
    peers->can_be_captured = flags_try_capture(&peers->flags, stream, why, sizeof(why));
    if (!peers->can_be_captured) {
        report_info("sums of gradients are launched beside CUDA graphs, not in them: %s", why);
    }
}

static void destroy_buckets(struct peers *peers)
{
    for (uint32_t i = 0; i < peers->bucket_count; i++) {
        if (peers->buckets[i].summed != NULL) {
            cudaEventDestroy(peers->buckets[i].summed);
        }
    }
    free(peers->buckets);
    peers->buckets = NULL;
    peers->bucket_count = 0;
}

enum status peers_join(struct peers *peers, struct collective *collective,
                       const struct program_joining *options)
{
    bool is_first = peers->collective == NULL;
    destroy_buckets(peers);
    peers->rank = options->rank;
    peers->world = options->world;
    peers->collective = collective;
    enum status status = is_first ? collective_join(collective, options) : STATUS_OK;
    return status == STATUS_OK ? create_buckets(peers, options->bucket_count) : status;
}

void peers_finish(struct peers *peers)
{
    destroy_buckets(peers);
    for (uint32_t rank = 0; rank < CUDA_PEERS_MAX; rank++) {
        if (peers->mapped[rank] != NULL) {
            cudaIpcCloseMemHandle(peers->mapped[rank]);
        }
    }
    flags_close(&peers->flags);
    *peers = (struct peers){0};
}

/* ============================================================================================
 * Sums
 * ========================================================================================== */

static bool is_running(cudaStream_t stream)
{
    bool is_running = cudaStreamQuery(stream) == cudaErrorNotReady;
    if (is_running) {
        (void)cudaGetLastError(); // it is none
    }
    return is_running;
}

/* A flag that was raised may be lowered by a wait that ends with it, and be waited for again. */
void peers_await_end(const struct peers *peers, const struct transfer *transfer)
{
    static const struct timespec nap = {.tv_nsec = NAP_NS};
    while (is_running(transfer->down) || is_running(transfer->context->stream)) {
        if (peers->collective == NULL) {
            flags_release(&peers->flags);
        }
        nanosleep(&nap, NULL);
    }
}

static enum status cross(const struct peers *peers, cudaStream_t stream, uint32_t bucket,
                         enum program_flag flag)
{
    int result = flags_cross(&peers->flags, stream, barrier_of(bucket, flag));
    if (result != 0) {
        report_error("streams cannot wait for other workers: %s",
                     cudaGetErrorString((cudaError_t)result));
        return STATUS_DEVICE;
    }
    return STATUS_OK;
}

/* In the order of ranks, from this one on. */
static enum status queue_mean(const struct peers *peers, cudaStream_t stream,
                              const struct program_sum *sum)
{
    struct cuda_mean mean = {
        .world = peers->world,
        .factor = 1.0f / (float)peers->world,
        .offset = sum->part_offset,
        .count = sum->part_count,
    };
    for (uint32_t k = 0; k < peers->world; k++) {
        mean.vectors[k] = peers->grads[(peers->rank + k) % peers->world];
    }
    return cuda_check(kernel_mean(&mean, stream), "sum gradients");
}

/* All workers' parts, each by its own GPU. */
static enum status queue_parts(const struct peers *peers, cudaStream_t stream, uint32_t bucket)
{
    enum status status = cross(peers, stream, bucket, PROGRAM_FLAG_READY);
    if (status == STATUS_OK) {
        status = queue_mean(peers, stream, &peers->buckets[bucket].sum);
    }
    return status == STATUS_OK ? cross(peers, stream, bucket, PROGRAM_FLAG_SUMMED) : status;
}

/* Queues the sum of a bucket, and the mark behind it, on the stream of copies, which follows what
 * the sum is of. */
static enum status queue_sum(struct peers *peers, struct transfer *transfer, uint32_t bucket)
{
    const struct program_sum *sum = &peers->buckets[bucket].sum;
    cudaStream_t stream = transfer->down;
    struct recorder *recorder = transfer->context->recorder;
    enum status status = cuda_check(
        recorder_begin(recorder, DEVICE_COPIES_DOWN, DEVICE_SUM, bucket, stream), "record a sum");
    if (status != STATUS_OK) {
        return status;
    }
    float *grads = transfer->context->grads + sum->offset;
    status = peers->collective != NULL
                 ? collective_mean(peers->collective, grads, sum->count, stream)
                 : queue_parts(peers, stream, bucket);
    if (status != STATUS_OK) {
        return status;
    }
    int result = recorder_end(recorder, DEVICE_COPIES_DOWN, stream);
    if (result == 0) {
        result = (int)cudaEventRecord(peers->buckets[bucket].summed, stream);
    }
    peers->buckets[bucket].is_queued = result == 0;
    return cuda_check(result, "mark a sum");
}

enum status peers_sum(struct peers *peers, struct transfer *transfer, uint32_t bucket)
{
    assert(bucket < peers->bucket_count);
    enum status status = transfer_fork(transfer);
    return status == STATUS_OK ? queue_sum(peers, transfer, bucket) : status;
}

enum status peers_sum_in_unit(const struct peers *peers, struct transfer *transfer, uint32_t bucket)
{
    assert(bucket < peers->bucket_count);
    enum status status = transfer_fork(transfer);
    return status == STATUS_OK ? queue_parts(peers, transfer->down, bucket) : status;
}

enum status peers_end_unit(struct transfer *transfer)
{
    return transfer_join(transfer);
}

enum status peers_sum_joined(struct peers *peers, struct transfer *transfer,
                             const struct program_sum *sum)
{
    assert(peers->collective != NULL && sum->bucket < peers->bucket_count);
    peers->buckets[sum->bucket].sum = *sum;
    enum status status = transfer_follow_range(transfer, sum->first_op);
    return status == STATUS_OK ? queue_sum(peers, transfer, sum->bucket) : status;
}

enum status peers_await(struct peers *peers, const struct transfer *transfer, struct cuda_span span)
{
    int result = 0;
    for (uint32_t i = 0; i < peers->bucket_count && result == 0; i++) {
        struct peer_bucket *bucket = &peers->buckets[i];
        if (bucket->is_queued && bucket->sum.offset >= span.offset &&
            bucket->sum.offset - span.offset < span.count) {
            bucket->is_queued = false;
            result = (int)cudaStreamWaitEvent(transfer->context->stream, bucket->summed, 0);
        }
    }
    return cuda_check(result, "wait for a sum");
}
