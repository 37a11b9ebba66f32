/* gzip files for tests that read them. */
#ifndef TESTS_SUPPORT_DATA_PACKED_H
#define TESTS_SUPPORT_DATA_PACKED_H

#include <stddef.h>
#include <stdint.h>

/* Writes the bytes as one gzip member; returns its size, at most `capacity`. */
size_t packed_write(const void *bytes, size_t size, uint8_t *ret_packed, size_t capacity);

#endif
