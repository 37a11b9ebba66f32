/* What the head of a JPEG file says of the image, before anything is decoded: size, components, and
 * the orientation that a camera left in EXIF. Pure. */
#ifndef WORKER_DATA_IMAGES_JPEG_HEADER_H
#define WORKER_DATA_IMAGES_JPEG_HEADER_H

#include "common/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct jpeg_header {
    uint32_t width, height;
    uint32_t components;  // 1: grey, 3: colour, 4: CMYK or YCCK
    uint32_t orientation; // EXIF's 1 to 8; 1 where there is none, or another value
    bool is_inverted;     // CMYK that counts light instead of ink, as Adobe's programs write it
    size_t scan_at;       // where the first scan begins, in bytes
};

/* Reads the markers up to the first scan. STATUS_END_OF_DATA: they go on behind `size`.
 * STATUS_MALFORMED, with the reason in ret_why: this is no JPEG file, or none of a kind that can be
 * decoded (12 bits, lossless, hierarchical, two or five components, components that do not fit a
 * whole number of times into the densest one). */
enum status jpeg_header_parse(const uint8_t *bytes, size_t size, struct jpeg_header *ret_header,
                              char *ret_why, size_t why_size);

/* Whether the end marker comes in these bytes, which lie behind the beginning of a scan. */
bool jpeg_header_has_end(const uint8_t *bytes, size_t size);

#endif
