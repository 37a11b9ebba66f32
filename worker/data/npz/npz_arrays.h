/* The arrays of an .npz file that are images and labels. What cannot be used is said, with what to
 * save in its place. All of these log. */
#ifndef WORKER_DATA_NPZ_NPZ_ARRAYS_H
#define WORKER_DATA_NPZ_NPZ_ARRAYS_H

#include "common/base/status.h"
#include "worker/data/data_file.h"
#include "worker/data/npz/npy.h"
#include "worker/data/npz/zip.h"

#include <stdbool.h>
#include <stdint.h>

#define NPZ_SIDE_MAX    1024 // rows and columns of images
#define NPZ_CLASSES_MAX 65536

struct npz_file {
    struct data_file *file; // owned
    struct zip zip;
};

/* Images, (N, H, W, C) bytes. */
struct npz_images {
    const uint8_t *bytes; // in the file, or in `unpacked`
    uint64_t count;
    uint32_t rows, columns, channels;
    void *unpacked; // owned; NULL: they are stored, and stay valid as long as the file
    uint64_t unpacked_bytes;
};

enum status npz_file_open(const char *path, struct npz_file *ret_file);
void npz_file_close(struct npz_file *file); // zeroed is fine

/* Whether it has an array of this name. */
bool npz_file_has(const struct npz_file *file, const char *name);

enum status npz_images_read(const struct npz_file *file, const char *name,
                            struct npz_images *ret_images);
void npz_images_finish(struct npz_images *images); // zeroed is fine

/* Of `count` images, as many labels, each below NPZ_CLASSES_MAX. The caller frees them. */
enum status npz_labels_read(const struct npz_file *file, const char *name, uint64_t count,
                            uint32_t **ret_labels);

#endif
