/* Which part of an image a training step sees, as --augment resized-crop draws it: a rectangle with
 * a share of the image's area between two bounds, and 3/4 to 4/3 as wide as high. Pure. */
#ifndef WORKER_DATA_CROP_H
#define WORKER_DATA_CROP_H

#include <stdint.h>

/* What is drawn from. */
struct crop_draw {
    double least, most; // shares of the area
    uint64_t key;
};

struct crop_box {
    uint32_t left, top, width, height;
};

/* For an image of this size, as RandomResizedCrop of torchvision: ten tries, and then the largest
 * box in the middle that is not too narrow. The logarithm of the shape and the share of the area
 * are uniform, and so is the place. */
struct crop_box crop_draw_box(const struct crop_draw *draw, uint32_t width, uint32_t height);

#endif
