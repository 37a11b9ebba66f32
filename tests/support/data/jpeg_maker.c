/* Calls libturbojpeg, and writes segments by hand. */
#include "tests/support/data/jpeg_maker.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <turbojpeg.h>

uint8_t *jpeg_maker_make(enum jpeg_maker_kind kind, const uint8_t *pixels, uint32_t width,
                         uint32_t height, size_t *ret_size)
{
    unsigned char *jpeg = NULL;
    unsigned long size = 0;
    tjhandle handle = tjInitCompress();
    assert(handle != NULL);
    int flags = TJFLAG_ACCURATEDCT | (kind == JPEG_MAKER_PROGRESSIVE ? TJFLAG_PROGRESSIVE : 0);
    int failed = tjCompress2(handle, pixels, (int)width, 0, (int)height,
                             kind == JPEG_MAKER_CMYK ? TJPF_CMYK : TJPF_RGB, &jpeg, &size,
                             kind == JPEG_MAKER_GREY ? TJSAMP_GRAY : TJSAMP_444, 95, flags);
    assert(failed == 0);
    tjDestroy(handle);
    uint8_t *copy = malloc(size);
    assert(copy != NULL);
    memcpy(copy, jpeg, size);
    tjFree(jpeg);
    *ret_size = size;
    return copy;
}

uint8_t *jpeg_maker_flat(const uint8_t colour[3], uint32_t width, uint32_t height, size_t *ret_size)
{
    uint8_t *pixels = malloc((size_t)3 * width * height);
    assert(pixels != NULL);
    for (size_t i = 0; i < (size_t)width * height; i++) {
        memcpy(pixels + 3 * i, colour, 3);
    }
    uint8_t *jpeg = jpeg_maker_make(JPEG_MAKER_COLOUR, pixels, width, height, ret_size);
    free(pixels);
    return jpeg;
}

/* Appends bytes; returns where the next ones go. */
static uint8_t *put(uint8_t *at, const void *bytes, size_t size)
{
    memcpy(at, bytes, size);
    return at + size;
}

/* Tables by which a block is two bits: a difference of none, and no more coefficients. */
static uint8_t *put_tables(uint8_t *at)
{
    static const uint8_t quantizers[4] = {0xFF, 0xDB, 0, 67};
    for (uint8_t kind = 0; kind < 2; kind++) {
        const uint8_t codes[22] = {0xFF, 0xC4, 0, 20, (uint8_t)(kind << 4), 1};
        at = put(at, codes, sizeof(codes));
    }
    at = put(at, quantizers, sizeof(quantizers));
    *at++ = 0;
    memset(at, 1, 64);
    return at + 64;
}

/* A scan of so many components from `first`, whose bits are all 0. */
static uint8_t *put_scan(uint8_t *at, uint8_t first, uint8_t count)
{
    const uint8_t begin[5] = {0xFF, 0xDA, 0, (uint8_t)(6 + 2 * count), count}, end[3] = {0, 63, 0};
    at = put(at, begin, sizeof(begin));
    for (uint8_t i = 0; i < count; i++) {
        *at++ = (uint8_t)(first + i);
        *at++ = 0;
    }
    at = put(at, end, sizeof(end));
    memset(at, 0, 400);
    return at + 400;
}

size_t jpeg_maker_blank(const uint8_t sampling[3], bool has_scans,
                        uint8_t ret_jpeg[JPEG_MAKER_BLANK_BYTES])
{
    static const uint8_t begin[2] = {0xFF, 0xD8}, end[2] = {0xFF, 0xD9};
    const uint8_t frame[19] = {0xFF, 0xC0,        0, 17, 8,           0, 30, 0,           40, 3,
                               1,    sampling[0], 0, 2,  sampling[1], 0, 3,  sampling[2], 0};
    uint8_t *at = put(ret_jpeg, begin, sizeof(begin));
    at = put(put_tables(at), frame, sizeof(frame));
    for (uint8_t i = 0; i < 3; i++) {
        if (has_scans || i == 0) {
            at = put_scan(at, (uint8_t)(1 + i), has_scans ? 1 : 3);
        }
    }
    return (size_t)(put(at, end, sizeof(end)) - ret_jpeg);
}

bool jpeg_maker_can_decode(const uint8_t *jpeg, size_t size)
{
    static uint8_t pixels[3 * 40 * 30];
    tjhandle handle = tjInitDecompress();
    assert(handle != NULL);
    int failed = tjDecompress2(handle, jpeg, size, pixels, 40, 0, 30, TJPF_RGB, 0);
    // What is left of a scan's bytes is no fault.
    bool can = failed == 0 || strstr(tjGetErrorStr2(handle), "extraneous bytes") != NULL;
    tjDestroy(handle);
    return can;
}

uint8_t *jpeg_maker_insert(uint8_t *jpeg, size_t *size, uint8_t marker, const uint8_t *body,
                           size_t body_size)
{
    uint8_t head[4] = {0xFF, marker, (uint8_t)((body_size + 2) >> 8), (uint8_t)(body_size + 2)};
    uint8_t *grown = malloc(*size + 4 + body_size);
    assert(grown != NULL);
    memcpy(grown, jpeg, 2);
    memcpy(grown + 2, head, 4);
    memcpy(grown + 6, body, body_size);
    memcpy(grown + 6 + body_size, jpeg + 2, *size - 2);
    free(jpeg);
    *size += 4 + body_size;
    return grown;
}

uint8_t *jpeg_maker_orient(uint8_t *jpeg, size_t *size, uint8_t orientation, int is_little)
{
    // Two entries: a tag of no interest (ImageWidth), then the orientation.
    uint8_t little[] = {'E', 'x', 'i', 'f', 0, 0, 'I',         'I', 42, 0, 8, 0, 0, 0,    2,
                        0,   0,   1,   4,   0, 1, 0,           0,   0,  9, 0, 0, 0, 0x12, 1,
                        3,   0,   1,   0,   0, 0, orientation, 0,   0,  0, 0, 0, 0, 0};
    uint8_t big[] = {'E', 'x', 'i', 'f', 0, 0, 'M', 'M',         0, 42, 0, 0, 0, 8, 0,
                     2,   1,   0,   0,   4, 0, 0,   0,           1, 0,  0, 0, 9, 1, 0x12,
                     0,   3,   0,   0,   0, 1, 0,   orientation, 0, 0,  0, 0, 0, 0};
    return jpeg_maker_insert(jpeg, size, 0xE1, is_little ? little : big, sizeof(little));
}
