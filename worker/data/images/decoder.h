/* Makes an image of the size that a model takes of the bytes of a JPEG or PNG file.
 *
 * Grey becomes three equal channels; CMYK becomes RGB as Pillow has it (the product of each colour
 * and black); what is transparent in a PNG lies on white. An image that has to shrink is decoded at
 * a smaller scale where the format allows that (JPEG: eighths), but never below the target. */
#ifndef WORKER_DATA_IMAGES_DECODER_H
#define WORKER_DATA_IMAGES_DECODER_H

#include "common/base/status.h"
#include "worker/data/crop.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DECODER_CHANNELS   3
#define DECODER_PIXELS_MAX ((uint64_t)1 << 27) // of an image as stored
#define DECODER_WHY_BYTES  256                 // for a text that says what is wrong with an image

struct decoder;

/* `size` is that of the results, in pixels. */
enum status decoder_create(uint32_t size, struct decoder **ret_decoder);
void decoder_destroy(struct decoder *decoder); // NULL is fine

/* Which part of images is made from here on: the one that is drawn, of an image as it is stored
 * (before it is turned), borrowed; NULL, as at first: the centred square. */
void decoder_set_part(struct decoder *decoder, const struct crop_draw *part);

/* Writes (3, size, size). STATUS_MALFORMED, with the reason in ret_why: the image is broken, or of
 * a kind that cannot be decoded; ret_pixels is scratch then. One thread at a time. */
enum status decoder_run(struct decoder *decoder, const uint8_t *bytes, size_t size,
                        uint8_t *ret_pixels, char *ret_why, size_t why_size);

/* Whether the bytes begin as a PNG file does. */
bool decoder_is_png(const uint8_t *bytes, size_t size);

/* STATUS_OK where PNG can be decoded; otherwise the reason in ret_why. */
enum status decoder_allows_png(char *ret_why, size_t why_size);

#endif
