/* Writes zip records as PKWARE's APPNOTE.TXT has them. */
#define ZLIB_CONST // deflate reads from const memory
#include "tests/support/data/npz_maker.h"

#include <zlib.h>

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdio.h>
#include <string.h>

#define MEMORY_LEVEL 8
#define UNKNOWN      0xFFFFFFFFu // in 32 bits: the extra field has it

/* A place that grows as numbers are put there. */
struct pen {
    uint8_t *at;
};

static void put(struct pen *pen, uint64_t value, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++) {
        *pen->at++ = (uint8_t)(value >> 8 * i);
    }
}

static void put_bytes(struct pen *pen, const void *bytes, size_t size)
{
    memcpy(pen->at, bytes, size);
    pen->at += size;
}

/* What stands of a member in front of it and in the directory. */
struct fields {
    bool is_deflated, is_zip64;
    uint32_t crc;
    size_t packed_size, size, name_size;
};

static void put_fields(struct pen *pen, const struct fields *fields, size_t extra_size)
{
    put(pen, fields->is_zip64 ? 45 : 20, 2);
    put(pen, 0, 2);
    put(pen, fields->is_deflated ? 8 : 0, 2);
    put(pen, 0, 4); // date and time
    put(pen, fields->crc, 4);
    put(pen, fields->is_zip64 ? UNKNOWN : fields->packed_size, 4);
    put(pen, fields->is_zip64 ? UNKNOWN : fields->size, 4);
    put(pen, fields->name_size, 2);
    put(pen, extra_size, 2);
}

/* The field of zip64, of so many bytes, and its sizes. */
static void put_zip64(struct pen *pen, const struct fields *fields, size_t size)
{
    put(pen, 1, 2);
    put(pen, size, 2);
    put(pen, fields->size, 8);
    put(pen, fields->packed_size, 8);
}

static size_t deflate_raw(const void *bytes, size_t size, uint8_t *ret_packed, size_t capacity)
{
    z_stream stream = {0};
    assert_int_equal(deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, -MAX_WBITS, MEMORY_LEVEL,
                                  Z_DEFAULT_STRATEGY),
                     Z_OK);
    stream.next_in = bytes;
    stream.avail_in = (uInt)size;
    stream.next_out = ret_packed;
    stream.avail_out = (uInt)capacity;
    assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
    deflateEnd(&stream);
    return capacity - stream.avail_out;
}

void npz_maker_add(struct npz_maker *maker, const char *name, const void *bytes, size_t size)
{
    uint8_t packed[NPZ_MAKER_BYTES];
    size_t name_size = strlen(name), packed_size = size, place = maker->size;
    const void *content = bytes;
    if (maker->is_deflated) {
        packed_size = deflate_raw(bytes, size, packed, sizeof(packed));
        content = packed;
    }
    uint32_t crc = (uint32_t)crc32(0, bytes, (uInt)size);
    bool is_zip64 = maker->is_zip64;
    assert_true(maker->size + packed_size + 256 < NPZ_MAKER_BYTES);

    const struct fields fields = {.is_deflated = maker->is_deflated,
                                  .is_zip64 = is_zip64,
                                  .crc = crc,
                                  .packed_size = packed_size,
                                  .size = size,
                                  .name_size = name_size};
    struct pen local = {maker->bytes + maker->size};
    put(&local, 0x04034B50, 4);
    put_fields(&local, &fields, is_zip64 ? 20 : 0);
    put_bytes(&local, name, name_size);
    if (is_zip64) {
        put_zip64(&local, &fields, 16);
    }
    put_bytes(&local, content, packed_size);
    maker->size = (size_t)(local.at - maker->bytes);

    struct pen entry = {maker->directory + maker->directory_size};
    put(&entry, 0x02014B50, 4);
    put(&entry, 45, 2);
    put_fields(&entry, &fields, is_zip64 ? 6 + 28 : 0);
    put(&entry, 0, 6); // comment, disk, kind of text
    put(&entry, 0, 4);
    put(&entry, is_zip64 ? UNKNOWN : place, 4);
    put_bytes(&entry, name, name_size);
    if (is_zip64) {
        put(&entry, 0x5455, 2); // another field first
        put(&entry, 2, 2);
        put(&entry, 0, 2);
        put_zip64(&entry, &fields, 24);
        put(&entry, place, 8);
    }
    maker->directory_size = (size_t)(entry.at - maker->directory);
    maker->count++;
}

size_t npz_maker_array(uint8_t version, const char *text, const void *items, size_t size,
                       uint8_t *ret_bytes, size_t capacity)
{
    size_t text_size = strlen(text);
    struct pen pen = {ret_bytes};
    assert_true(12 + text_size + size <= capacity);
    put_bytes(&pen, "\x93NUMPY", 6);
    put(&pen, version, 1);
    put(&pen, 0, 1);
    put(&pen, text_size, version == 1 ? 2 : 4);
    put_bytes(&pen, text, text_size);
    put_bytes(&pen, items, size);
    return (size_t)(pen.at - ret_bytes);
}

void npz_maker_add_array(struct npz_maker *maker, const char *name, const char *type,
                         const char *shape, const void *items, size_t size)
{
    char text[256], path[64];
    uint8_t bytes[NPZ_MAKER_BYTES];
    snprintf(text, sizeof(text), "{'descr': '%s', 'fortran_order': False, 'shape': %s, }  \n", type,
             shape);
    snprintf(path, sizeof(path), "%s.npy", name);
    npz_maker_add(maker, path, bytes, npz_maker_array(1, text, items, size, bytes, sizeof(bytes)));
}

void npz_maker_finish(struct npz_maker *maker)
{
    size_t place = maker->size;
    struct pen pen = {maker->bytes + maker->size};
    put_bytes(&pen, maker->directory, maker->directory_size);
    size_t end = place + maker->directory_size;
    if (maker->is_zip64) {
        put(&pen, 0x06064B50, 4);
        put(&pen, 44, 8);
        put(&pen, 45, 2);
        put(&pen, 45, 2);
        put(&pen, 0, 8); // of disks
        put(&pen, maker->count, 8);
        put(&pen, maker->count, 8);
        put(&pen, maker->directory_size, 8);
        put(&pen, place, 8);
        put(&pen, 0x07064B50, 4);
        put(&pen, 0, 4);
        put(&pen, end, 8);
        put(&pen, 1, 4);
    }
    put(&pen, 0x06054B50, 4);
    put(&pen, 0, 4);
    put(&pen, maker->count, 2);
    put(&pen, maker->count, 2);
    put(&pen, maker->is_zip64 ? UNKNOWN : maker->directory_size, 4);
    put(&pen, maker->is_zip64 ? UNKNOWN : place, 4);
    put(&pen, 0, 2);
    maker->size = (size_t)(pen.at - maker->bytes);
}
