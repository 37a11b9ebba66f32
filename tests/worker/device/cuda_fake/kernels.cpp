// Launches as tasks of a stream's thread: the arguments are those that a GPU would get.
#include "worker/device/cuda/kernels/kernels.h"

#include "tests/worker/device/cuda_fake/capture.h"
#include "tests/worker/device/cuda_fake/stream.h"

#define RANDOM_FUNCTION static inline
#include "common/base/random.h"

#include <cuda_bf16.h>

#include <atomic>
#include <cmath>
#include <type_traits>

using std::exp;
using std::log;
using std::sqrt;

template <typename Function> struct launch {
    Function f;
    size_t count;
};

// Backwards, for threads have no order.
template <typename Function> static void run_launch(void *context)
{
    const launch<Function> *task = static_cast<const launch<Function> *>(context);
    for (size_t i = task->count; i-- > 0;) {
        task->f(i);
    }
}

template <typename Function> static int each(size_t count, void *stream, Function f)
{
    static std::atomic<bool> is_loaded; // the kernel: its first launch does that, on any thread
    static_assert(std::is_trivially_copyable<Function>::value, "as arguments of a kernel are");
    const launch<Function> task = {f, count};
    if (!is_loaded) {
        is_loaded = fake_capture_forbid() == cudaSuccess;
    }
    if (is_loaded) {
        fake_stream_launch(static_cast<cudaStream_t>(stream), run_launch<Function>, &task,
                           sizeof(task));
    }
    return static_cast<int>(cudaGetLastError());
}

// Rows behind the last are neither loaded nor looked at, which gcc does not see.
#ifndef __clang__
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include "worker/device/cuda/kernels/launches.inc"

// As a warp does it: each thread its parts in order, then the threads in halves.
static void finish_channel(const struct sums_finish &f, size_t c)
{
    double first[CUDA_FINISH_THREADS] = {}, second[CUDA_FINISH_THREADS] = {};
    for (size_t p = 0; p < f.part_count; p++) {
        first[p % CUDA_FINISH_THREADS] += f.parts[(p * f.channels + c) * 2];
        second[p % CUDA_FINISH_THREADS] += f.parts[(p * f.channels + c) * 2 + 1];
    }
    for (size_t distance = CUDA_FINISH_THREADS / 2; distance > 0; distance /= 2) {
        for (size_t t = 0; t < distance; t++) {
            first[t] += first[t + distance];
            second[t] += second[t + distance];
        }
    }
    f.channel.sums[c] = first[0];
    f.channel.sums[f.channels + c] = second[0];
    channel_finish(&f.channel, f.channels, c, f.finish);
}

int kernel_norm_finish(const struct cuda_norm *norm, const double *parts,
                       const struct cuda_norm_channel *channel, enum cuda_finish finish,
                       void *stream)
{
    const struct sums_finish f = {parts, norm->channels, norm->parts, *channel, finish};
    return each(f.channels, stream, [=](size_t c) { finish_channel(f, c); });
}

template <typename Part, typename Then>
static int sums_then(const struct sums_finish *finish, const Part &part, const Then &then,
                     void *stream)
{
    const struct sums_finish f = *finish;
    return each(1, stream, [=](size_t) {
        for (size_t i = part.count(); i-- > 0;) {
            part(i);
        }
        for (size_t c = f.channels; c-- > 0;) {
            finish_channel(f, c);
        }
        for (size_t i = then.count(); i-- > 0;) {
            then(i);
        }
    });
}
