/* Scales a part of a stored image to the whole: for images that are not decoded, as those of
 * CIFAR-10, what worker/data/images/square.h is for others. Pure. */
#ifndef WORKER_DATA_AUGMENT_RESIZED_CROP_H
#define WORKER_DATA_AUGMENT_RESIZED_CROP_H

#include "worker/data/augment/augment.h"
#include "worker/data/crop.h"

#include <stddef.h>
#include <stdint.h>

/* Bytes of scratch for images of this size. */
size_t resized_crop_scratch(const struct augment_image *image);

/* Changes the image in `bytes` (C, H, W). The same bytes as Pillow's crop and resize (BILINEAR). */
void resized_crop(const struct augment_image *image, const struct crop_draw *draw, void *scratch,
                  uint8_t *bytes);

#endif
