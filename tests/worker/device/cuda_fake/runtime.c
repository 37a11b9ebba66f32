/* The fake runtime's memory, copies and devices.
 *
 * FAKE_CUDA may hold, besides `lazy`:
 *
 *     pageable         no host memory can be page-locked
 *     ipc              other processes can map device memory: see ipc.c
 *     unreachable      and no GPU reaches that of another
 *     wordless         and streams refuse to write words of memory, and to wait for them
 *     uncaptured       and do that only where they do not capture
 *     small            a device without memory for more than a few vectors
 *     allocating       libraries ask for memory in every run, which spoils a capture
 *     uninstantiable   there is no memory for the graphs of captures
 *     unlaunchable     nor for their launches
 *     gpus=N           N devices, as far as anybody can tell; 1 without
 *     faulty=N         the N-th launch of a stream reads where nothing is: waits fail from then on
 */
#include "tests/worker/device/cuda_fake/runtime.h"

#include "tests/worker/device/cuda_fake/capture.h"
#include "tests/worker/device/cuda_fake/stream.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define ALIGNMENT   256 // CUDA promises as much
#define SMALL_BYTES ((size_t)1 << 20)
#define LOCKED_MAX  16

static _Atomic int current; // device
static _Thread_local cudaError_t last_error = cudaSuccess;

// Ranges of cudaHostRegister.
static const void *locked[LOCKED_MAX];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // of them: servers have several threads

bool fake_has_mode(const char *name)
{
    const char *mode = getenv("FAKE_CUDA");
    return mode != NULL && strstr(mode, name) != NULL;
}

cudaError_t fake_fail(cudaError_t error)
{
    last_error = error;
    return error;
}

/* Not-a-number in floats of all kinds. */
static cudaError_t allocate(void **ret_memory, size_t bytes)
{
    cudaError_t error = fake_capture_forbid();
    if (error != cudaSuccess) {
        return error;
    }
    size_t rounded = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    void *memory = aligned_alloc(ALIGNMENT, rounded > 0 ? rounded : ALIGNMENT);
    if (memory == NULL) {
        return fake_fail(cudaErrorMemoryAllocation);
    }
    if (!fake_has_mode("idle")) { // nobody would see it
        memset(memory, 0xFF, rounded);
    }
    *ret_memory = memory;
    return cudaSuccess;
}

cudaError_t cudaMalloc(void **ret_memory, size_t bytes)
{
    if (fake_has_mode("small") && bytes > SMALL_BYTES) {
        return fake_fail(cudaErrorMemoryAllocation);
    }
    cudaError_t error = fake_capture_forbid();
    return error == cudaSuccess && fake_has_mode("ipc") ? fake_ipc_allocate(ret_memory, bytes)
                                                        : allocate(ret_memory, bytes);
}

/* CUDA's waits for the device; who relies on that would fail here. */
cudaError_t cudaFree(void *memory)
{
    cudaError_t error = fake_capture_forbid();
    if (error == cudaSuccess && !fake_ipc_free(memory)) {
        free(memory);
    }
    return error;
}

cudaError_t cudaMallocHost(void **ret_memory, size_t bytes)
{
    return allocate(ret_memory, bytes);
}

cudaError_t cudaFreeHost(void *memory)
{
    return cudaFree(memory);
}

/* Puts `new` in the place of `old`; either may be NULL, a vacant place. */
static bool replace_locked(const void *old, const void *new)
{
    uint32_t i = 0;
    pthread_mutex_lock(&lock);
    while (i < LOCKED_MAX && locked[i] != old) {
        i++;
    }
    if (i < LOCKED_MAX) {
        locked[i] = new;
    }
    pthread_mutex_unlock(&lock);
    return i < LOCKED_MAX;
}

static bool is_locked(const void *memory)
{
    return replace_locked(memory, memory);
}

cudaError_t cudaHostRegister(void *memory, size_t bytes, unsigned int flags)
{
    (void)flags;
    assert(memory != NULL && bytes > 0);
    if (is_locked(memory)) {
        return fake_fail(cudaErrorHostMemoryAlreadyRegistered);
    }
    if (fake_has_mode("pageable") || !replace_locked(NULL, memory)) {
        return fake_fail(cudaErrorMemoryAllocation);
    }
    return cudaSuccess;
}

cudaError_t cudaHostUnregister(void *memory)
{
    return replace_locked(memory, NULL) ? cudaSuccess : fake_fail(cudaErrorHostMemoryNotRegistered);
}

cudaError_t cudaHostGetDevicePointer(void **ret_pointer, void *memory, unsigned int flags)
{
    (void)flags;
    if (!is_locked(memory)) {
        return fake_fail(cudaErrorInvalidValue);
    }
    *ret_pointer = memory;
    return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t *ret_free, size_t *ret_all)
{
    *ret_free = *ret_all = fake_has_mode("small") ? SMALL_BYTES : (size_t)1 << 36;
    return cudaSuccess;
}

struct copy {
    void *to;
    const void *from;
    size_t bytes;
};

static void run_copy(void *context)
{
    const struct copy *copy = context;
    memcpy(copy->to, copy->from, copy->bytes);
}

/* Asynchronous whatever the memory: more than CUDA promises to be, so that nobody relies on less.
 */
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                            cudaStream_t stream)
{
    (void)kind;
    const struct copy copy = {to, from, bytes};
    assert(bytes > 0);
    const struct fake_task task = {run_copy, &copy, sizeof(copy), bytes};
    return fake_stream_queue(stream, &task);
}

struct filling {
    void *to;
    int value;
    size_t bytes;
};

static void run_filling(void *context)
{
    const struct filling *filling = context;
    memset(filling->to, filling->value, filling->bytes);
}

cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream)
{
    const struct filling filling = {to, value, bytes};
    return fake_stream_launch(stream, run_filling, &filling, sizeof(filling));
}

cudaError_t cudaGetLastError(void)
{
    cudaError_t error = last_error;
    last_error = cudaSuccess;
    return error;
}

const char *cudaGetErrorString(cudaError_t error)
{
    return error == cudaErrorMemoryAllocation ? "out of memory"
           : error == cudaErrorIllegalAddress ? "an illegal memory access was encountered"
                                              : "an error of the fake runtime";
}

static int device_count(void)
{
    static const char mode[] = "gpus=";
    const char *modes = getenv("FAKE_CUDA");
    const char *at = modes != NULL ? strstr(modes, mode) : NULL;
    return at != NULL ? (int)strtol(at + strlen(mode), NULL, 10) : 1;
}

cudaError_t cudaGetDeviceCount(int *ret_count)
{
    *ret_count = device_count();
    return cudaSuccess;
}

/* Of all threads: a process here has no use for two devices. */
cudaError_t cudaSetDevice(int device)
{
    assert(device >= 0 && device < device_count());
    atomic_store(&current, device);
    return cudaSuccess;
}

cudaError_t cudaGetDevice(int *ret_device)
{
    *ret_device = atomic_load(&current);
    return cudaSuccess;
}

/* It can nothing that is asked for. */
cudaError_t cudaDeviceGetAttribute(int *ret_value, enum cudaDeviceAttr attribute, int device)
{
    (void)attribute;
    assert(device >= 0 && device < device_count());
    *ret_value = 0;
    return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *ret_version)
{
    *ret_version = CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *ret_properties, int device)
{
    static const char name[] = "threads of the host in the place of a GPU";
    assert(device >= 0 && device < device_count());
    memset(ret_properties, 0, sizeof(*ret_properties));
    memcpy(ret_properties->name, name, sizeof(name));
    memset(&ret_properties->uuid, 1 + device, sizeof(ret_properties->uuid));
    ret_properties->major = fake_has_mode("old") ? 7 : 9;
    ret_properties->minor = fake_has_mode("old") ? 5 : 0;
    ret_properties->totalGlobalMem = (size_t)1 << 36;
    return cudaSuccess;
}
