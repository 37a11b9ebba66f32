/* What the first GPU reaches at best: a large matrix product, and copies. The ceilings that
 * bench/train puts its speeds beside.
 *
 *     bench_gpu_peak PRECISION          fp32, tf32 or bf16
 *
 * Prints a line of JSON; without a GPU a line that says so, and exits 1. */
#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIZE            ((uint64_t)8192) // rows and columns
#define WORKSPACE_BYTES ((size_t)64 << 20)
#define WARMUP          5
#define REPEATS         20
#define COPY_BYTES      ((size_t)1 << 30)

struct peak {
    bool is_bf16, is_tf32;
    cublasLtHandle_t blas;
    cublasLtMatmulDesc_t description;
    cublasLtMatrixLayout_t layout;
    cublasLtMatmulAlgo_t algorithm;
    void *a, *b, *d, *workspace, *host; // host: page-locked
    cudaEvent_t begin, end;
};

static void fail(void)
{
    exit(1); // NOLINT(concurrency-mt-unsafe): there is one thread
}

static void must(int result, const char *what)
{
    if (result != 0) {
        fprintf(stderr, "bench_gpu_peak: cannot %s: error %d\n", what, result);
        fail();
    }
}

static void find_gpu(void)
{
    int count = 0;
    cudaError_t error = cudaGetDeviceCount(&count);
    if (error != cudaSuccess || count == 0) {
        fprintf(stderr, "there is no GPU on this machine: %s\n",
                error == cudaSuccess ? "none is visible" : cudaGetErrorString(error));
        fail();
    }
}

/* Zeros would cost less power, and so run faster, than numbers. */
static void fill(struct peak *peak, void *device, size_t bytes)
{
    uint32_t state = 1;
    for (size_t i = 0; i < bytes / 4; i++) {
        state = state * 1664525 + 1013904223;
        // In [1, 2) as float; both halves a bfloat16 of such a size, too.
        ((uint32_t *)peak->host)[i] = 0x3F803F80 | (state >> 9 & 0x007F007F);
    }
    must((int)cudaMemcpy(device, peak->host, bytes, cudaMemcpyHostToDevice), "fill a matrix");
}

static void prepare(struct peak *peak)
{
    size_t bytes = SIZE * SIZE * (peak->is_bf16 ? 2 : 4);
    must((int)cudaMalloc(&peak->a, COPY_BYTES), "get memory");
    must((int)cudaMalloc(&peak->b, COPY_BYTES), "get memory");
    must((int)cudaMalloc(&peak->d, bytes), "get memory");
    must((int)cudaMalloc(&peak->workspace, WORKSPACE_BYTES), "get memory");
    must((int)cudaMallocHost(&peak->host, COPY_BYTES), "get page-locked memory");
    must((int)cudaEventCreate(&peak->begin), "create an event");
    must((int)cudaEventCreate(&peak->end), "create an event");
    fill(peak, peak->a, bytes);
    fill(peak, peak->b, bytes);
}

static void plan_product(struct peak *peak)
{
    cudaDataType_t type = peak->is_bf16 ? CUDA_R_16BF : CUDA_R_32F;
    cublasComputeType_t compute = peak->is_tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    cublasLtMatmulPreference_t preference;
    cublasLtMatmulHeuristicResult_t found;
    const size_t workspace = WORKSPACE_BYTES;
    int count = 0;
    must((int)cublasLtCreate(&peak->blas), "start cuBLASLt");
    must((int)cublasLtMatmulDescCreate(&peak->description, compute, CUDA_R_32F), "plan");
    must((int)cublasLtMatrixLayoutCreate(&peak->layout, type, SIZE, SIZE, (int64_t)SIZE), "plan");
    must((int)cublasLtMatmulPreferenceCreate(&preference), "plan");
    must((int)cublasLtMatmulPreferenceSetAttribute(
             preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof(workspace)),
         "plan");
    must((int)cublasLtMatmulAlgoGetHeuristic(peak->blas, peak->description, peak->layout,
                                             peak->layout, peak->layout, peak->layout, preference,
                                             1, &found, &count),
         "find an algorithm");
    must(count == 1 ? 0 : -1, "find an algorithm");
    cublasLtMatmulPreferenceDestroy(preference);
    peak->algorithm = found.algo;
}

static void multiply(struct peak *peak)
{
    const float one = 1, zero = 0;
    must((int)cublasLtMatmul(peak->blas, peak->description, &one, peak->a, peak->layout, peak->b,
                             peak->layout, &zero, peak->d, peak->layout, peak->d, peak->layout,
                             &peak->algorithm, peak->workspace, WORKSPACE_BYTES, NULL),
         "multiply");
}

static void copy_on_device(struct peak *peak)
{
    must((int)cudaMemcpyAsync(peak->a, peak->b, COPY_BYTES, cudaMemcpyDeviceToDevice, NULL),
         "copy");
}

static void copy_up(struct peak *peak)
{
    must((int)cudaMemcpyAsync(peak->a, peak->host, COPY_BYTES, cudaMemcpyHostToDevice, NULL),
         "copy");
}

static void copy_down(struct peak *peak)
{
    must((int)cudaMemcpyAsync(peak->host, peak->a, COPY_BYTES, cudaMemcpyDeviceToHost, NULL),
         "copy");
}

/* Seconds of one run, in the mean. */
static double time_of(struct peak *peak, void (*run)(struct peak *peak))
{
    float ms = 0;
    for (int i = 0; i < WARMUP; i++) {
        run(peak);
    }
    must((int)cudaEventRecord(peak->begin, NULL), "record an event");
    for (int i = 0; i < REPEATS; i++) {
        run(peak);
    }
    must((int)cudaEventRecord(peak->end, NULL), "record an event");
    must((int)cudaEventSynchronize(peak->end), "run");
    must((int)cudaEventElapsedTime(&ms, peak->begin, peak->end), "measure");
    return (double)ms / 1e3 / REPEATS;
}

int main(int argc, char **argv)
{
    static struct peak peak;
    struct cudaDeviceProp properties;
    if (argc != 2) {
        fprintf(stderr, "usage: bench_gpu_peak fp32|tf32|bf16\n");
        return 2;
    }
    peak.is_bf16 = strcmp(argv[1], "bf16") == 0;
    peak.is_tf32 = strcmp(argv[1], "tf32") == 0;
    find_gpu();
    must((int)cudaGetDeviceProperties(&properties, 0), "ask a GPU what it is");
    prepare(&peak);
    plan_product(&peak);
    double product_s = time_of(&peak, multiply);
    double copy_s = time_of(&peak, copy_on_device);
    double up_s = time_of(&peak, copy_up), down_s = time_of(&peak, copy_down);
    double products = (double)SIZE * (double)SIZE * (double)SIZE;
    // A copy on the device reads and writes.
    printf("{\"gpu\":\"%s\",\"precision\":\"%s\",\"operations_per_second\":%.4g,"
           "\"memory_bytes_per_second\":%.4g,\"up_bytes_per_second\":%.4g,"
           "\"down_bytes_per_second\":%.4g}\n",
           properties.name, argv[1], 2 * products / product_s, 2 * (double)COPY_BYTES / copy_s,
           (double)COPY_BYTES / up_s, (double)COPY_BYTES / down_s);
    return 0;
}
