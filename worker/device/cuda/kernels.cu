// Launches of the bodies: one thread for each element, or for as many as there are threads.
#include "worker/device/cuda/kernels.h"

#define RANDOM_FUNCTION static __host__ __device__ inline
#include "common/random.h"

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#define THREADS    256
#define BLOCKS_MAX 8192 // more elements: threads take several
#define WARP       32

#define BODY       static __device__ inline
#define ELEMENT    float
#define NAME(name) body_float_##name
#define LOAD(x)    (x)
#define STORE(x)   (x)
#include "worker/device/cuda/bodies.inc"
#undef ELEMENT
#undef NAME
#undef LOAD
#undef STORE
#define ELEMENT    __nv_bfloat16
#define NAME(name) body_bf16_##name
#define LOAD(x)    __bfloat162float(x)
#define STORE(x)   __float2bfloat16_rn(x)
#include "worker/device/cuda/bodies.inc"
#undef ELEMENT
#undef NAME
#undef LOAD
#undef STORE
#include "worker/device/cuda/channel_bodies.inc"

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

// The common form: a body whose arguments are captured.
#define EACH(type, count, stream, name, ...)                                             \
    do {                                                                                 \
        if ((type) == CUDA_TYPE_BF16) {                                                  \
            typedef __nv_bfloat16 T;                                                     \
            return each(count, stream,                                                   \
                        [=] __device__(size_t i) { body_bf16_##name(__VA_ARGS__, i); }); \
        }                                                                                \
        typedef float T;                                                                 \
        return each(count, stream,                                                       \
                    [=] __device__(size_t i) { body_float_##name(__VA_ARGS__, i); });    \
    } while (0)

int kernel_pixels(enum cuda_type type, const struct cuda_shape *shape, const float *from, void *to,
                  size_t count, void *stream)
{
    const struct cuda_shape s = *shape;
    EACH(type, count, stream, pixels, &s, from, static_cast<T *>(to));
}

int kernel_weights_in(enum cuda_type type, const struct cuda_weights *weights, const float *from,
                      void *to, size_t count, void *stream)
{
    const struct cuda_weights w = *weights;
    EACH(type, count, stream, weights_in, &w, from, static_cast<T *>(to));
}

int kernel_weights_out(enum cuda_type type, const struct cuda_weights *weights, const void *from,
                       float *to, size_t count, void *stream)
{
    const struct cuda_weights w = *weights;
    EACH(type, count, stream, weights_out, &w, static_cast<const T *>(from), to);
}

int kernel_relu(enum cuda_type type, void *y, size_t count, void *stream)
{
    EACH(type, count, stream, relu, static_cast<T *>(y));
}

int kernel_mask_positive(enum cuda_type type, void *grad, const void *data, size_t count,
                         void *stream)
{
    EACH(type, count, stream, mask, static_cast<T *>(grad), static_cast<const T *>(data));
}

int kernel_add(enum cuda_type type, const void *x, const void *other, void *y, bool has_relu,
               size_t count, void *stream)
{
    EACH(type, count, stream, add, static_cast<const T *>(x), static_cast<const T *>(other),
         static_cast<T *>(y), has_relu);
}

int kernel_subsample(enum cuda_type type, const struct cuda_window *window, const void *x, void *y,
                     size_t count, void *stream)
{
    const struct cuda_window w = *window;
    EACH(type, count, stream, subsample, &w, static_cast<const T *>(x), static_cast<T *>(y));
}

int kernel_subsample_back(enum cuda_type type, const struct cuda_window *window, const void *dy,
                          void *dx, size_t count, void *stream)
{
    const struct cuda_window w = *window;
    EACH(type, count, stream, subsample_back, &w, static_cast<const T *>(dy), static_cast<T *>(dx));
}

int kernel_pad(enum cuda_type type, const struct cuda_window *window, const void *x, void *y,
               size_t count, void *stream)
{
    const struct cuda_window w = *window;
    EACH(type, count, stream, pad, &w, static_cast<const T *>(x), static_cast<T *>(y));
}

int kernel_pad_back(enum cuda_type type, const struct cuda_window *window, const void *dy, void *dx,
                    size_t count, void *stream)
{
    const struct cuda_window w = *window;
    EACH(type, count, stream, pad_back, &w, static_cast<const T *>(dy), static_cast<T *>(dx));
}

int kernel_max_pool(enum cuda_type type, const struct cuda_window *window, const void *x, void *y,
                    unsigned char *indices, size_t count, void *stream)
{
    const struct cuda_window w = *window;
    EACH(type, count, stream, max_pool, &w, static_cast<const T *>(x), static_cast<T *>(y),
         indices);
}

int kernel_max_pool_back(enum cuda_type type, const struct cuda_window *window, const void *dy,
                         const unsigned char *indices, void *dx, size_t count, void *stream)
{
    const struct cuda_window w = *window;
    EACH(type, count, stream, max_pool_back, &w, static_cast<const T *>(dy), indices,
         static_cast<T *>(dx));
}

int kernel_global_pool(enum cuda_type type, const struct cuda_shape *shape, const void *x, void *y,
                       size_t count, void *stream)
{
    const struct cuda_shape s = *shape;
    EACH(type, count, stream, global_pool, &s, static_cast<const T *>(x), static_cast<T *>(y));
}

int kernel_global_pool_back(enum cuda_type type, const struct cuda_shape *shape, const void *dy,
                            void *dx, size_t count, void *stream)
{
    const struct cuda_shape s = *shape;
    EACH(type, count, stream, global_pool_back, &s, static_cast<const T *>(dy),
         static_cast<T *>(dx));
}

int kernel_dropout(enum cuda_type type, const struct cuda_shape *shape,
                   const struct cuda_dropout *dropout, const uint64_t *sample_keys,
                   const void *from, void *to, size_t count, void *stream)
{
    const struct cuda_shape s = *shape;
    const struct cuda_dropout d = *dropout;
    EACH(type, count, stream, dropout, &s, &d, sample_keys, static_cast<const T *>(from),
         static_cast<T *>(to));
}

int kernel_loss(enum cuda_type type, const struct cuda_loss *loss, const void *x,
                const uint32_t *labels, float *probabilities, double *losses, uint32_t *hits,
                size_t samples, void *stream)
{
    const struct cuda_loss l = *loss;
    EACH(type, samples, stream, loss, &l, static_cast<const T *>(x), labels, probabilities, losses,
         hits);
}

int kernel_loss_back(enum cuda_type type, const struct cuda_loss *loss, const float *probabilities,
                     const uint32_t *labels, void *dx, size_t count, void *stream)
{
    const struct cuda_loss l = *loss;
    EACH(type, count, stream, loss_back, &l, probabilities, labels, static_cast<T *>(dx));
}

int kernel_bias(enum cuda_type type, const float *bias, void *y, size_t outputs, bool has_relu,
                size_t count, void *stream)
{
    EACH(type, count, stream, bias, bias, static_cast<T *>(y), outputs, has_relu);
}

// ---- Batch normalisation ----

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

int kernel_norm_apply(enum cuda_type type, const struct cuda_norm *norm,
                      const struct cuda_norm_operands *operands, void *stream)
{
    const struct cuda_norm m = *norm;
    const struct cuda_norm_operands o = *operands;
    if (type == CUDA_TYPE_BF16) {
        return each(m.rows * m.channels, stream,
                    [=] __device__(size_t i) { body_bf16_norm_apply(&m, &o, i); });
    }
    return each(m.rows * m.channels, stream,
                [=] __device__(size_t i) { body_float_norm_apply(&m, &o, i); });
}

int kernel_norm_gradient(enum cuda_type type, const struct cuda_norm *norm,
                         const struct cuda_norm_operands *operands, void *stream)
{
    const struct cuda_norm m = *norm;
    const struct cuda_norm_operands o = *operands;
    if (type == CUDA_TYPE_BF16) {
        return each(m.rows * m.channels, stream,
                    [=] __device__(size_t i) { body_bf16_norm_gradient(&m, &o, i); });
    }
    return each(m.rows * m.channels, stream,
                [=] __device__(size_t i) { body_float_norm_gradient(&m, &o, i); });
}

int kernel_norm_centre(enum cuda_type type, const void *x, float *centre, size_t channels,
                       void *stream)
{
    if (type == CUDA_TYPE_BF16) {
        const __nv_bfloat16 *from = static_cast<const __nv_bfloat16 *>(x);
        return each(channels, stream,
                    [=] __device__(size_t c) { centre[c] = __bfloat162float(from[c]); });
    }
    const float *from = static_cast<const float *>(x);
    return each(channels, stream, [=] __device__(size_t c) { centre[c] = from[c]; });
}

int kernel_norm_uncentre(const struct cuda_norm_channel *channel, size_t channels, void *stream)
{
    const struct cuda_norm_channel n = *channel;
    return each(channels, stream, [=] __device__(size_t c) { channel_uncentre(&n, channels, c); });
}

int kernel_norm_forward(const struct cuda_norm_channel *channel, size_t channels, void *stream)
{
    const struct cuda_norm_channel n = *channel;
    return each(channels, stream, [=] __device__(size_t c) { channel_forward(&n, channels, c); });
}

int kernel_norm_recall(const struct cuda_norm_channel *channel, size_t channels, void *stream)
{
    const struct cuda_norm_channel n = *channel;
    return each(channels, stream, [=] __device__(size_t c) { channel_recall(&n, c); });
}

int kernel_norm_param_gradients(const struct cuda_norm_channel *channel, size_t channels,
                                void *stream)
{
    const struct cuda_norm_channel n = *channel;
    return each(channels, stream, [=] __device__(size_t c) { channel_gradients(&n, channels, c); });
}

int kernel_norm_backward(const struct cuda_norm_channel *channel, size_t channels, void *stream)
{
    const struct cuda_norm_channel n = *channel;
    return each(channels, stream, [=] __device__(size_t c) { channel_backward(&n, channels, c); });
}

int kernel_sums_to_floats(const double *sums, float *to, size_t count, void *stream)
{
    return each(count, stream, [=] __device__(size_t i) { to[i] = static_cast<float>(sums[i]); });
}
