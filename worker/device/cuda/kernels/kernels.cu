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

// A block adds up the parts of one channel: each thread its own in order, then the threads in
// halves. The first one does what follows from that.
static __global__ void finish_kernel(const double *parts, size_t channels, size_t count,
                                     struct cuda_norm_channel n, enum cuda_finish finish)
{
    __shared__ double first[CUDA_FINISH_THREADS], second[CUDA_FINISH_THREADS];
    const size_t c = blockIdx.x, t = threadIdx.x;
    first[t] = second[t] = 0;
    for (size_t p = t; p < count; p += CUDA_FINISH_THREADS) {
        first[t] += parts[(p * channels + c) * 2];
        second[t] += parts[(p * channels + c) * 2 + 1];
    }
    for (size_t distance = CUDA_FINISH_THREADS / 2; distance > 0; distance /= 2) {
        __syncthreads();
        if (t < distance) {
            first[t] += first[t + distance];
            second[t] += second[t + distance];
        }
    }
    if (t == 0) {
        n.sums[c] = first[0];
        n.sums[channels + c] = second[0];
        channel_finish(&n, channels, c, finish);
    }
}

int kernel_norm_finish(const struct cuda_norm *norm, const double *parts,
                       const struct cuda_norm_channel *channel, enum cuda_finish finish,
                       void *stream)
{
    finish_kernel<<<static_cast<unsigned>(norm->channels), CUDA_FINISH_THREADS, 0,
                    stream_of(stream)>>>(parts, norm->channels, norm->parts, *channel, finish);
    return static_cast<int>(cudaGetLastError());
}
