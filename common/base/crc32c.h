/* The checksum CRC-32C (Castagnoli), as in iSCSI, of what is written to files of others' formats.
 * Pure. */
#ifndef COMMON_BASE_CRC32C_H
#define COMMON_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

uint32_t crc32c(const void *bytes, size_t size);

#endif
