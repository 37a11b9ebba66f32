/* IDX, the format of MNIST's files: big-endian magic number and dimensions, then one byte for each
 * value. */
#ifndef WORKER_DATA_IDX_H
#define WORKER_DATA_IDX_H

#include "worker/data/byte_images.h"

#include <stddef.h>
#include <stdint.h>

#define IDX_COUNT_MAX 1000000 // images of a file

extern const struct byte_format idx_mnist_format, idx_fashion_mnist_format;

enum idx_kind {
    IDX_IMAGES, // 28 x 28 bytes each
    IDX_LABELS, // one byte each
};

/* The checked content of a file. */
struct idx_values {
    const uint8_t *bytes;
    size_t bytes_each;
    uint64_t count;
};

/* Unpacks the file if it is gzip, and checks it, before anything is allocated for what its header
 * claims. On STATUS_MALFORMED ret_why says what was expected and found. *ret_values borrows file.
 */
enum status idx_read(enum idx_kind kind, struct data_file *file, struct idx_values *ret_values,
                     char *ret_why, size_t why_size);

#endif
