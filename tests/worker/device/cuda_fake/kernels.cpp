// Launches as tasks of a stream's thread: the arguments are those that a GPU would get.
#include "worker/device/cuda/kernels.h"

#include "tests/worker/device/cuda_fake/capture.h"
#include "tests/worker/device/cuda_fake/stream.h"

#define RANDOM_FUNCTION static inline
#include "common/base/random.h"

#include <cuda_bf16.h>

#include <cmath>
#include <type_traits>

#define WARP 32

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
    static bool is_loaded; // the kernel: its first launch does that
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

#include "worker/device/cuda/launches.inc"

// As a warp does it: each lane its parts in order, then the lanes in halves.
static void add_parts(const double *parts, size_t channels, size_t count, double *sums, size_t c)
{
    double first[2 * WARP] = {}, second[2 * WARP] = {};
    for (size_t p = 0; p < count; p++) {
        first[p % WARP] += parts[(p * channels + c) * 2];
        second[p % WARP] += parts[(p * channels + c) * 2 + 1];
    }
    for (size_t distance = WARP / 2; distance > 0; distance /= 2) {
        for (size_t lane = 0; lane < WARP; lane++) {
            first[lane] += first[lane + distance];
            second[lane] += second[lane + distance];
        }
    }
    sums[c] = first[0];
    sums[channels + c] = second[0];
}

int kernel_norm_sums(enum cuda_type type, const struct cuda_norm *norm,
                     const struct cuda_norm_operands *operands, double *sums, void *stream)
{
    const struct cuda_norm m = *norm;
    const struct cuda_norm_operands o = *operands;
    each(m.channels * m.parts, stream, [=](size_t i) {
        if (type == CUDA_TYPE_BF16) {
            body_bf16_norm_part(&m, &o, i % m.channels, i / m.channels);
        } else {
            body_float_norm_part(&m, &o, i % m.channels, i / m.channels);
        }
    });
    return each(m.channels, stream,
                [=](size_t c) { add_parts(o.parts, m.channels, m.parts, sums, c); });
}
