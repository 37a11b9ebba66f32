/* Computes CRC-32C bit by bit: a few hundred bytes at a time. */
#include "common/base/crc32c.h"

// The polynomial 0x1EDC6F41, its bits in reverse.
#define POLYNOMIAL UINT32_C(0x82F63B78)

uint32_t crc32c(const void *bytes, size_t size)
{
    const unsigned char *at = bytes;
    uint32_t rest = UINT32_MAX;
    for (size_t i = 0; i < size; i++) {
        rest ^= at[i];
        for (unsigned bit = 0; bit < 8; bit++) {
            rest = rest >> 1 ^ (POLYNOMIAL & (0 - (rest & 1)));
        }
    }
    return ~rest;
}
