/* CIFAR's binary formats: records of label bytes and 3,072 pixel bytes, (C, H, W). */
#ifndef WORKER_DATA_CIFAR_H
#define WORKER_DATA_CIFAR_H

#include "worker/data/byte_images.h"

#include <stddef.h>
#include <stdint.h>

#define CIFAR_PIXEL_BYTES 3072

struct cifar {
    const char *name, *advice; // for messages
    struct byte_format format;
    const char *const (*train_names)[3], *const (*test_names)[3]; // of files; end with NULL
    const char *const *class_names; // ways to write the name of their file; NULL: it has none
    uint32_t label_bytes;           // of a record; the last one is the class
    uint32_t file_records_max;      // what the official files hold
};

extern const struct cifar cifar10, cifar100;

/* Finds the records of one file. On STATUS_MALFORMED ret_why says what was expected and found.
 * *ret_records borrows bytes. */
enum status cifar_parse(const struct cifar *cifar, const uint8_t *bytes, size_t size,
                        struct byte_records *ret_records, char *ret_why, size_t why_size);

#endif
