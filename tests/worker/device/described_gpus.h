/* GPUs that are only described, as cuDNN writes a device down: plans can be made for them on a
 * machine that has none. */
#ifndef TESTS_WORKER_DEVICE_DESCRIBED_GPUS_H
#define TESTS_WORKER_DEVICE_DESCRIBED_GPUS_H

#include "worker/device/cuda/dnn/dnn.h"

#include <stdio.h>

#define DESCRIBED_GPU_COUNT 3

#define DESCRIBED_GPU_FORMAT                                                                      \
    "{\"deviceVer\":%u,\"driverVer\":13000,\"maxGridSize\":[2147483647,65535,65535],"             \
    "\"maxBlockSize\":[1024,1024,64],\"regsPerBlock\":65536,\"multiProcessorCount\":%u,"          \
    "\"smClockRateKHz\":1980000,\"memClockRateKHz\":3201000,\"l2CacheSize\":%u,\"warpSize\":32,"  \
    "\"maxSharedMemoryPerBlock\":49152,\"maxSharedMemoryPerBlockOptin\":%u,"                      \
    "\"reservedSharedMemoryPerBlock\":1024,\"maxRegistersPerSM\":65536,\"pciDeviceId\":0,"        \
    "\"maxCtasPerSM\":32,\"maxThreadsPerBlock\":1024,\"maxThreadsPerSM\":2048,\"isTccDriver\":0," \
    "\"supportCoopLaunch\":1,\"totalGlobalMem\":85899345920,\"cudaDeviceId\":0,"                  \
    "\"deviceName\":\"%s\"}"

static const struct described_gpu {
    const char *name;
    unsigned version, processors, cache_bytes, shared_bytes;
} described_gpus[DESCRIBED_GPU_COUNT] = {
    {"A100", 800, 108, 41943040, 166912},
    {"H100", 900, 132, 52428800, 232448},
    {"H200", 900, 132, 62914560, 232448},
};

/* As dnn_describe_device. */
static inline enum status described_gpu_create(const struct described_gpu *gpu,
                                               cudnnBackendDescriptor_t *ret_described)
{
    char json[1024];
    snprintf(json, sizeof(json), DESCRIBED_GPU_FORMAT, gpu->version, gpu->processors,
             gpu->cache_bytes, gpu->shared_bytes, gpu->name);
    return dnn_describe_device(json, ret_described);
}

#endif
