/* Reads the directory as PKWARE's APPNOTE.TXT (6.3) describes it, and inflates by zlib. */
#define ZLIB_CONST // inflate reads from const memory
#include "worker/data/npz/zip.h"

#include "worker/data/gzip.h"

#include <zlib.h>

#include <limits.h>
#include <stdio.h>
#include <string.h>

// Sizes without what varies, and what records begin with.
#define END_BYTES         22 // of the directory's end, without its comment
#define END_MARK          0x06054B50
#define COMMENT_BYTES_MAX 65535
#define LOCATOR_BYTES     20 // of the end of zip64, in front of that
#define LOCATOR_MARK      0x07064B50
#define END64_BYTES       56
#define END64_MARK        0x06064B50
#define ENTRY_BYTES       46
#define ENTRY_MARK        0x02014B50
#define LOCAL_BYTES       30
#define LOCAL_MARK        0x04034B50
#define EXTRA_ZIP64       1

#define METHOD_STORED   0
#define METHOD_DEFLATED 8
#define FLAG_ENCRYPTED  1

static uint16_t get_u16(const uint8_t *at)
{
    return (uint16_t)(at[0] | at[1] << 8);
}

static uint32_t get_u32(const uint8_t *at)
{
    return get_u16(at) | (uint32_t)get_u16(at + 2) << 16;
}

static uint64_t get_u64(const uint8_t *at)
{
    return get_u32(at) | (uint64_t)get_u32(at + 4) << 32;
}

/* Whether so many bytes at a place lie in front of an end. */
static bool is_within(uint64_t at, uint64_t bytes, uint64_t end)
{
    return at <= end && bytes <= end - at;
}

static enum status refuse(char *ret_why, size_t why_size, const char *why)
{
    snprintf(ret_why, why_size, "%s", why);
    return STATUS_MALFORMED;
}

/* The end of the directory is the last thing in the file, but for a comment. */
static bool find_end(const uint8_t *file, uint64_t size, uint64_t *ret_end)
{
    for (uint64_t comment = 0; comment <= COMMENT_BYTES_MAX && END_BYTES + comment <= size;
         comment++) {
        const uint8_t *at = file + size - END_BYTES - comment;
        if (get_u32(at) == END_MARK && get_u16(at + 20) == comment) {
            *ret_end = size - END_BYTES - comment;
            return true;
        }
    }
    return false;
}

/* Replaces where the directory lies by what a zip64 file says, if it is one. False: it is damaged.
 */
static bool take_end64(const uint8_t *file, uint64_t end, uint64_t *directory, uint64_t *bytes)
{
    if (end < LOCATOR_BYTES || get_u32(file + end - LOCATOR_BYTES) != LOCATOR_MARK) {
        return true;
    }
    uint64_t at = get_u64(file + end - LOCATOR_BYTES + 8);
    if (!is_within(at, END64_BYTES, end - LOCATOR_BYTES) || get_u32(file + at) != END64_MARK) {
        return false;
    }
    *bytes = get_u64(file + at + 40);
    *directory = get_u64(file + at + 48);
    return true;
}

enum status zip_open(const uint8_t *file, uint64_t size, struct zip *ret_zip, char *ret_why,
                     size_t why_size)
{
    uint64_t end;
    if (!find_end(file, size, &end)) {
        return refuse(ret_why, why_size, "it is no zip file, or it was cut short");
    }
    uint64_t bytes = get_u32(file + end + 12), directory = get_u32(file + end + 16);
    if (!take_end64(file, end, &directory, &bytes) || !is_within(directory, bytes, end)) {
        return refuse(ret_why, why_size, "the directory of its members does not lie within it");
    }
    *ret_zip = (struct zip){file, size, directory, directory + bytes};
    return STATUS_OK;
}

/* Takes from the extra field of an entry what its 32 bits could not hold, in the order of the
 * format: size, packed size, place. False: it is not there. */
static bool take_zip64(const uint8_t *extra, size_t extra_bytes, uint64_t *const values[3])
{
    while (extra_bytes >= 4) {
        size_t size = get_u16(extra + 2);
        if (size > extra_bytes - 4) {
            break;
        }
        if (get_u16(extra) == EXTRA_ZIP64) {
            extra_bytes = size + 4;
            break;
        }
        extra += 4 + size;
        extra_bytes -= 4 + size;
    }
    size_t at = 4;
    bool is_zip64 = extra_bytes >= 4 && get_u16(extra) == EXTRA_ZIP64;
    for (size_t i = 0; i < 3; i++) {
        if (*values[i] != UINT32_MAX) {
            continue;
        }
        if (!is_zip64 || at + 8 > extra_bytes) {
            return false;
        }
        *values[i] = get_u64(extra + at);
        at += 8;
    }
    return true;
}

/* Finds the bytes of a member behind what stands in front of them. */
static enum status place_member(const struct zip *zip, uint64_t at, struct zip_member *member,
                                char *ret_why, size_t why_size)
{
    if (!is_within(at, LOCAL_BYTES, zip->directory) || get_u32(zip->file + at) != LOCAL_MARK) {
        return refuse(ret_why, why_size, "a member does not lie where the directory says");
    }
    const uint8_t *local = zip->file + at;
    uint64_t begin = at + LOCAL_BYTES + get_u16(local + 26) + get_u16(local + 28);
    if (!is_within(begin, member->packed_bytes, zip->directory)) {
        return refuse(ret_why, why_size, "a member is longer than the file");
    }
    member->packed = zip->file + begin;
    return STATUS_OK;
}

static enum status check_kind(const uint8_t *entry, const struct zip_member *member, char *ret_why,
                              size_t why_size)
{
    uint16_t flags = get_u16(entry + 8), method = get_u16(entry + 10);
    if ((flags & FLAG_ENCRYPTED) != 0) {
        snprintf(ret_why, why_size, "a member is encrypted");
        return STATUS_UNSUPPORTED;
    }
    if (method != METHOD_STORED && method != METHOD_DEFLATED) {
        snprintf(ret_why, why_size,
                 "a member is compressed by method %u: numpy.savez and savez_compressed have 0 "
                 "and 8",
                 method);
        return STATUS_UNSUPPORTED;
    }
    if (method == METHOD_STORED && member->packed_bytes != member->bytes) {
        return refuse(ret_why, why_size, "a stored member has two sizes");
    }
    // Or a few bytes could have us allocate for a million images.
    if (member->bytes / GZIP_RATIO_MAX > member->packed_bytes) {
        return refuse(ret_why, why_size, "a member is too short for what it claims to unpack to");
    }
    return STATUS_OK;
}

enum status zip_next(const struct zip *zip, uint64_t *at, struct zip_member *ret_member,
                     char *ret_why, size_t why_size)
{
    if (*at == zip->directory_end) {
        return STATUS_END_OF_DATA;
    }
    const uint8_t *entry = zip->file + *at;
    if (!is_within(*at, ENTRY_BYTES, zip->directory_end) || get_u32(entry) != ENTRY_MARK) {
        return refuse(ret_why, why_size, "the directory of its members is damaged");
    }
    size_t name_size = get_u16(entry + 28), extra_bytes = get_u16(entry + 30);
    uint64_t rest = name_size + extra_bytes + (uint64_t)get_u16(entry + 32);
    if (!is_within(*at + ENTRY_BYTES, rest, zip->directory_end)) {
        return refuse(ret_why, why_size, "the directory of its members is damaged");
    }
    struct zip_member member = {
        .name = (const char *)entry + ENTRY_BYTES,
        .name_size = name_size,
        .packed_bytes = get_u32(entry + 20),
        .bytes = get_u32(entry + 24),
        .crc = get_u32(entry + 16),
        .is_deflated = get_u16(entry + 10) == METHOD_DEFLATED,
    };
    uint64_t place = get_u32(entry + 42);
    if (!take_zip64(entry + ENTRY_BYTES + name_size, extra_bytes,
                    (uint64_t *const[3]){&member.bytes, &member.packed_bytes, &place})) {
        return refuse(ret_why, why_size, "the sizes of a member are missing (zip64)");
    }
    enum status status = check_kind(entry, &member, ret_why, why_size);
    if (status == STATUS_OK) {
        status = place_member(zip, place, &member, ret_why, why_size);
    }
    if (status != STATUS_OK) {
        return status;
    }
    *ret_member = member;
    *at += ENTRY_BYTES + rest;
    return STATUS_OK;
}

static uInt part_of(uint64_t bytes)
{
    return bytes < UINT_MAX ? (uInt)bytes : UINT_MAX;
}

/* zlib counts in 32 bits: it is given parts of what may be more. */
static int inflate_all(z_stream *stream, const struct zip_member *member, uint8_t *bytes)
{
    const uint8_t *packed_end = member->packed + member->packed_bytes;
    const uint8_t *end = bytes + member->bytes;
    int code = Z_OK;
    stream->next_in = member->packed;
    stream->next_out = bytes;
    while (code == Z_OK) {
        stream->avail_in = part_of((uint64_t)(packed_end - stream->next_in));
        stream->avail_out = part_of((uint64_t)(end - stream->next_out));
        code = inflate(stream, Z_NO_FLUSH);
    }
    bool is_whole = code == Z_STREAM_END && stream->next_out == end;
    return is_whole || code == Z_MEM_ERROR ? code : Z_DATA_ERROR;
}

enum status zip_read(const struct zip_member *member, uint8_t *ret_bytes, char *ret_why,
                     size_t why_size)
{
    const uint8_t *bytes = member->packed;
    if (member->is_deflated) {
        z_stream stream = {0};
        int code = inflateInit2(&stream, -MAX_WBITS);
        if (code == Z_OK) {
            code = inflate_all(&stream, member, ret_bytes);
            inflateEnd(&stream);
        }
        if (code == Z_MEM_ERROR) {
            return STATUS_NO_MEMORY;
        }
        if (code != Z_STREAM_END) {
            return refuse(ret_why, why_size, "it is damaged: it does not unpack");
        }
        bytes = ret_bytes;
    }
    if (crc32_z(0, bytes, member->bytes) != member->crc) {
        return refuse(ret_why, why_size, "it is damaged: its checksum is another one");
    }
    return STATUS_OK;
}
