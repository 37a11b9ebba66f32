/* The format of packs: images of the size that models take, in one file. Pure.
 *
 *     header   64 bytes, little-endian: see pack_format.c
 *     images   one after the other, without gaps: those for training, then those for validation
 *     index    of each image: bytes, CRC-32C, label (32 bits each); then the names of the classes,
 *              a list in JSON
 *
 * Where an image lies is the sum of the sizes before it, so images cannot overlap, and lie within
 * the file where the sum of all is right. The header has a checksum, and so has the index. */
#ifndef WORKER_DATA_PACK_PACK_FORMAT_H
#define WORKER_DATA_PACK_PACK_FORMAT_H

#include "common/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PACK_HEADER_BYTES 64
#define PACK_ENTRY_BYTES  12 // of the index
#define PACK_CHANNELS     3
#define PACK_SIZE_MAX     1024 // rows and columns of an image
#define PACK_CLASSES_MAX  65536
#define PACK_IMAGES_MAX   UINT32_MAX
#define PACK_IMAGE_BYTES  ((uint32_t)64 << 20) // at most
#define PACK_TEXT_BYTES   ((uint32_t)4 << 20)  // at most
#define PACK_WHY_BYTES    256

enum pack_kind {
    PACK_RAW,  // (3, size, size) bytes
    PACK_JPEG, // files
    PACK_KINDS
};

struct pack_header {
    enum pack_kind kind;
    uint32_t size; // rows and columns of an image
    uint32_t class_count;
    uint64_t train_count, val_count; // of images
    uint64_t data_bytes;             // of all images
    uint32_t text_bytes;             // names of classes; 0: there are none
    uint32_t index_crc;
};

struct pack_image {
    uint64_t at; // in the file
    uint32_t bytes, crc, label;
};

uint64_t pack_index_bytes(const struct pack_header *header);

/* The header must be sound. */
void pack_header_encode(const struct pack_header *header, uint8_t ret_bytes[PACK_HEADER_BYTES]);

/* STATUS_MALFORMED, or STATUS_UNSUPPORTED for another version, with the reason: of a file of
 * file_bytes, this is no header. Otherwise header, images and index fill the file. */
enum status pack_header_decode(const uint8_t bytes[PACK_HEADER_BYTES], uint64_t file_bytes,
                               struct pack_header *ret_header, char *ret_why, size_t why_size);

void pack_entry_encode(const struct pack_image *image, uint8_t ret_bytes[PACK_ENTRY_BYTES]);

/* Checks the whole index (pack_index_bytes), and writes the images of a split, as many as the
 * header says. STATUS_MALFORMED, with the reason. */
enum status pack_index_decode(const struct pack_header *header, const uint8_t *index,
                              bool is_training, struct pack_image *ret_images, char *ret_why,
                              size_t why_size);

/* Whether the text is a list of so many strings in JSON, without what a page cannot show. */
bool pack_text_is_sound(const char *text, size_t size, uint32_t count);

#endif
