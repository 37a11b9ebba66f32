// How bodies are launched on a GPU: one thread for each element, or for as many as there are
// threads.
#define OPTIMIZER_FUNCTION static __host__ __device__ inline
#include "worker/device/cuda/kernels.h"

#define RANDOM_FUNCTION static __host__ __device__ inline
#include "common/base/random.h"

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#define THREADS    256
#define BLOCKS_MAX 8192 // more elements: threads take several
#define WARP       32

static unsigned blocks_for(size_t count)
{
    size_t blocks = (count + THREADS - 1) / THREADS;
    return (unsigned)(blocks < BLOCKS_MAX ? (blocks > 0 ? blocks : 1) : BLOCKS_MAX);
}

static cudaStream_t stream_of(void *stream)
{
    return static_cast<cudaStream_t>(stream);
}

// Calls f(i) for every i below count, on the device.
template <typename Function> static __global__ void each_kernel(Function f, size_t count)
{
    size_t step = static_cast<size_t>(gridDim.x) * blockDim.x;
    for (size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
         i += step) {
        f(i);
    }
}

template <typename Function> static int each(size_t count, void *stream, Function f)
{
    if (count > 0) {
        each_kernel<<<blocks_for(count), THREADS, 0, stream_of(stream)>>>(f, count);
    }
    return static_cast<int>(cudaGetLastError());
}

#include "worker/device/cuda/launches.inc"

// Threads of a warp have neighbouring channels; y of block and grid count parts.
static __global__ void part_kernel(enum cuda_type type, struct cuda_norm m,
                                   struct cuda_norm_operands o)
{
    size_t c = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    size_t p = static_cast<size_t>(blockIdx.y) * blockDim.y + threadIdx.y;
    if (c >= m.channels || p >= m.parts) {
        return;
    }
    if (type == CUDA_TYPE_BF16) {
        body_bf16_norm_part(&m, &o, c, p);
    } else {
        body_float_norm_part(&m, &o, c, p);
    }
}

// A warp adds up the parts of one channel: each lane its own in order, then lane by lane.
static __global__ void parts_kernel(const double *parts, size_t channels, size_t count,
                                    double *sums)
{
    size_t c = blockIdx.x;
    double first = 0, second = 0;
    for (size_t p = threadIdx.x; p < count; p += WARP) {
        first += parts[(p * channels + c) * 2];
        second += parts[(p * channels + c) * 2 + 1];
    }
    for (int distance = WARP / 2; distance > 0; distance /= 2) {
        first += __shfl_down_sync(0xFFFFFFFFu, first, distance);
        second += __shfl_down_sync(0xFFFFFFFFu, second, distance);
    }
    if (threadIdx.x == 0) {
        sums[c] = first;
        sums[channels + c] = second;
    }
}

int kernel_norm_sums(enum cuda_type type, const struct cuda_norm *norm,
                     const struct cuda_norm_operands *operands, double *sums, void *stream)
{
    const dim3 threads(WARP, THREADS / WARP);
    const dim3 blocks(static_cast<unsigned>((norm->channels + WARP - 1) / WARP),
                      static_cast<unsigned>((norm->parts + threads.y - 1) / threads.y));
    part_kernel<<<blocks, threads, 0, stream_of(stream)>>>(type, *norm, *operands);
    parts_kernel<<<static_cast<unsigned>(norm->channels), WARP, 0, stream_of(stream)>>>(
        operands->parts, norm->channels, norm->parts, sums);
    return static_cast<int>(cudaGetLastError());
}
