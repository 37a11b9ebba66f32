/* Scales the centred square of an image to the size that a model takes, and turns it upright.
 *
 * The short side of the image becomes `size` pixels, and the middle of the long side is kept: what
 * torchvision's Resize and CenterCrop do one after the other, without the pixels that would be cut
 * off. The filter is a triangle, as wide as a pixel of the result, so nothing is skipped where
 * images shrink; where they grow it is bilinear. Weights are whole numbers, so all machines get the
 * same bits. */
#ifndef WORKER_DATA_IMAGES_SQUARE_H
#define WORKER_DATA_IMAGES_SQUARE_H

#include "common/base/status.h"

#include <stdint.h>

struct square;

/* An image as it was decoded. */
struct square_source {
    const uint8_t *pixels; // (height, width, 3)
    uint32_t width, height;
    uint32_t orientation; // EXIF's, 1 to 8
};

enum status square_create(uint32_t size, struct square **ret_square);
void square_destroy(struct square *square); // NULL is fine

/* Writes (3, size, size). One thread at a time. */
enum status square_make(struct square *square, const struct square_source *source,
                        uint8_t *ret_pixels);

#endif
