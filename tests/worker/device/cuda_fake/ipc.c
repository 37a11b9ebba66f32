/* What processes of a host share on the fake runtime: device memory, which is a file in memory that
 * others open through /proc, and words of the host's memory that streams write and wait for.
 *
 * As on a GPU, a process cannot open its own memory by a handle, and a wait that nobody ends lasts
 * forever. Where a GPU would share what lies beside an allocation as well, because it is not of
 * whole units of the driver's, there is no handle. */
#include "tests/worker/device/cuda_fake/capture.h"
#include "tests/worker/device/cuda_fake/runtime.h"

#include <cuda.h>

#include <assert.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define PIECES_MAX     4096
#define UNIT           ((size_t)2 << 20)
#define OPERATIONS_MAX 64
#define NAP_NS         1000000 // then a wait looks again: the host ends it without a wake

/* Of this process's own memory, or of another one's that is mapped here. */
struct piece {
    void *memory; // NULL: vacant
    size_t bytes;
    int descriptor; // -1: of another process
};

static struct piece pieces[PIECES_MAX];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // of them: servers have several threads

struct handle {
    pid_t process;
    int descriptor;
    size_t bytes;
};

static struct piece *find(const void *memory)
{
    for (uint32_t i = 0; i < PIECES_MAX; i++) {
        if (pieces[i].memory == memory) {
            return &pieces[i];
        }
    }
    return NULL;
}

static cudaError_t map(int descriptor, bool is_own, size_t bytes, void **ret_memory)
{
    void *memory = MAP_FAILED;
    if (descriptor >= 0) {
        memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    }
    if (memory == MAP_FAILED) {
        return fake_fail(cudaErrorMemoryAllocation);
    }
    pthread_mutex_lock(&lock);
    struct piece *piece = find(NULL);
    if (piece == NULL) {
        abort(); // the table is too short
    }
    *piece = (struct piece){memory, bytes, is_own ? descriptor : -1};
    pthread_mutex_unlock(&lock);
    *ret_memory = memory;
    return cudaSuccess;
}

/* Not-a-number in floats of all kinds. */
cudaError_t fake_ipc_allocate(void **ret_memory, size_t bytes)
{
    int descriptor = memfd_create("fake-device", MFD_CLOEXEC);
    size_t size = bytes > 0 ? bytes : 1;
    if (descriptor < 0 || ftruncate(descriptor, (off_t)size) != 0) {
        return fake_fail(cudaErrorMemoryAllocation);
    }
    cudaError_t error = map(descriptor, true, size, ret_memory);
    if (error == cudaSuccess) {
        memset(*ret_memory, 0xFF, size);
    }
    return error;
}

bool fake_ipc_free(void *memory)
{
    pthread_mutex_lock(&lock);
    struct piece *piece = memory != NULL ? find(memory) : NULL;
    const struct piece freed = piece != NULL ? *piece : (struct piece){0};
    if (piece != NULL) {
        *piece = (struct piece){0};
    }
    pthread_mutex_unlock(&lock);
    if (freed.memory == NULL) {
        return false;
    }
    munmap(freed.memory, freed.bytes);
    if (freed.descriptor >= 0) {
        close(freed.descriptor);
    }
    return true;
}

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t *ret_handle, void *memory)
{
    pthread_mutex_lock(&lock);
    const struct piece *piece = memory != NULL ? find(memory) : NULL;
    const struct piece shared = piece != NULL ? *piece : (struct piece){0};
    pthread_mutex_unlock(&lock);
    if (shared.memory == NULL || shared.bytes % UNIT != 0) {
        return fake_fail(cudaErrorNotSupported);
    }
    const struct handle handle = {getpid(), shared.descriptor, shared.bytes};
    memset(ret_handle, 0, sizeof(*ret_handle));
    memcpy(ret_handle, &handle, sizeof(handle));
    return cudaSuccess;
}

cudaError_t cudaIpcOpenMemHandle(void **ret_memory, cudaIpcMemHandle_t from, unsigned int flags)
{
    struct handle handle;
    char path[64];
    memcpy(&handle, &from, sizeof(handle));
    assert(flags == cudaIpcMemLazyEnablePeerAccess);
    if (handle.process == getpid()) {
        return fake_fail(cudaErrorDeviceUninitialized);
    }
    if (fake_has_mode("unreachable")) {
        return fake_fail(cudaErrorPeerAccessUnsupported);
    }
    snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)handle.process, handle.descriptor);
    int descriptor = open(path, O_RDWR | O_CLOEXEC);
    cudaError_t error = map(descriptor, false, handle.bytes, ret_memory);
    if (descriptor >= 0) {
        close(descriptor);
    }
    return error;
}

cudaError_t cudaIpcCloseMemHandle(void *memory)
{
    return fake_ipc_free(memory) ? cudaSuccess : fake_fail(cudaErrorInvalidValue);
}

/* ============================================================================================
 * Words
 * ========================================================================================== */

struct operation {
    CUstreamBatchMemOpType type;
    _Atomic uint32_t *word; // NULL: a barrier
    uint32_t value;
};

/* What one call queues, and a graph has as one node. */
struct batch {
    unsigned count;
    struct operation operations[OPERATIONS_MAX];
};

static void write_word(const struct operation *operation)
{
    atomic_store(operation->word, operation->value);
    syscall(SYS_futex, operation->word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static void wait_for_word(const struct operation *operation)
{
    static const struct timespec nap = {.tv_nsec = NAP_NS};
    uint32_t seen;
    while ((int32_t)((seen = atomic_load(operation->word)) - operation->value) < 0) {
        syscall(SYS_futex, operation->word, FUTEX_WAIT, seen, &nap, NULL, 0);
    }
}

static void run_batch(void *context)
{
    const struct batch *batch = context;
    for (unsigned i = 0; i < batch->count; i++) {
        const struct operation *operation = &batch->operations[i];
        if (operation->type == CU_STREAM_MEM_OP_BARRIER) {
            atomic_thread_fence(memory_order_seq_cst);
        } else if (operation->type == CU_STREAM_MEM_OP_WRITE_VALUE_32) {
            write_word(operation);
        } else {
            wait_for_word(operation);
        }
    }
}

static struct operation operation_of(const CUstreamBatchMemOpParams *from)
{
    struct operation operation = {.type = from->operation};
    CUdeviceptr address = 0;
    if (from->operation == CU_STREAM_MEM_OP_WRITE_VALUE_32) {
        address = from->writeValue.address;
        operation.value = from->writeValue.value;
    } else if (from->operation != CU_STREAM_MEM_OP_BARRIER) {
        assert(from->operation == CU_STREAM_MEM_OP_WAIT_VALUE_32);
        assert(from->waitValue.flags == CU_STREAM_WAIT_VALUE_GEQ);
        address = from->waitValue.address;
        operation.value = from->waitValue.value;
    }
    operation.word = (_Atomic uint32_t *)(uintptr_t)address; // NOLINT(performance-no-int-to-ptr)
    return operation;
}

static CUresult queue_operations(CUstream stream, unsigned count,
                                 CUstreamBatchMemOpParams *operations, unsigned flags)
{
    struct batch batch = {.count = count};
    assert(flags == 0 && count <= OPERATIONS_MAX);
    if (fake_has_mode("wordless")) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    if (fake_has_mode("uncaptured") && fake_stream_capture(stream) != NULL) {
        (void)fake_capture_forbid();
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    for (unsigned i = 0; i < count; i++) {
        batch.operations[i] = operation_of(&operations[i]);
    }
    const struct fake_task task = {
        .run = run_batch, .argument = &batch, .argument_bytes = sizeof(batch)};
    return fake_stream_queue(stream, &task) == cudaSuccess ? CUDA_SUCCESS
                                                           : CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
}

cudaError_t cudaGetDriverEntryPointByVersion(const char *name, void **ret_function,
                                             unsigned int version, unsigned long long flags,
                                             enum cudaDriverEntryPointQueryResult *ret_result)
{
    union {
        void *symbol;
        CUresult (*function)(CUstream stream, unsigned count, CUstreamBatchMemOpParams *operations,
                             unsigned flags);
    } cast = {.function = queue_operations};
    (void)flags;
    bool is_known = strcmp(name, "cuStreamBatchMemOp") == 0 && version >= 12000;
    *ret_function = is_known ? cast.symbol : NULL;
    *ret_result = is_known ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
    return cudaSuccess;
}
