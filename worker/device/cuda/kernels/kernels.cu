// How bodies are launched on a GPU: one thread for each element, or for as many as there are
// threads.
#define OPTIMIZER_FUNCTION static __host__ __device__ inline
#include "worker/device/cuda/kernels/kernels.h"

#define RANDOM_FUNCTION static __host__ __device__ inline
#include "common/base/random.h"

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cooperative_groups.h>

#define THREADS    256
#define BLOCKS_MAX 8192 // more elements: threads take several

#define AT_ONCE_BLOCKS 2 // of a multiprocessor, at least: so many registers may threads have

static unsigned blocks_for(size_t count)
{
    size_t blocks = (count + THREADS - 1) / THREADS;
    return (unsigned)(blocks < BLOCKS_MAX ? (blocks > 0 ? blocks : 1) : BLOCKS_MAX);
}

static cudaStream_t stream_of(void *stream)
{
    return static_cast<cudaStream_t>(stream);
}

// Calls f(i) for every i below count, on the device. What f holds stays where arguments lie: a body
// may look up its arrays by an index.
template <typename Function>
static __global__ void __launch_bounds__(THREADS, AT_ONCE_BLOCKS)
    each_kernel(const __grid_constant__ Function f, size_t count)
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

#include "worker/device/cuda/kernels/launches.inc"

#define WARP       32
#define WHOLE_WARP 0xffffffffu
#define FOLDS      (CUDA_FINISH_THREADS / WARP)

// Adds up the parts of a channel, as CUDA_FINISH_THREADS threads do: each its own in order, then
// the threads in halves. It is a warp, each of whose lanes is several of these threads; the first
// one does what follows from the sums.
static __device__ void finish_channel(const struct sums_finish &f, size_t c, unsigned lane)
{
    const double2 *parts = reinterpret_cast<const double2 *>(f.parts) + c;
    double first[FOLDS] = {}, second[FOLDS] = {};
    for (size_t p = lane; p < f.part_count; p += CUDA_FINISH_THREADS) {
#pragma unroll
        for (unsigned k = 0; k < FOLDS; k++) {
            if (p + k * WARP < f.part_count) {
                const double2 part = parts[(p + k * WARP) * f.channels];
                first[k] += part.x;
                second[k] += part.y;
            }
        }
    }
#pragma unroll
    for (unsigned distance = FOLDS / 2; distance > 0; distance /= 2) {
#pragma unroll
        for (unsigned k = 0; k < distance; k++) {
            first[k] += first[k + distance];
            second[k] += second[k + distance];
        }
    }
#pragma unroll
    for (unsigned distance = WARP / 2; distance > 0; distance /= 2) {
        first[0] += __shfl_down_sync(WHOLE_WARP, first[0], distance);
        second[0] += __shfl_down_sync(WHOLE_WARP, second[0], distance);
    }
    if (lane == 0) {
        f.channel.sums[c] = first[0];
        f.channel.sums[f.channels + c] = second[0];
        channel_finish(&f.channel, f.channels, c, f.finish);
    }
}

static __device__ void finish_channels(const struct sums_finish &f)
{
    const size_t step = static_cast<size_t>(gridDim.x) * blockDim.x / WARP;
    const size_t thread = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    for (size_t c = thread / WARP; c < f.channels; c += step) {
        finish_channel(f, c, static_cast<unsigned>(thread % WARP));
    }
}

static __global__ void finish_kernel(struct sums_finish f)
{
    finish_channels(f);
}

static int finish_sums(const struct sums_finish *f, void *stream)
{
    finish_kernel<<<blocks_for(f->channels * WARP), THREADS, 0, stream_of(stream)>>>(*f);
    return static_cast<int>(cudaGetLastError());
}

int kernel_norm_finish(const struct cuda_norm *norm, const double *parts,
                       const struct cuda_norm_channel *channel, enum cuda_finish finish,
                       void *stream)
{
    const struct sums_finish f = {parts, norm->channels, norm->parts, *channel, finish};
    return finish_sums(&f, stream);
}

// All blocks are on the GPU at the same time (a cooperative launch), and wait for each other.
template <typename Part, typename Then>
static __global__ void __launch_bounds__(THREADS, AT_ONCE_BLOCKS)
    sums_kernel(Part part, size_t part_count, struct sums_finish f, Then then, size_t then_count)
{
    const cooperative_groups::grid_group grid = cooperative_groups::this_grid();
    const size_t step = static_cast<size_t>(gridDim.x) * blockDim.x;
    const size_t thread = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    for (size_t i = thread; i < part_count; i += step) {
        part(i);
    }
    grid.sync();
    finish_channels(f);
    if (then_count == 0) {
        return;
    }
    grid.sync();
    for (size_t i = thread; i < then_count; i += step) {
        then(i);
    }
}

// How many blocks of a kernel the GPU has at the same time, if it lets them wait for each other.
static int blocks_at_once(const void *kernel, unsigned *ret_blocks)
{
    int device = 0, may_wait = 0, processors = 0, blocks = 0;
    cudaError_t error = cudaGetDevice(&device);
    if (error == cudaSuccess) {
        error = cudaDeviceGetAttribute(&may_wait, cudaDevAttrCooperativeLaunch, device);
    }
    if (error == cudaSuccess) {
        error = cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
    }
    if (error == cudaSuccess) {
        error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, THREADS, 0);
    }
    *ret_blocks = may_wait != 0 ? static_cast<unsigned>(processors * blocks) : 0;
    return static_cast<int>(error);
}

// One by one, where blocks may not wait.
template <typename Part, typename Then>
static int sums_one_by_one(const struct sums_finish *f, const Part &part, const Then &then,
                           void *stream)
{
    int result = each(part.count(), stream, part);
    if (result == 0) {
        result = finish_sums(f, stream);
    }
    return result == 0 ? each(then.count(), stream, then) : result;
}

template <typename Part, typename Then>
static int sums_then(const struct sums_finish *finish, const Part &part, const Then &then,
                     void *stream)
{
    const void *kernel = reinterpret_cast<const void *>(sums_kernel<Part, Then>);
    Part parts = part;
    Then thens = then;
    struct sums_finish f = *finish;
    size_t part_count = part.count(), then_count = then.count(), most = f.channels * WARP;
    unsigned blocks = 0;
    int result = blocks_at_once(kernel, &blocks);
    if (result != 0) {
        return result;
    }
    if (blocks == 0) {
        return sums_one_by_one(finish, part, then, stream);
    }
    most = most < part_count ? part_count : most;
    most = most < then_count ? then_count : most;
    blocks = blocks < blocks_for(most) ? blocks : blocks_for(most);
    void *arguments[] = {&parts, &part_count, &f, &thens, &then_count};
    result = static_cast<int>(
        cudaLaunchCooperativeKernel(kernel, blocks, THREADS, arguments, 0, stream_of(stream)));
    if (result != static_cast<int>(cudaErrorCooperativeLaunchTooLarge)) {
        return result;
    }
    (void)cudaGetLastError(); // a tool that instruments kernels leaves room for fewer blocks
    return sums_one_by_one(finish, part, then, stream);
}
