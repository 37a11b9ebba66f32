/* Makes PNG files, by libpng. */
#ifndef WORKER_DATA_IMAGES_ENCODE_PNG_H
#define WORKER_DATA_IMAGES_ENCODE_PNG_H

#include "common/base/status.h"

#include <stddef.h>
#include <stdint.h>

#define ENCODE_PNG_WHY_BYTES 256

/* STATUS_OK where PNG can be made; otherwise the reason in ret_why. */
enum status encode_png_is_there(char *ret_why, size_t why_size);

/* An image: (height, width, channels) bytes. One channel is grey, three are RGB. */
struct encode_png_image {
    const uint8_t *pixels; // borrowed
    uint32_t width, height, channels;
};

/* The caller frees *ret_bytes. STATUS_NO_MEMORY, or STATUS_UNSUPPORTED as above, with the reason in
 * ret_why. */
enum status encode_png(const struct encode_png_image *image, uint8_t **ret_bytes, size_t *ret_size,
                       char *ret_why, size_t why_size);

#endif
