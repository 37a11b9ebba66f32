/* Handles of memory, flags, and the sums between them. */
#include "worker/device/cuda/peers.h"

#include "worker/device/cuda/host/report.h"
#include "worker/device/cuda/memory/memory_handle.h"

#include <assert.h>
#include <stdlib.h>

_Static_assert(MEMORY_HANDLE_BYTES == PROGRAM_SHARE_BYTES, "a share is a handle of memory");

// A function of the driver, by its name, as CUDA 12.0 has it.
#if CUDART_VERSION >= 12050
#define FIND_IN_DRIVER(name, ret_function, ret_found) \
    cudaGetDriverEntryPointByVersion(name, ret_function, 12000, cudaEnableDefault, ret_found)
#else
#define FIND_IN_DRIVER(name, ret_function, ret_found) \
    cudaGetDriverEntryPoint(name, ret_function, cudaEnableDefault, ret_found)
#endif

/* STATUS_UNSUPPORTED, logged, unless the result is success. */
static enum status check_support(int result, const char *what)
{
    if (result == 0) {
        return STATUS_OK;
    }
    (void)cudaGetLastError(); // it has been dealt with
    report_info("gradients go by way of the host: %s: %s", what,
                cudaGetErrorString((cudaError_t)result));
    return STATUS_UNSUPPORTED;
}

enum status peers_share(const float *grads, const void *allocation, size_t value_count,
                        unsigned char ret_share[PROGRAM_SHARE_BYTES])
{
    size_t offset = (size_t)((const char *)(const void *)grads - (const char *)allocation);
    return memory_handle_write(allocation, offset, value_count * sizeof(float), ret_share);
}

/* ============================================================================================
 * Flags
 * ========================================================================================== */

static size_t flag_index(const struct peers *peers, uint32_t bucket, enum program_flag flag,
                         uint32_t rank)
{
    return ((size_t)bucket * PROGRAM_FLAG_COUNT + flag) * peers->world + rank;
}

static CUdeviceptr flag_of(const struct peers *peers, uint32_t bucket, enum program_flag flag,
                           uint32_t rank)
{
    return peers->flag_address + flag_index(peers, bucket, flag, rank) * sizeof(uint32_t);
}

static CUstreamBatchMemOpParams barrier(void)
{
    return (CUstreamBatchMemOpParams){
        .memoryBarrier = {.operation = CU_STREAM_MEM_OP_BARRIER,
                          .flags = CU_STREAM_MEMORY_BARRIER_TYPE_SYS}};
}

static CUstreamBatchMemOpParams write_flag(CUdeviceptr flag, uint32_t value)
{
    return (CUstreamBatchMemOpParams){.writeValue = {.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32,
                                                     .address = flag,
                                                     .value = value}};
}

static CUstreamBatchMemOpParams wait_for_flag(const struct peers *peers, CUdeviceptr flag,
                                              uint32_t value)
{
    return (CUstreamBatchMemOpParams){.waitValue = {.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32,
                                                    .address = flag,
                                                    .value = value,
                                                    .flags = peers->wait_flags}};
}

/* ============================================================================================
 * Meeting
 * ========================================================================================== */

/* The driver's function for operations on words of memory, on a stream. */
static enum status find_operations(struct peers *peers)
{
    enum cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
    int device = 0, flushes = 0;
    union {
        void *symbol;
        CUresult (*function)(CUstream stream, unsigned count, CUstreamBatchMemOpParams *operations,
                             unsigned flags);
    } cast = {.symbol = NULL};
    int result = (int)FIND_IN_DRIVER("cuStreamBatchMemOp", &cast.symbol, &found);
    if (result == 0 && (found != cudaDriverEntryPointSuccess || cast.symbol == NULL)) {
        result = (int)cudaErrorNotSupported;
    }
    if (result == 0) {
        result = (int)cudaGetDevice(&device);
    }
    if (result == 0) {
        result = (int)cudaDeviceGetAttribute(&flushes, cudaDevAttrCanFlushRemoteWrites, device);
    }
    peers->queue_operations = cast.function;
    peers->wait_flags = CU_STREAM_WAIT_VALUE_GEQ | (flushes != 0 ? CU_STREAM_WAIT_VALUE_FLUSH : 0u);
    return check_support(result, "streams cannot wait for words of memory");
}

static enum status lock_flags(struct peers *peers, const struct program_peers *options)
{
    void *address = NULL;
    int result = (int)cudaHostRegister(options->flags, options->flag_bytes, cudaHostRegisterMapped);
    if (result == 0) {
        peers->flags = options->flags;
        result = (int)cudaHostGetDevicePointer(&address, options->flags, 0);
    }
    peers->flag_address = (CUdeviceptr)(uintptr_t)address;
    return check_support(result, "the flags of workers cannot be page-locked");
}

/* Whether a stream does what sums are to queue, with one of this worker's flags as it is. Some
 * virtual machines have the driver's functions, and refuse what they are asked for. */
static enum status try_operations(const struct peers *peers, cudaStream_t stream)
{
    const size_t index = flag_index(peers, 0, PROGRAM_FLAG_READY, peers->rank);
    const uint32_t value = ((const volatile uint32_t *)peers->flags)[index];
    const CUdeviceptr flag = flag_of(peers, 0, PROGRAM_FLAG_READY, peers->rank);
    CUstreamBatchMemOpParams operations[] = {barrier(), write_flag(flag, value),
                                             wait_for_flag(peers, flag, value)};
    int result = (int)peers->queue_operations(stream, 3, operations, 0);
    if (result == 0) {
        result = (int)cudaStreamSynchronize(stream);
    }
    return check_support(result, "streams cannot write words of memory, and wait for them");
}

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

enum status peers_meet(struct peers *peers, const struct program_peers *options, float *grads,
                       size_t value_count, cudaStream_t stream)
{
    peers->rank = options->rank;
    peers->world = options->world;
    if (options->world > CUDA_PEERS_MAX) {
        report_info("gradients go by way of the host: more than %d workers", CUDA_PEERS_MAX);
        return STATUS_UNSUPPORTED;
    }
    enum status status = find_operations(peers);
    if (status != STATUS_OK) {
        return status;
    }
    status = lock_flags(peers, options);
    if (status == STATUS_OK) {
        status = try_operations(peers, stream);
    }
    for (uint32_t rank = 0; rank < options->world && status == STATUS_OK; rank++) {
        peers->grads[rank] = grads;
        if (rank != options->rank) {
            status = map_peer(peers, rank, options->shares[rank], value_count);
        }
    }
    return status == STATUS_OK ? create_buckets(peers, options->bucket_count) : status;
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
    if (peers->flags != NULL) {
        cudaHostUnregister(peers->flags);
    }
    *peers = (struct peers){0};
}

/* ============================================================================================
 * Sums
 * ========================================================================================== */

/* Queues: what was queued is visible to all GPUs, this one's flag says so, and those of all others
 * say the same. */
static enum status queue_flags(const struct peers *peers, cudaStream_t stream,
                               const struct program_sum *sum, enum program_flag flag)
{
    CUstreamBatchMemOpParams operations[CUDA_PEERS_MAX + 1];
    unsigned count = 0;
    operations[count++] = barrier();
    operations[count++] = write_flag(flag_of(peers, sum->bucket, flag, peers->rank), sum->round);
    for (uint32_t rank = 0; rank < peers->world; rank++) {
        if (rank != peers->rank) {
            operations[count++] =
                wait_for_flag(peers, flag_of(peers, sum->bucket, flag, rank), sum->round);
        }
    }
    CUresult result = peers->queue_operations(stream, count, operations, 0);
    if (result != CUDA_SUCCESS) {
        report_error("streams cannot wait for other workers: error %d of the CUDA driver",
                     (int)result);
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
static enum status queue_parts(const struct peers *peers, cudaStream_t stream,
                               const struct program_sum *sum)
{
    enum status status = queue_flags(peers, stream, sum, PROGRAM_FLAG_READY);
    if (status == STATUS_OK) {
        status = queue_mean(peers, stream, sum);
    }
    return status == STATUS_OK ? queue_flags(peers, stream, sum, PROGRAM_FLAG_SUMMED) : status;
}

/* Queues the sum of a bucket, and the mark behind it. */
static enum status queue_sum(struct peers *peers, struct transfer *transfer,
                             const struct program_sum *sum, cudaEvent_t summed)
{
    cudaStream_t stream = transfer->down;
    enum status status = transfer_follow_range(transfer, sum->first_op);
    if (status != STATUS_OK) {
        return status;
    }
    struct recorder *recorder = transfer->context->recorder;
    status =
        cuda_check(recorder_begin(recorder, DEVICE_COPIES_DOWN, DEVICE_SUM, sum->bucket, stream),
                   "record a sum");
    if (status != STATUS_OK) {
        return status;
    }
    float *grads = transfer->context->grads + sum->offset;
    status = peers->collective != NULL
                 ? collective_mean(peers->collective, grads, sum->count, stream)
                 : queue_parts(peers, stream, sum);
    if (status != STATUS_OK) {
        return status;
    }
    int result = recorder_end(recorder, DEVICE_COPIES_DOWN, stream);
    if (result == 0) {
        result = (int)cudaEventRecord(summed, stream);
    }
    return cuda_check(result, "mark a sum");
}

enum status peers_sum(struct peers *peers, struct transfer *transfer, const struct program_sum *sum)
{
    assert(sum->bucket < peers->bucket_count);
    struct peer_bucket *bucket = &peers->buckets[sum->bucket];
    enum status status = queue_sum(peers, transfer, sum, bucket->summed);
    bucket->offset = sum->offset;
    bucket->is_queued = status == STATUS_OK;
    return status;
}

enum status peers_await(struct peers *peers, const struct transfer *transfer, struct cuda_span span)
{
    int result = 0;
    for (uint32_t i = 0; i < peers->bucket_count && result == 0; i++) {
        struct peer_bucket *bucket = &peers->buckets[i];
        if (bucket->is_queued && bucket->offset >= span.offset &&
            bucket->offset - span.offset < span.count) {
            bucket->is_queued = false;
            result = (int)cudaStreamWaitEvent(transfer->context->stream, bucket->summed, 0);
        }
    }
    return cuda_check(result, "wait for a sum");
}
