/* The passes of batch normalisation over planes of blocked channels, (pixels, B), vectorised by
 * run-time dispatch. Sums go to double often enough that float's rounding does not show. */
#ifndef WORKER_DEVICE_CPU_NORM_LOOPS_H
#define WORKER_DEVICE_CPU_NORM_LOOPS_H

#include <stdbool.h>
#include <stddef.h>

#define NORM_BLOCK_MAX 16

/* What is known of the lanes of one plane. */
struct norm_lanes {
    float centre[NORM_BLOCK_MAX]; // subtracted before sums are taken: the mean, or near it
    float factor[NORM_BLOCK_MAX]; // y = x * factor + shift
    float shift[NORM_BLOCK_MAX];
    float slope[NORM_BLOCK_MAX], offset[NORM_BLOCK_MAX]; // dx: see norm_gradient
};

/* What is taken from a plane; added to. */
struct norm_sums {
    double first[NORM_BLOCK_MAX], second[NORM_BLOCK_MAX];
};

enum norm_mask {
    NORM_NO_MASK,
    NORM_MASK_X, // a relu followed: gradients pass where x * factor + shift > 0
    NORM_MASK_Y, // and something was added before it: where y > 0; dy is masked in place
};

/* One plane. In bfloat16 it is `block` neighbouring channels of (pixels, C): the next pixel is
 * `stride` elements away, and pointers are to elements of half the size. */
struct norm_plane {
    size_t pixels, block;
    size_t stride;          // 0: floats, without a gap
    const float *x, *other; // other: added, or NULL
    float *y, *dy, *dx;
    bool has_relu, adds_x;
    enum norm_mask mask;
};

/* first += x - centre, second += (x - centre)^2 */
void norm_statistics(const struct norm_plane *plane, const struct norm_lanes *lanes,
                     struct norm_sums *sums);

/* y = x * factor + shift, plus other, then relu if asked */
void norm_apply(const struct norm_plane *plane, const struct norm_lanes *lanes);

/* first += dy, second += dy (x - centre), of what passes the mask */
void norm_reduce(const struct norm_plane *plane, const struct norm_lanes *lanes,
                 struct norm_sums *sums);

/* dx = dy * factor - (x - centre) * slope - offset, of what passes the mask (NORM_MASK_Y: dy is
 * masked already); added to dx if asked */
void norm_gradient(const struct norm_plane *plane, const struct norm_lanes *lanes);

#endif
