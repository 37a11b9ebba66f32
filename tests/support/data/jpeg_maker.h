/* JPEG files for tests, made by libturbojpeg. */
#ifndef TESTS_SUPPORT_DATA_JPEG_MAKER_H
#define TESTS_SUPPORT_DATA_JPEG_MAKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum jpeg_maker_kind {
    JPEG_MAKER_COLOUR,
    JPEG_MAKER_PROGRESSIVE,
    JPEG_MAKER_GREY, // of the first channel
    JPEG_MAKER_CMYK, // pixels are (C, M, Y, K)
};

/* Compresses (height, width, 3 or 4) bytes at quality 95. The caller frees the result. */
uint8_t *jpeg_maker_make(enum jpeg_maker_kind kind, const uint8_t *pixels, uint32_t width,
                         uint32_t height, size_t *ret_size);

/* One of a single colour. */
uint8_t *jpeg_maker_flat(const uint8_t colour[3], uint32_t width, uint32_t height,
                         size_t *ret_size);

#define JPEG_MAKER_BLANK_BYTES 2048

/* Writes a grey image of 40 x 30 pixels whose three components are sampled in this way, each
 * `across
 * * 16 + down`, in one scan or in three. Returns its size. */
size_t jpeg_maker_blank(const uint8_t sampling[3], bool has_scans,
                        uint8_t ret_jpeg[JPEG_MAKER_BLANK_BYTES]);

/* Whether libturbojpeg decodes it without a warning. */
bool jpeg_maker_can_decode(const uint8_t *jpeg, size_t size);

/* Puts a segment behind the first two bytes; the new bytes are to be freed, the old are. */
uint8_t *jpeg_maker_insert(uint8_t *jpeg, size_t *size, uint8_t marker, const uint8_t *body,
                           size_t body_size);

/* Puts EXIF with this orientation in, of either byte order. */
uint8_t *jpeg_maker_orient(uint8_t *jpeg, size_t *size, uint8_t orientation, int is_little);

#endif
