/* Loops over up to 16 neighbouring channels of all pixels of a sample: a vector of lanes a pixel.
 */
#include "worker/device/cpu/norm_bf16.h"

#include "common/vector/variants.h"
#include "worker/device/cpu/bf16.h"

#include <stdint.h>

#define RUN 64 // pixels whose sums are kept in float

/* Elements of a plane, which is declared in floats. */
struct halves {
    const uint16_t *x, *other;
    uint16_t *y, *dy, *dx;
};

static inline struct halves halves_of(const struct norm_plane *plane)
{
    return (struct halves){
        .x = (const void *)plane->x,
        .other = (const void *)plane->other,
        .y = (void *)plane->y,
        .dy = (void *)plane->dy,
        .dx = (void *)plane->dx,
    };
}

static inline void flush(float *first, float *second, uint32_t lanes, struct norm_sums *sums)
{
    for (uint32_t lane = 0; lane < lanes; lane++) {
        sums->first[lane] += (double)first[lane];
        sums->second[lane] += (double)second[lane];
        first[lane] = second[lane] = 0;
    }
}

VARIANT_BODY void statistics_body(const struct norm_plane *plane, const struct norm_lanes *lanes,
                                  struct norm_sums *sums, uint32_t count)
{
    const struct halves halves = halves_of(plane);
    float first[NORM_BLOCK_MAX] = {0}, second[NORM_BLOCK_MAX] = {0};
    struct norm_lanes own = *lanes;
    for (size_t i = 0; i < plane->pixels; i++) {
        const uint16_t *x = halves.x + i * plane->stride;
#pragma omp simd
        for (uint32_t lane = 0; lane < count; lane++) {
            float d = bf16_load(x[lane]) - own.centre[lane];
            first[lane] += d;
            second[lane] += d * d;
        }
        if (i % RUN == RUN - 1) {
            flush(first, second, count, sums);
        }
    }
    flush(first, second, count, sums);
}

VARIANT_BODY void apply_body(const struct norm_plane *plane, const struct norm_lanes *lanes,
                             uint32_t count)
{
    const struct halves halves = halves_of(plane);
    struct norm_lanes own = *lanes;
    bool has_other = halves.other != NULL, has_relu = plane->has_relu;
    for (size_t i = 0; i < plane->pixels; i++) {
        size_t at = i * plane->stride;
        const uint16_t *restrict other = has_other ? halves.other + at : halves.x + at;
        const uint16_t *restrict x = halves.x + at;
        uint16_t *restrict y = halves.y + at;
#pragma omp simd
        for (uint32_t lane = 0; lane < count; lane++) {
            float value = bf16_load(x[lane]) * own.factor[lane] + own.shift[lane];
            value = has_other ? value + bf16_load(other[lane]) : value;
            y[lane] = bf16_store(has_relu && value < 0 ? 0 : value);
        }
    }
}

VARIANT_BODY void reduce_body(const struct norm_plane *plane, const struct norm_lanes *lanes,
                              struct norm_sums *sums, uint32_t count, enum norm_mask mask)
{
    const struct halves halves = halves_of(plane);
    struct norm_lanes own = *lanes;
    float first[NORM_BLOCK_MAX] = {0}, second[NORM_BLOCK_MAX] = {0};
    for (size_t i = 0; i < plane->pixels; i++) {
        size_t at = i * plane->stride;
        const uint16_t *restrict x = halves.x + at, *restrict y = halves.y + at;
        uint16_t *restrict dy = halves.dy + at;
#pragma omp simd
        for (uint32_t lane = 0; lane < count; lane++) {
            float value = bf16_load(x[lane]);
            float result = mask == NORM_MASK_Y ? bf16_load(y[lane])
                                               : value * own.factor[lane] + own.shift[lane];
            bool passes = mask == NORM_NO_MASK || result > 0;
            float passed = passes ? bf16_load(dy[lane]) : 0;
            if (mask == NORM_MASK_Y) {
                dy[lane] = passes ? dy[lane] : 0;
            }
            first[lane] += passed;
            second[lane] += passed * (value - own.centre[lane]);
        }
        if (i % RUN == RUN - 1) {
            flush(first, second, count, sums);
        }
    }
    flush(first, second, count, sums);
}

VARIANT_BODY void gradient_body(const struct norm_plane *plane, const struct norm_lanes *lanes,
                                uint32_t count)
{
    const struct halves halves = halves_of(plane);
    struct norm_lanes own = *lanes;
    bool is_masked = plane->mask == NORM_MASK_X, adds = plane->adds_x;
    for (size_t i = 0; i < plane->pixels; i++) {
        size_t at = i * plane->stride;
        const uint16_t *restrict x = halves.x + at, *restrict dy = halves.dy + at;
        uint16_t *restrict dx = halves.dx + at;
#pragma omp simd
        for (uint32_t lane = 0; lane < count; lane++) {
            float value = bf16_load(x[lane]);
            bool passes = !is_masked || value * own.factor[lane] + own.shift[lane] > 0;
            float passed = passes ? bf16_load(dy[lane]) : 0;
            float gradient = passed * own.factor[lane] -
                             (value - own.centre[lane]) * own.slope[lane] - own.offset[lane];
            dx[lane] = bf16_store(adds ? bf16_load(dx[lane]) + gradient : gradient);
        }
    }
}

/* Sixteen lanes, as nearly always, are a constant to the compiler. */
VARIANT_TARGET_AVX512 void norm_bf16_statistics(const struct norm_plane *plane,
                                                const struct norm_lanes *lanes,
                                                struct norm_sums *sums)
{
    if (plane->block == NORM_BLOCK_MAX) {
        statistics_body(plane, lanes, sums, NORM_BLOCK_MAX);
    } else {
        statistics_body(plane, lanes, sums, (uint32_t)plane->block);
    }
}

VARIANT_TARGET_AVX512 void norm_bf16_apply(const struct norm_plane *plane,
                                           const struct norm_lanes *lanes)
{
    if (plane->block == NORM_BLOCK_MAX) {
        apply_body(plane, lanes, NORM_BLOCK_MAX);
    } else {
        apply_body(plane, lanes, (uint32_t)plane->block);
    }
}

VARIANT_TARGET_AVX512 void norm_bf16_reduce(const struct norm_plane *plane,
                                            const struct norm_lanes *lanes, struct norm_sums *sums)
{
    uint32_t lanes_of_plane = (uint32_t)plane->block;
    if (plane->block != NORM_BLOCK_MAX) {
        reduce_body(plane, lanes, sums, lanes_of_plane, plane->mask);
    } else if (plane->mask == NORM_MASK_Y) {
        reduce_body(plane, lanes, sums, NORM_BLOCK_MAX, NORM_MASK_Y);
    } else if (plane->mask == NORM_MASK_X) {
        reduce_body(plane, lanes, sums, NORM_BLOCK_MAX, NORM_MASK_X);
    } else {
        reduce_body(plane, lanes, sums, NORM_BLOCK_MAX, NORM_NO_MASK);
    }
}

VARIANT_TARGET_AVX512 void norm_bf16_gradient(const struct norm_plane *plane,
                                              const struct norm_lanes *lanes)
{
    if (plane->block == NORM_BLOCK_MAX) {
        gradient_body(plane, lanes, NORM_BLOCK_MAX);
    } else {
        gradient_body(plane, lanes, (uint32_t)plane->block);
    }
}
