/* Computes CRC-32C: eight bytes at a time where there are many, by tables that take a microsecond
 * to fill; otherwise bit by bit. */
#include "common/base/crc32c.h"

// The polynomial 0x1EDC6F41, its bits in reverse.
#define POLYNOMIAL UINT32_C(0x82F63B78)
#define SLICES     8
#define MANY       4096 // bytes that are worth the tables

static uint32_t shift_byte(uint32_t rest)
{
    for (unsigned bit = 0; bit < 8; bit++) {
        rest = rest >> 1 ^ (POLYNOMIAL & (0 - (rest & 1)));
    }
    return rest;
}

static uint32_t add_few(uint32_t rest, const unsigned char *at, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        rest = shift_byte(rest ^ at[i]);
    }
    return rest;
}

/* Table k has what becomes of a byte that k more bytes follow. */
static void fill_tables(uint32_t tables[SLICES][256])
{
    for (uint32_t i = 0; i < 256; i++) {
        tables[0][i] = shift_byte(i);
    }
    for (uint32_t i = 0; i < 256; i++) {
        for (unsigned k = 1; k < SLICES; k++) {
            uint32_t before = tables[k - 1][i];
            tables[k][i] = before >> 8 ^ tables[0][before & 255];
        }
    }
}

/* size is a multiple of 8. */
static uint32_t add_many(uint32_t rest, const unsigned char *at, size_t size)
{
    uint32_t tables[SLICES][256];
    fill_tables(tables);
    for (const unsigned char *end = at + size; at < end; at += SLICES) {
        rest = tables[7][at[0] ^ (rest & 255)] ^ tables[6][at[1] ^ (rest >> 8 & 255)] ^
               tables[5][at[2] ^ (rest >> 16 & 255)] ^ tables[4][at[3] ^ rest >> 24] ^
               tables[3][at[4]] ^ tables[2][at[5]] ^ tables[1][at[6]] ^ tables[0][at[7]];
    }
    return rest;
}

uint32_t crc32c(const void *bytes, size_t size)
{
    const unsigned char *at = bytes;
    size_t many = size >= MANY ? size - size % SLICES : 0;
    uint32_t rest = many > 0 ? add_many(UINT32_MAX, at, many) : UINT32_MAX;
    return ~add_few(rest, at + many, size - many);
}
