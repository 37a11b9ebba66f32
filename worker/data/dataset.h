/* Labelled images that can be read by index, from several threads at once.
 *
 * Datasets are rows of names.h's DATASET_MAP, one file each. Files are mapped, so a worker touches
 * only what it reads. Everything a file says is checked at open: sizes, magic numbers, labels. */
#ifndef WORKER_DATA_DATASET_H
#define WORKER_DATA_DATASET_H

#include "common/base/status.h"
#include "worker/data/crop.h"
#include "worker/device/device.h"

#include <stdbool.h>
#include <stdint.h>

enum dataset_split { DATASET_TRAIN, DATASET_TEST };

#define DATASET_CLASS_TEXT_BYTES ((size_t)4 << 20) // at most

struct dataset_options {
    uint64_t seed; // of what is drawn
    enum dataset_split split;
    uint32_t image_size; // rows and columns of what has no size of its own; 0: a usual one
    bool skips_bad;      // images that cannot be used are left out; otherwise they are refused
    /* Test images: the training images of the same data, which are open; borrowed. What both have
     * need not be read again. NULL: they are not. */
    const struct dataset *train;
    bool tells; // how many images there are, and which are left out, is logged
};

struct dataset;
struct cached;

struct dataset_ops {
    /* Logs what is wrong with which file, and what to do. */
    enum status (*open)(const char *path, const struct dataset_options *options,
                        struct dataset **ret_dataset);

    /* Writes (C, H, W) floats, normalised (zero mean, unit scale, about), and the label. index is
     * below sample_count. Any thread. Blocks for files at most. Only where samples are files of
     * their own does it fail, and says which. */
    enum status (*read)(const struct dataset *dataset, uint64_t index, float *ret_pixels,
                        uint32_t *ret_label);

    /* Of images that are stored as bytes; NULL, all three: they are not. How pixels are made of
     * them, valid until close; the bytes of a sample, which fails as `read` does; and the pixels of
     * such bytes. */
    void (*describe)(const struct dataset *dataset, struct pixels_source *ret_source);
    enum status (*read_bytes)(const struct dataset *dataset, uint64_t index, uint8_t *ret_bytes,
                              uint32_t *ret_label);
    void (*convert)(const struct dataset *dataset, const uint8_t *bytes, float *ret_pixels);

    /* Of images that are decoded each time; NULL: they are not. As read_bytes, of a part that is
     * drawn of the stored image and scaled to the size of a sample. */
    enum status (*read_part)(const struct dataset *dataset, uint64_t index,
                             const struct crop_draw *part, uint8_t *ret_bytes, uint32_t *ret_label);
    void (*close)(struct dataset *dataset);
};

/* First member of every dataset's own struct. */
struct dataset {
    const struct dataset_ops *ops;
    const struct dataset *origin; // of one that wraps another: what was opened; NULL: it wraps none
    const struct cached *cached;  // that keeps its bytes, itself or one that it wraps; NULL: none
    struct shape sample;
    uint64_t sample_count;
    uint32_t class_count;
    const char *class_text; // names of classes, a list in JSON, valid until close; NULL: none
    uint64_t names_digest;  // of what samples are called; 0: of nothing
    uint64_t stamp;         // of files that are slow to read, with sizes and times; 0: of none
};

/* What a dataset was opened as, below all that wraps it. */
static inline const struct dataset *dataset_origin(const struct dataset *dataset)
{
    return dataset->origin != NULL ? dataset->origin : dataset;
}

/* `data` as in --data: "cifar10:DIR". The path may be empty only where the row takes none. Logs. */
enum status dataset_open(const char *data, const struct dataset_options *options,
                         struct dataset **ret_dataset);
enum status dataset_read(const struct dataset *dataset, uint64_t index, float *ret_pixels,
                         uint32_t *ret_label);

/* False if samples are not stored as bytes. The source is valid until dataset_close. */
bool dataset_describe(const struct dataset *dataset, struct pixels_source *ret_source);
enum status dataset_read_bytes(const struct dataset *dataset, uint64_t index, uint8_t *ret_bytes,
                               uint32_t *ret_label);

/* Whether parts of images can be read: see read_part of dataset_ops. */
bool dataset_has_parts(const struct dataset *dataset);
enum status dataset_read_part(const struct dataset *dataset, uint64_t index,
                              const struct crop_draw *part, uint8_t *ret_bytes,
                              uint32_t *ret_label);

/* For datasets whose samples are stored as bytes: pixels of their stored size, by scale and shift
 * of each channel. */
void dataset_scale_bytes(const struct pixels_source *source, const uint8_t *bytes,
                         float *ret_pixels);

/* `read` and `convert` of such datasets: by their `read_bytes`, and by the scale and shift that
 * their `describe` says. */
enum status dataset_read_by_bytes(const struct dataset *dataset, uint64_t index, float *ret_pixels,
                                  uint32_t *ret_label);
void dataset_convert_as_described(const struct dataset *dataset, const uint8_t *bytes,
                                  float *ret_pixels);

/* Makes the pixels of a stored sample: what dataset_read writes, of bytes that may have been
 * changed. */
void dataset_convert(const struct dataset *dataset, const uint8_t *bytes, float *ret_pixels);
void dataset_close(struct dataset *dataset); // NULL is fine

/* A digest of some of the first so many samples of both splits, spread over them, pixels and
 * labels: workers that read other data differ in it. Fails where a sample cannot be read. */
enum status dataset_digest(const struct dataset *train, uint64_t train_count,
                           const struct dataset *test, uint64_t test_count, uint64_t *ret_digest);

#endif
