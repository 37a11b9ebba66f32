/* The single changes that augment.c has rows of. Each draws from its key, and returns true if the
 * changed image is in `spare`, false if it is in `bytes`; both have (C, H, W) bytes. */
#ifndef WORKER_DATA_AUGMENT_CHANGES_H
#define WORKER_DATA_AUGMENT_CHANGES_H

#include "worker/data/augment/augment.h"

#include <stdbool.h>
#include <stdint.h>

/* Exchanges left and right, with probability 1/2. */
bool change_flip(const struct augment_image *image, double amount, uint64_t key, uint8_t *bytes,
                 uint8_t *spare);

/* Moves the image by up to `amount` pixels in each direction, all alike likely: the image of He et
 * al. (2016, section 4.2), padded by so many and cropped at random. */
bool change_crop(const struct augment_image *image, double amount, uint64_t key, uint8_t *bytes,
                 uint8_t *spare);

/* Turns it about its centre, by up to `amount` degrees in each direction; bilinear. */
bool change_rotate(const struct augment_image *image, double amount, uint64_t key, uint8_t *bytes,
                   uint8_t *spare);

/* Multiplies brightness, then the distances to the mean grey of the image (contrast), then those of
 * each pixel to its grey (saturation), each by a factor from 1 - amount to 1 + amount. Images with
 * one channel have no saturation. */
bool change_colour(const struct augment_image *image, double amount, uint64_t key, uint8_t *bytes,
                   uint8_t *spare);

/* Blanks a square of `amount` pixels, whose centre is anywhere in the image: DeVries and Taylor
 * (2017). */
bool change_cutout(const struct augment_image *image, double amount, uint64_t key, uint8_t *bytes,
                   uint8_t *spare);

#endif
