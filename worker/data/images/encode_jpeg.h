/* Makes JPEG files, by libturbojpeg. */
#ifndef WORKER_DATA_IMAGES_ENCODE_JPEG_H
#define WORKER_DATA_IMAGES_ENCODE_JPEG_H

#include "common/base/status.h"

#include <stddef.h>
#include <stdint.h>

/* Compresses (3, size, size) bytes, RGB, with halved chroma. The caller frees *ret_bytes.
 * quality is 1 to 100. */
enum status encode_jpeg(const uint8_t *pixels, uint32_t size, uint32_t quality, uint8_t **ret_bytes,
                        size_t *ret_size);

#endif
