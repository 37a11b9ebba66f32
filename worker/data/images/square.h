/* Scales the centred square of an image, or a part of it, to the size that a model takes, and turns
 * it upright.
 *
 * The short side of the image becomes `size` pixels, and the middle of the long side is kept: what
 * torchvision's Resize and CenterCrop do one after the other, without the pixels that would be cut
 * off. scale_axis.h has the filter. Of a part, no pixel outside of it is used, so it is what
 * torchvision's resized_crop makes of it. */
#ifndef WORKER_DATA_IMAGES_SQUARE_H
#define WORKER_DATA_IMAGES_SQUARE_H

#include "common/base/status.h"

#include <stdint.h>

struct square;

/* Of an image as it was decoded, in its pixels. */
struct square_part {
    double left, top, width, height;
};

/* An image as it was decoded. */
struct square_source {
    const uint8_t *pixels; // (height, width, 3)
    uint32_t width, height;
    uint32_t orientation;    // EXIF's, 1 to 8
    struct square_part part; // zeroed: the centred square
};

enum status square_create(uint32_t size, struct square **ret_square);
void square_destroy(struct square *square); // NULL is fine

/* Writes (3, size, size). One thread at a time. */
enum status square_make(struct square *square, const struct square_source *source,
                        uint8_t *ret_pixels);

#endif
