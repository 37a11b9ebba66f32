/* Finds the driver's memory operations, tries them, and queues barriers. */
#include "worker/device/cuda/memory/flags.h"

#include "worker/device/cuda/host/report.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

// A function of the driver, by its name, as CUDA 12.0 has it.
#if CUDART_VERSION >= 12050
#define FIND_IN_DRIVER(name, ret_function, ret_found) \
    cudaGetDriverEntryPointByVersion(name, ret_function, 12000, cudaEnableDefault, ret_found)
#else
#define FIND_IN_DRIVER(name, ret_function, ret_found) \
    cudaGetDriverEntryPoint(name, ret_function, cudaEnableDefault, ret_found)
#endif

// Of a trial, which takes microseconds: five seconds in all.
#define TRIAL_LOOKS  50000
#define TRIAL_NAP_NS 100000

enum { DOWN, UP };

#define OPERATIONS_MAX (3 * FLAGS_PROCESSES_MAX + 1) // of a barrier

/* What is queued at once. */
struct batch {
    CUstreamBatchMemOpParams operations[OPERATIONS_MAX];
    unsigned count;
};

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

static size_t index_of(const struct flags_options *options, uint32_t to, uint32_t barrier,
                       uint32_t from)
{
    return ((size_t)to * options->barrier_count + barrier) * options->world + from;
}

static CUdeviceptr flag_at(const struct flags *flags, uint32_t to, uint32_t barrier, uint32_t from)
{
    return flags->address + index_of(&flags->options, to, barrier, from) * sizeof(uint32_t);
}

static void add_fence(struct batch *batch)
{
    batch->operations[batch->count++] =
        (CUstreamBatchMemOpParams){.memoryBarrier = {.operation = CU_STREAM_MEM_OP_BARRIER,
                                                     .flags = CU_STREAM_MEMORY_BARRIER_TYPE_SYS}};
}

static void add_write(struct batch *batch, CUdeviceptr flag, uint32_t value)
{
    batch->operations[batch->count++] = (CUstreamBatchMemOpParams){
        .writeValue = {
            .operation = CU_STREAM_MEM_OP_WRITE_VALUE_32, .address = flag, .value = value}};
}

static void add_wait(struct batch *batch, const struct flags *flags, CUdeviceptr flag)
{
    batch->operations[batch->count++] =
        (CUstreamBatchMemOpParams){.waitValue = {.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32,
                                                 .address = flag,
                                                 .value = UP,
                                                 .flags = flags->wait_flags}};
}

static int queue(const struct flags *flags, cudaStream_t stream, struct batch *batch)
{
    return (int)flags->queue_operations(stream, batch->count, batch->operations, 0);
}

int flags_cross(const struct flags *flags, cudaStream_t stream, uint32_t barrier)
{
    const struct flags_options *options = &flags->options;
    struct batch batch = {.count = 0};
    assert(barrier < options->barrier_count);
    add_fence(&batch);
    for (uint32_t k = 1; k < options->world; k++) {
        uint32_t to = (options->rank + k) % options->world;
        add_write(&batch, flag_at(flags, to, barrier, options->rank), UP);
    }
    for (uint32_t k = 1; k < options->world; k++) {
        uint32_t from = (options->rank + k) % options->world;
        add_wait(&batch, flags, flag_at(flags, options->rank, barrier, from));
    }
    for (uint32_t k = 1; k < options->world; k++) {
        uint32_t from = (options->rank + k) % options->world;
        add_write(&batch, flag_at(flags, options->rank, barrier, from), DOWN);
    }
    return queue(flags, stream, &batch);
}

/* All that a barrier queues, with a flag from this process to itself, which no barrier has. */
static int queue_trial(const struct flags *flags, cudaStream_t stream)
{
    const uint32_t rank = flags->options.rank;
    const CUdeviceptr flag = flag_at(flags, rank, 0, rank);
    struct batch batch = {.count = 0};
    add_fence(&batch);
    add_write(&batch, flag, UP);
    add_wait(&batch, flags, flag);
    add_write(&batch, flag, DOWN);
    return queue(flags, stream, &batch);
}

/* Waits for a trial. A stream that does not come to its end has its flag raised by the host. */
static int await_trial(const struct flags *flags, cudaStream_t stream)
{
    static const struct timespec nap = {.tv_nsec = TRIAL_NAP_NS};
    const uint32_t rank = flags->options.rank;
    _Atomic uint32_t *words = flags->options.memory;
    int result = (int)cudaStreamQuery(stream);
    uint32_t looks = 0;
    while (result == (int)cudaErrorNotReady) {
        (void)cudaGetLastError(); // it is none
        if (++looks > TRIAL_LOOKS) {
            atomic_store(&words[index_of(&flags->options, rank, 0, rank)], UP);
        }
        nanosleep(&nap, NULL);
        result = (int)cudaStreamQuery(stream);
    }
    return result == 0 && looks > TRIAL_LOOKS ? (int)cudaErrorLaunchTimeout : result;
}

/* The driver's function for operations on words of memory, on a stream. */
static enum status find_operations(struct flags *flags)
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
    flags->queue_operations = cast.function;
    flags->wait_flags = CU_STREAM_WAIT_VALUE_GEQ | (flushes != 0 ? CU_STREAM_WAIT_VALUE_FLUSH : 0u);
    return check_support(result, "streams cannot wait for words of memory");
}

static enum status lock(struct flags *flags)
{
    const struct flags_options *options = &flags->options;
    void *address = NULL;
    int result = (int)cudaHostRegister(options->memory, options->bytes, cudaHostRegisterMapped);
    flags->is_locked = result == 0;
    if (result == 0) {
        result = (int)cudaHostGetDevicePointer(&address, options->memory, 0);
    }
    flags->address = (CUdeviceptr)(uintptr_t)address;
    return check_support(result, "the flags of workers cannot be page-locked");
}

/* Some virtual machines have the driver's functions, and refuse what they are asked for. */
static enum status try_operations(const struct flags *flags, cudaStream_t stream)
{
    int result = queue_trial(flags, stream);
    if (result == 0) {
        result = await_trial(flags, stream);
    }
    return check_support(result, "streams cannot write words of memory, and wait for them");
}

enum status flags_open(struct flags *flags, const struct flags_options *options,
                       cudaStream_t stream)
{
    assert(options->rank < options->world && options->world <= FLAGS_PROCESSES_MAX);
    assert(index_of(options, options->world, 0, 0) * sizeof(uint32_t) <= options->bytes);
    flags->options = *options;
    enum status status = find_operations(flags);
    if (status == STATUS_OK) {
        status = lock(flags);
    }
    return status == STATUS_OK ? try_operations(flags, stream) : status;
}

void flags_close(struct flags *flags)
{
    if (flags->is_locked) {
        cudaHostUnregister(flags->options.memory);
    }
    *flags = (struct flags){0};
}

/* The graph of a trial. NULL where it cannot be captured. */
static cudaGraph_t capture_trial(const struct flags *flags, cudaStream_t stream, int *ret_result)
{
    cudaGraph_t graph = NULL;
    int result = (int)cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
    if (result == 0) {
        int queued = queue_trial(flags, stream);
        result = (int)cudaStreamEndCapture(stream, &graph); // in any case
        result = queued != 0 ? queued : result;
    }
    if (result != 0 && graph != NULL) {
        cudaGraphDestroy(graph);
        graph = NULL;
    }
    *ret_result = result;
    return graph;
}

bool flags_try_capture(const struct flags *flags, cudaStream_t stream, char *ret_why,
                       size_t why_size)
{
    int result = 0;
    cudaGraphExec_t replayed = NULL;
    cudaGraph_t graph = capture_trial(flags, stream, &result);
    if (graph != NULL) {
        result = (int)cudaGraphInstantiate(&replayed, graph, 0);
        cudaGraphDestroy(graph);
    }
    for (uint32_t time = 0; time < 2 && result == 0; time++) {
        result = (int)cudaGraphLaunch(replayed, stream);
    }
    if (result == 0) {
        result = await_trial(flags, stream);
    }
    if (replayed != NULL) {
        cudaGraphExecDestroy(replayed);
    }
    if (result != 0) {
        (void)cudaGetLastError(); // it has been dealt with
        snprintf(ret_why, why_size, "%s", cudaGetErrorString((cudaError_t)result));
    }
    return result == 0;
}

void flags_release(const struct flags *flags)
{
    const struct flags_options *options = &flags->options;
    _Atomic uint32_t *words = options->memory;
    size_t first = index_of(options, options->rank, 0, 0);
    size_t count = (size_t)options->barrier_count * options->world;
    for (size_t i = 0; i < count; i++) {
        atomic_store(&words[first + i], UP);
    }
}
