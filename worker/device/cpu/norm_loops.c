/* Loops over one plane, once for each size of block. A group of pixels is as many as keep the
 * processor's vectors busy; partial sums of CHUNK groups are kept in float. */
#include "worker/device/cpu/norm_loops.h"

#include "common/vector/variants.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

#define GROUP 4
#define CHUNK 64
#define LANES (GROUP * NORM_BLOCK_MAX)

/* The same for each pixel of a group. */
VARIANT_BODY void repeat(const float *values, uint32_t block, float *ret_lanes)
{
    for (uint32_t lane = 0; lane < GROUP * block; lane++) {
        ret_lanes[lane] = values[lane % block];
    }
}

/* Partial sums of a group's pixels to those of the lanes. */
VARIANT_BODY void flush(float *restrict first, float *restrict second, uint32_t block,
                        struct norm_sums *sums)
{
    for (uint32_t lane = 0; lane < GROUP * block; lane++) {
        sums->first[lane % block] += (double)first[lane];
        sums->second[lane % block] += (double)second[lane];
        first[lane] = second[lane] = 0;
    }
}

VARIANT_BODY void statistics_body(const struct norm_plane *plane, const struct norm_lanes *lanes,
                                  struct norm_sums *sums, uint32_t block)
{
    float centre[LANES] = {0}, first[LANES] = {0}, second[LANES] = {0};
    size_t count = plane->pixels * block, group = (size_t)GROUP * block, i = 0;
    const float *restrict x = plane->x;
    repeat(lanes->centre, block, centre);
    for (uint32_t in_chunk = 0; i < count; i += group) {
        uint32_t rest = count - i < group ? (uint32_t)(count - i) : GROUP * block;
#pragma omp simd
        for (uint32_t lane = 0; lane < rest; lane++) {
            float d = x[i + lane] - centre[lane];
            first[lane] += d;
            second[lane] += d * d;
        }
        if (++in_chunk == CHUNK) {
            flush(first, second, block, sums);
            in_chunk = 0;
        }
    }
    flush(first, second, block, sums);
}

VARIANT_BODY void apply_body(const struct norm_plane *plane, const struct norm_lanes *lanes,
                             uint32_t block, bool has_other, bool has_relu)
{
    float factor[NORM_BLOCK_MAX], shift[NORM_BLOCK_MAX];
    const float *restrict x = plane->x, *restrict other = plane->other;
    float *restrict y = plane->y;
    memcpy(factor, lanes->factor, sizeof(factor));
    memcpy(shift, lanes->shift, sizeof(shift));
    for (size_t i = 0; i < plane->pixels * block; i += block) {
#pragma omp simd
        for (uint32_t lane = 0; lane < block; lane++) {
            float value = x[i + lane] * factor[lane] + shift[lane];
            value = has_other ? value + other[i + lane] : value;
            // Not-a-number stays, so that the loss shows it.
            y[i + lane] = has_relu && value < 0 ? 0 : value;
        }
    }
}

/* What of a gradient passes the relu. */
VARIANT_BODY float masked(enum norm_mask mask, float dy, float y)
{
    return mask == NORM_NO_MASK || y > 0 ? dy : 0;
}

VARIANT_BODY void reduce_body(const struct norm_plane *plane, const struct norm_lanes *lanes,
                              struct norm_sums *sums, uint32_t block, enum norm_mask mask)
{
    float centre[LANES] = {0}, factor[LANES] = {0}, shift[LANES] = {0}, first[LANES] = {0},
          second[LANES] = {0};
    size_t count = plane->pixels * block, group = (size_t)GROUP * block, i = 0;
    const float *restrict x = plane->x, *restrict y = plane->y;
    float *restrict dy = plane->dy;
    repeat(lanes->centre, block, centre);
    repeat(lanes->factor, block, factor);
    repeat(lanes->shift, block, shift);
    for (uint32_t in_chunk = 0; i < count; i += group) {
        uint32_t rest = count - i < group ? (uint32_t)(count - i) : GROUP * block;
#pragma omp simd
        for (uint32_t lane = 0; lane < rest; lane++) {
            float result =
                mask == NORM_MASK_Y ? y[i + lane] : x[i + lane] * factor[lane] + shift[lane];
            float passed = masked(mask, dy[i + lane], result);
            if (mask == NORM_MASK_Y) {
                dy[i + lane] = passed;
            }
            first[lane] += passed;
            second[lane] += passed * (x[i + lane] - centre[lane]);
        }
        if (++in_chunk == CHUNK) {
            flush(first, second, block, sums);
            in_chunk = 0;
        }
    }
    flush(first, second, block, sums);
}

VARIANT_BODY void gradient_body(const struct norm_plane *plane, const struct norm_lanes *lanes,
                                uint32_t block, enum norm_mask mask, bool adds)
{
    struct norm_lanes own = *lanes;
    const float *restrict x = plane->x, *restrict dy = plane->dy;
    float *restrict dx = plane->dx;
    for (size_t i = 0; i < plane->pixels * block; i += block) {
#pragma omp simd
        for (uint32_t lane = 0; lane < block; lane++) {
            float result = x[i + lane] * own.factor[lane] + own.shift[lane];
            float passed = masked(mask == NORM_MASK_X ? mask : NORM_NO_MASK, dy[i + lane], result);
            float value = passed * own.factor[lane] -
                          (x[i + lane] - own.centre[lane]) * own.slope[lane] - own.offset[lane];
            dx[i + lane] = adds ? dx[i + lane] + value : value;
        }
    }
}

/* Each combination of what a plane may ask for gets loops without questions. */
#define PLANES(suffix, target, block)                                                              \
    target static void statistics_##suffix(const struct norm_plane *plane,                         \
                                           const struct norm_lanes *lanes, struct norm_sums *sums) \
    {                                                                                              \
        statistics_body(plane, lanes, sums, block);                                                \
    }                                                                                              \
    target static void apply_##suffix(const struct norm_plane *plane,                              \
                                      const struct norm_lanes *lanes)                              \
    {                                                                                              \
        if (plane->other != NULL && plane->has_relu) {                                             \
            apply_body(plane, lanes, block, true, true);                                           \
        } else if (plane->other != NULL) {                                                         \
            apply_body(plane, lanes, block, true, false);                                          \
        } else if (plane->has_relu) {                                                              \
            apply_body(plane, lanes, block, false, true);                                          \
        } else {                                                                                   \
            apply_body(plane, lanes, block, false, false);                                         \
        }                                                                                          \
    }                                                                                              \
    target static void reduce_##suffix(const struct norm_plane *plane,                             \
                                       const struct norm_lanes *lanes, struct norm_sums *sums)     \
    {                                                                                              \
        if (plane->mask == NORM_MASK_Y) {                                                          \
            reduce_body(plane, lanes, sums, block, NORM_MASK_Y);                                   \
        } else if (plane->mask == NORM_MASK_X) {                                                   \
            reduce_body(plane, lanes, sums, block, NORM_MASK_X);                                   \
        } else {                                                                                   \
            reduce_body(plane, lanes, sums, block, NORM_NO_MASK);                                  \
        }                                                                                          \
    }                                                                                              \
    target static void gradient_##suffix(const struct norm_plane *plane,                           \
                                         const struct norm_lanes *lanes)                           \
    {                                                                                              \
        if (plane->mask == NORM_MASK_X && plane->adds_x) {                                         \
            gradient_body(plane, lanes, block, NORM_MASK_X, true);                                 \
        } else if (plane->mask == NORM_MASK_X) {                                                   \
            gradient_body(plane, lanes, block, NORM_MASK_X, false);                                \
        } else if (plane->adds_x) {                                                                \
            gradient_body(plane, lanes, block, NORM_NO_MASK, true);                                \
        } else {                                                                                   \
            gradient_body(plane, lanes, block, NORM_NO_MASK, false);                               \
        }                                                                                          \
    }

// A block of 16 only comes with AVX-512, one of 8 with AVX2: see onednn_block.
PLANES(plain, , 1)
PLANES(block8, VARIANT_TARGET_AVX2, 8)
PLANES(block16, VARIANT_TARGET_AVX512, 16)

/* Calls the loop for the plane's block. */
#define DISPATCH(loop, plane, ...)                \
    do {                                          \
        if ((plane)->block == 16) {               \
            loop##_block16((plane), __VA_ARGS__); \
        } else if ((plane)->block == 8) {         \
            loop##_block8((plane), __VA_ARGS__);  \
        } else {                                  \
            assert((plane)->block == 1);          \
            loop##_plain((plane), __VA_ARGS__);   \
        }                                         \
    } while (0)

void norm_statistics(const struct norm_plane *plane, const struct norm_lanes *lanes,
                     struct norm_sums *sums)
{
    DISPATCH(statistics, plane, lanes, sums);
}

void norm_apply(const struct norm_plane *plane, const struct norm_lanes *lanes)
{
    DISPATCH(apply, plane, lanes);
}

void norm_reduce(const struct norm_plane *plane, const struct norm_lanes *lanes,
                 struct norm_sums *sums)
{
    DISPATCH(reduce, plane, lanes, sums);
}

void norm_gradient(const struct norm_plane *plane, const struct norm_lanes *lanes)
{
    DISPATCH(gradient, plane, lanes);
}
