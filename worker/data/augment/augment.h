/* Changes stored images as an augmentation says (common/plan/augmentation.h).
 *
 * What an image becomes follows from (seed, epoch, sample) alone, by the key: it does not depend on
 * threads, workers, processes, or where a job was resumed. Pixels are computed in whole numbers,
 * and an angle is rounded to some before that, so the machine does not matter either. Images are
 * changed as they are stored, in bytes, before they are scaled. What comes in from outside is the
 * blank colour, which normalisation makes zero. Each change is a file here, and a row in augment.c.
 * Two are not applied here: who reads an image takes a part of it first (resized-crop), and mixes
 * it with another, which was changed as well, at the end (mixup).
 */
#ifndef WORKER_DATA_AUGMENT_AUGMENT_H
#define WORKER_DATA_AUGMENT_AUGMENT_H

#include "common/base/status.h"
#include "common/plan/augmentation.h"
#include "worker/data/augment/mixup.h"
#include "worker/data/crop.h"
#include "worker/device/pixels.h"

#include <stddef.h>
#include <stdint.h>

#define AUGMENT_WHY_BYTES 128

/* Stored images: (C, H, W) bytes. */
struct augment_image {
    uint32_t channels, rows, columns;
    uint8_t blank[PIXELS_CHANNELS_MAX]; // the byte that is about zero when normalised
};

struct augment_image augment_image_of(const struct pixels_source *source);

/* Whether images of this size can be changed so. STATUS_INVALID: ret_why says which change does not
 * fit, and why. */
enum status augment_check(const struct augmentation *augmentation,
                          const struct augment_image *image, char *ret_why, size_t why_size);

/* With resized-crop: what part of the image is drawn. */
struct crop_draw augment_part(const struct augmentation *augmentation, uint64_t key);

/* With mixup: by which share another image is mixed in, and which. */
struct mixup augment_mixup(const struct augmentation *augmentation, uint64_t key);

/* Changes the image in `bytes` (C, H, W) by all but resized-crop and mixup. spare: as many bytes,
 * whose content is lost. */
void augment_apply(const struct augmentation *augmentation, const struct augment_image *image,
                   uint64_t key, uint8_t *bytes, uint8_t *spare);

#endif
