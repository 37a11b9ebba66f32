/* How photographs become the floats that networks take: normalised by the mean and deviation of
 * ImageNet's training images. */
#ifndef WORKER_DATA_IMAGES_PHOTO_H
#define WORKER_DATA_IMAGES_PHOTO_H

#include "worker/device/device.h"

#include <stdint.h>

/* Of stored images of this shape, which has three channels. */
void photo_describe(struct shape sample, struct pixels_source *ret_source);
void photo_convert(struct shape sample, const uint8_t *bytes, float *ret_pixels);

#endif
