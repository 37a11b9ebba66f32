/* Images of one byte per pixel, in memory: what the datasets of files have in common.
 *
 * A dataset's file checks its own format and hands over where labels and pixels lie. Labels are
 * copied and then checked, so a file that changes later does no harm; pixels are read where they
 * are, and every byte is a valid one. */
#ifndef WORKER_DATA_BYTE_IMAGES_H
#define WORKER_DATA_BYTE_IMAGES_H

#include "worker/data/data_file.h"
#include "worker/data/dataset.h"

#include <stddef.h>
#include <stdint.h>

#define BYTE_IMAGES_FILES_MAX    5
#define BYTE_IMAGES_CHANNELS_MAX PIXELS_CHANNELS_MAX

/* Where the images of one file lie. Pixels are (C, H, W) bytes. */
struct byte_records {
    const uint8_t *labels, *pixels;    // of record 0
    size_t label_stride, pixel_stride; // bytes from one record to the next
    uint64_t count;
};

/* What is fixed for a dataset. mean and deviation are those of its training pixels, as shares of
 * 255; reading subtracts the one and divides by the other. */
struct byte_format {
    const struct dataset_ops *ops; // with byte_images_read and what is below it
    struct shape sample;
    uint32_t class_count;
    float mean[BYTE_IMAGES_CHANNELS_MAX], deviation[BYTE_IMAGES_CHANNELS_MAX];
};

struct byte_images;

enum status byte_images_create(const struct byte_format *format, struct byte_images **ret_images);
void byte_images_destroy(struct byte_images *images); // NULL is fine

/* Appends records. On STATUS_OK takes the file that the pixels lie in (NULL: they stay valid as
 * long as the images). STATUS_MALFORMED, with the reason in ret_why, if a label is not below
 * class_count. */
enum status byte_images_add(struct byte_images *images, const struct byte_records *records,
                            struct data_file *file, char *ret_why, size_t why_size);

/* Takes the names of classes, as struct dataset has them. At most once. */
void byte_images_take_class_text(struct byte_images *images, char *text);

struct dataset *byte_images_dataset(struct byte_images *images);

/* Of dataset_ops. */
enum status byte_images_read(const struct dataset *dataset, uint64_t index, float *ret_pixels,
                             uint32_t *ret_label);
void byte_images_describe(const struct dataset *dataset, struct pixels_source *ret_source);
enum status byte_images_read_bytes(const struct dataset *dataset, uint64_t index,
                                   uint8_t *ret_bytes, uint32_t *ret_label);
void byte_images_convert(const struct dataset *dataset, const uint8_t *bytes, float *ret_pixels);
void byte_images_close(struct dataset *dataset);

#endif
