/* The CUDA backend: devices, and what they can do. */
#include "worker/device/cuda/dnn/dnn_choices.h"
#include "worker/device/cuda/host/report.h"
#include "worker/device/cuda/memory/page_lock.h"
#include "worker/device/cuda/module.h"
#include "worker/device/cuda/nccl/collective.h"
#include "worker/device/cuda/program.h"
#include "worker/device/cuda/vectors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CAPABILITY_MIN 8 // major number; those of meson.build

struct cuda_device {
    struct device base;
    struct dnn_target dnn;
    cublasLtHandle_t blas;
    cudaStream_t stream;
    bool replays_launches, checks_nodes, times_nodes;
    int index;
    char name[256];
    char gpu[384]; // what plans depend on: see dnn_target
    struct dnn_choices choices;
};

/* "13.0" */
static void version_text(int version, char *ret_text, size_t text_size)
{
    snprintf(ret_text, text_size, "%d.%d", version / 1000, version % 1000 / 10);
}

/* How many GPUs there are; 0, and why. */
static int count_devices(char *ret_why, size_t why_size)
{
    int count = 0, driver = 0;
    char needed[16], found[16];
    cudaError_t error = cudaGetDeviceCount(&count);
    cudaDriverGetVersion(&driver);
    version_text(CUDART_VERSION, needed, sizeof(needed));
    version_text(driver, found, sizeof(found));
    if (error == cudaSuccess && count > 0) {
        return count;
    }
    if (driver == 0) {
        snprintf(ret_why, why_size, "there is no NVIDIA driver (libcuda.so.1)");
    } else if (error == cudaErrorInsufficientDriver) {
        snprintf(ret_why, why_size,
                 "the NVIDIA driver is too old: it is for CUDA %s, this build for %s", found,
                 needed);
    } else {
        snprintf(ret_why, why_size, "the driver finds no GPU: %s",
                 error == cudaSuccess ? "none is visible" : cudaGetErrorString(error));
    }
    return 0;
}

/* Whether the kernels of this build run on a GPU, and if not, why. */
static bool runs_kernels(int index, char *ret_why, size_t why_size)
{
    struct cudaDeviceProp properties;
    cudaError_t error = cudaGetDeviceProperties(&properties, index);
    if (error != cudaSuccess) {
        snprintf(ret_why, why_size, "GPU %d does not say what it is: %s", index,
                 cudaGetErrorString(error));
        return false;
    }
    if (properties.major < CAPABILITY_MIN) {
        snprintf(
            ret_why, why_size,
            "GPU %d (%.64s) is too old: its compute capability is %d.%d, kernels are built for "
            "%d.0 and later",
            index, properties.name, properties.major, properties.minor, CAPABILITY_MIN);
        return false;
    }
    return true;
}

static bool is_available(char *ret_why, size_t why_size)
{
    int count = count_devices(ret_why, why_size);
    for (int i = 0; i < count; i++) {
        if (runs_kernels(i, ret_why, why_size)) {
            return true;
        }
    }
    return false;
}

static void close_cuda(struct device *base)
{
    struct cuda_device *device = (struct cuda_device *)base;
    if (device->blas != NULL) {
        cublasLtDestroy(device->blas);
    }
    if (device->dnn.handle != NULL) {
        cudnnDestroy(device->dnn.handle);
    }
    if (device->stream != NULL) {
        cudaStreamDestroy(device->stream);
    }
    dnn_choices_finish(&device->choices);
    free(device);
}

static void describe_gpu(struct cuda_device *device, const struct cudaDeviceProp *properties)
{
    int driver = 0;
    cudaDriverGetVersion(&driver);
    snprintf(device->gpu, sizeof(device->gpu),
             "%s, compute capability %d.%d, %d multiprocessors, driver for CUDA %d",
             properties->name, properties->major, properties->minor,
             properties->multiProcessorCount, driver);
    device->dnn.gpu = device->gpu;
}

static enum status open_libraries(struct cuda_device *device)
{
    struct cudaDeviceProp properties;
    enum status status = cuda_check((int)cudaSetDevice(device->index), "take a GPU");
    if (status != STATUS_OK) {
        return status;
    }
    status = cuda_check((int)cudaGetDeviceProperties(&properties, device->index),
                        "ask a GPU what it is");
    if (status != STATUS_OK) {
        return status;
    }
    snprintf(device->name, sizeof(device->name), "%s", properties.name);
    describe_gpu(device, &properties);
    status = cuda_check((int)cudaStreamCreateWithFlags(&device->stream, cudaStreamNonBlocking),
                        "create a stream");
    if (status != STATUS_OK) {
        return status;
    }
    cudnnStatus_t dnn = cudnnCreate(&device->dnn.handle);
    device->dnn.stream = device->stream;
    if (dnn == CUDNN_STATUS_SUCCESS) {
        dnn = cudnnSetStream(device->dnn.handle, device->stream);
    }
    if (dnn != CUDNN_STATUS_SUCCESS) {
        report_error("cuDNN does not start on GPU %d (%s): %s", device->index, device->name,
                     cudnnGetErrorString(dnn));
        return STATUS_DEVICE;
    }
    cublasStatus_t blas = cublasLtCreate(&device->blas);
    if (blas != CUBLAS_STATUS_SUCCESS) {
        report_error("cuBLASLt does not start on GPU %d (%s): %s", device->index, device->name,
                     cublasLtGetStatusString(blas));
        return STATUS_DEVICE;
    }
    return STATUS_OK;
}

/* Which GPU the options mean. */
static enum status choose_gpu(const struct device_options *options, int *ret_index)
{
    char why[256] = "";
    int count = count_devices(why, sizeof(why));
    if (count == 0) {
        report_error("device cuda: %s", why);
        return STATUS_UNSUPPORTED;
    }
    if (options->has_index && options->index >= (uint32_t)count) {
        report_error("device 'cuda:%u' does not exist: this host has %d GPU%s, cuda:0 to cuda:%d",
                     options->index, count, count == 1 ? "" : "s", count - 1);
        return STATUS_INVALID;
    }
    int index = (int)(options->has_index ? options->index : options->local_rank % (uint32_t)count);
    if (!runs_kernels(index, why, sizeof(why))) {
        report_error("device cuda: %s", why);
        return STATUS_UNSUPPORTED;
    }
    *ret_index = index;
    return STATUS_OK;
}

static enum status open_cuda(const struct device_options *options, struct device **ret_device)
{
    int index = 0;
    enum status status = choose_gpu(options, &index);
    if (status != STATUS_OK) {
        return status;
    }
    struct cuda_device *device = calloc(1, sizeof(*device));
    if (device == NULL) {
        return STATUS_NO_MEMORY;
    }
    device->base.ops = ringside_cuda_module(NULL);
    device->index = index;
    device->dnn.allows_nondeterministic = options->allows_nondeterministic;
    device->choices.timing_ms_max = options->timing_ms_max;
    device->dnn.choices = &device->choices;
    device->replays_launches = options->replays_launches;
    device->checks_nodes = options->checks_operations;
    device->times_nodes = options->times_operations;
    status = open_libraries(device);
    if (status != STATUS_OK) {
        close_cuda(&device->base);
        return status;
    }
    *ret_device = &device->base;
    return STATUS_OK;
}

static enum status compile(struct device *base, const struct program_options *options,
                           struct program **ret_program)
{
    const struct cuda_device *device = (const struct cuda_device *)base;
    const struct cuda_place place = {
        .dnn = &device->dnn,
        .blas = device->blas,
        .stream = device->stream,
        .replays_launches = device->replays_launches,
        .checks_nodes = device->checks_nodes,
        .times_nodes = device->times_nodes,
    };
    return cuda_program_create(options, &place, ret_program);
}

static bool has_precision(enum precision precision)
{
    (void)precision; // what a device lacks is found when a program is compiled for it
    return true;
}

/* ", NCCL 2.27.7", behind the other libraries; nothing if there is none. */
static void list_nccl(char *text, size_t text_size)
{
    const struct nccl_library *nccl = nccl_find();
    size_t used = strlen(text);
    if (nccl != NULL && used < text_size) {
        snprintf(text + used, text_size - used, ", NCCL %d.%d.%d", nccl->version / 10000,
                 nccl->version / 100 % 100, nccl->version % 100);
    }
}

/* "0: NVIDIA H200, 9.0, 139 GiB; driver for CUDA 13.0, ..." */
static void list_devices(char *ret_text, size_t text_size)
{
    char why[256], driver_text[16], runtime_text[16];
    int driver = 0, used = 0;
    int count = count_devices(why, sizeof(why));
    for (int i = 0; i < count && used >= 0 && (size_t)used < text_size; i++) {
        struct cudaDeviceProp properties;
        if (cudaGetDeviceProperties(&properties, i) == cudaSuccess) {
            used += snprintf(ret_text + used, text_size - (size_t)used,
                             "cuda:%d %s (compute capability %d.%d, %zu GiB); ", i, properties.name,
                             properties.major, properties.minor, properties.totalGlobalMem >> 30);
        }
    }
    cudaDriverGetVersion(&driver);
    version_text(driver, driver_text, sizeof(driver_text));
    version_text(CUDART_VERSION, runtime_text, sizeof(runtime_text));
    size_t dnn = cudnnGetVersion(), blas = cublasLtGetVersion();
    if (used >= 0 && (size_t)used < text_size) {
        snprintf(ret_text + used, text_size - (size_t)used,
                 "driver %s%s, CUDA %s, cuDNN %zu.%zu.%zu, cuBLASLt %zu.%zu.%zu",
                 driver > 0 ? "for CUDA " : "none", driver > 0 ? driver_text : "", runtime_text,
                 dnn / 10000, dnn / 100 % 100, dnn % 100, blas / 10000, blas / 100 % 100,
                 blas % 100);
        list_nccl(ret_text, text_size);
    }
}

static enum status open_vectors(const struct device_options *options,
                                struct vector_device **ret_vectors)
{
    int gpu = 0;
    enum status status = choose_gpu(options, &gpu);
    return status == STATUS_OK ? cuda_vectors_open(gpu, ret_vectors) : status;
}

static const char *list_choices(const struct device *base)
{
    const struct cuda_device *device = (const struct cuda_device *)base;
    return dnn_choices_text(&device->choices);
}

static enum status take_choices(struct device *base, const char *text)
{
    struct cuda_device *device = (struct cuda_device *)base;
    return dnn_choices_give(&device->choices, text);
}

static enum status introduce(struct device *base, bool is_first,
                             struct device_introduction *ret_introduction)
{
    const struct cuda_device *device = (const struct cuda_device *)base;
    return collective_introduce(device->index, is_first, ret_introduction);
}

static bool lock_memory(struct device *device, void *memory, size_t bytes)
{
    (void)device; // pages are locked for all of them
    return page_lock(memory, bytes);
}

static void unlock_memory(struct device *device, void *memory)
{
    (void)device;
    page_unlock(memory);
}

static const struct device_ops cuda_ops = {
    .name = "cuda",
    .summary = "cuDNN and cuBLASLt",
    .is_available = is_available,
    .has_precision = has_precision,
    .list = list_devices,
    .open = open_cuda,
    .compile = compile,
    .describe = cuda_program_describe,
    .memory = cuda_program_memory,
    .takes_bytes = true,
    .open_vectors = open_vectors,
    .list_choices = list_choices,
    .take_choices = take_choices,
    .introduce = introduce,
    .lock_memory = lock_memory,
    .unlock_memory = unlock_memory,
    .close = close_cuda,
};

const struct device_ops *ringside_cuda_module(void (*write)(enum log_level level,
                                                            const char *sentence))
{
    if (write != NULL) {
        report_set(write);
    }
    return &cuda_ops;
}
