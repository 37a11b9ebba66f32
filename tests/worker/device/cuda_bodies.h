/* The bodies of the CUDA kernels for the host, to be run thread by thread against the reference
 * kernels: index for index the same arithmetic that a GPU runs. */
#ifndef TESTS_WORKER_DEVICE_CUDA_BODIES_H
#define TESTS_WORKER_DEVICE_CUDA_BODIES_H

#include "common/base/random.h"
#include "tests/worker/device/ref_kernel_fixture.h"
#include "worker/device/cuda/kernels/kernels.h"

#include <math.h>
#include <stdlib.h>

#define BODY       static inline
#define ELEMENT    float
#define LANES      4
#define NAME(name) body_##name
#define LOAD(x)    (x)
#define STORE(x)   (x)
#include "worker/device/cuda/kernels/bodies.inc"
#include "worker/device/cuda/kernels/channel_bodies.inc"
#include "worker/device/cuda/kernels/mean_bodies.inc"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on

#define TOLERANCE 1e-5
#define BATCH     ((size_t)3)

static inline float *allocate(size_t count)
{
    float *values = malloc((count + 1) * sizeof(*values));
    assert_non_null(values);
    for (size_t i = 0; i < count; i++) {
        values[i] = nanf("");
    }
    return values;
}

/* (N, C, H, W) to (N, H, W, C), by the body under test. */
static inline float *to_nhwc(const float *from, struct shape shape)
{
    const struct cuda_shape s = {shape.channels, (size_t)shape.rows * shape.columns};
    size_t pixels = BATCH * s.pixels;
    float *to = allocate(pixels * s.channels);
    for (size_t i = 0; i < pixels; i++) {
        body_pixels(&s, from, to, i);
    }
    return to;
}

/* Compares (N, H, W, C) values with (N, C, H, W) ones, and frees the former. */
static inline void check_nhwc(float *values, const float *expected, struct shape shape)
{
    size_t pixels = (size_t)shape.rows * shape.columns;
    for (size_t i = 0; i < BATCH * shape.channels * pixels; i++) {
        size_t c = i % shape.channels, at = i / shape.channels % pixels;
        size_t n = i / shape.channels / pixels;
        double other = (double)expected[(n * shape.channels + c) * pixels + at];
        if (!(fabs((double)values[i] - other) <= TOLERANCE * (1 + fabs(other)))) {
            fail_msg("element %zu (sample %zu, channel %zu, pixel %zu) is %g, not %g", i, n, c, at,
                     (double)values[i], other);
        }
    }
    free(values);
}

static inline size_t count_of(struct shape shape)
{
    return BATCH * shape.channels * shape.rows * shape.columns;
}

#endif
