/* Unpacking of gzip files that are in memory. */
#ifndef WORKER_DATA_GZIP_H
#define WORKER_DATA_GZIP_H

#include "common/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes that a byte of a gzip file can stand for, at most (deflate: 258 bytes by two bits). */
#define GZIP_RATIO_MAX 1032

/* Whether the bytes start as a gzip file does. */
bool gzip_is_packed(const uint8_t *bytes, size_t size);

/* Writes the first `count` unpacked bytes. STATUS_MALFORMED if there are not so many. */
enum status gzip_peek(const uint8_t *packed, size_t packed_size, uint8_t *ret_bytes, size_t count);

/* Writes all that is packed, checksums compared. STATUS_MALFORMED, with the reason in ret_why, if
 * they differ, if the file ends too soon or goes on, or if it does not hold exactly `size` bytes.
 * ret_bytes is scratch until then. */
enum status gzip_unpack(const uint8_t *packed, size_t packed_size, uint8_t *ret_bytes, size_t size,
                        char *ret_why, size_t why_size);

#endif
