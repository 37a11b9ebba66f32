/* CIFAR-10's binary format: records of one label byte and 3,072 pixel bytes, (C, H, W). */
#ifndef WORKER_DATA_CIFAR10_H
#define WORKER_DATA_CIFAR10_H

#include "worker/data/byte_images.h"

#include <stddef.h>
#include <stdint.h>

#define CIFAR10_RECORD_BYTES     3073
#define CIFAR10_FILE_RECORDS_MAX 10000 // what the official files hold

extern const struct byte_format cifar10_format;

/* Finds the records of one file. On STATUS_MALFORMED ret_why says what was expected and found.
 * *ret_records borrows bytes. */
enum status cifar10_parse(const uint8_t *bytes, size_t size, struct byte_records *ret_records,
                          char *ret_why, size_t why_size);

#endif
