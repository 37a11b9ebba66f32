/* gzip by zlib's inflate: whole files in memory, several members as one. */
#define ZLIB_CONST // inflate reads from const memory
#include "worker/data/gzip.h"

#include <zlib.h>

#include <limits.h>
#include <stdio.h>

#define WINDOW_BITS_GZIP (16 + MAX_WBITS) // a gzip header and trailer, and nothing else

bool gzip_is_packed(const uint8_t *bytes, size_t size)
{
    return size >= 2 && bytes[0] == 0x1F && bytes[1] == 0x8B;
}

/* Until the end of the last member, until the output is full, or until it fails. */
static int inflate_members(z_stream *stream)
{
    int code = Z_OK;
    while (code == Z_OK) {
        code = inflate(stream, Z_NO_FLUSH);
        if (code == Z_STREAM_END && stream->avail_in > 0) {
            code = inflateReset(stream);
        }
    }
    return code;
}

/* Leaves in *stream what was not used of input and output. */
static int inflate_into(const uint8_t *packed, size_t packed_size, uint8_t *bytes, size_t size,
                        z_stream *stream)
{
    *stream = (z_stream){
        .next_in = packed,
        .avail_in = (uInt)packed_size,
        .next_out = bytes,
        .avail_out = (uInt)size,
    };
    int code = inflateInit2(stream, WINDOW_BITS_GZIP);
    if (code == Z_OK) {
        code = inflate_members(stream);
        inflateEnd(stream);
    }
    return code;
}

enum status gzip_peek(const uint8_t *packed, size_t packed_size, uint8_t *ret_bytes, size_t count)
{
    if (packed_size > UINT_MAX || count > UINT_MAX) {
        return STATUS_MALFORMED;
    }
    z_stream stream;
    int code = inflate_into(packed, packed_size, ret_bytes, count, &stream);
    if (code == Z_MEM_ERROR) {
        return STATUS_NO_MEMORY;
    }
    return stream.avail_out == 0 ? STATUS_OK : STATUS_MALFORMED;
}

enum status gzip_unpack(const uint8_t *packed, size_t packed_size, uint8_t *ret_bytes, size_t size,
                        char *ret_why, size_t why_size)
{
    if (packed_size > UINT_MAX || size > UINT_MAX) {
        snprintf(ret_why, why_size, "a gzip file of more than 4 GiB");
        return STATUS_MALFORMED;
    }
    z_stream stream;
    int code = inflate_into(packed, packed_size, ret_bytes, size, &stream);
    if (code == Z_MEM_ERROR) {
        return STATUS_NO_MEMORY;
    }
    if (code == Z_STREAM_END && stream.avail_out == 0) {
        return STATUS_OK;
    }
    if (code == Z_STREAM_END) {
        snprintf(ret_why, why_size, "gzip: it unpacks to %zu bytes where %zu were expected",
                 size - stream.avail_out, size);
    } else if (code != Z_BUF_ERROR) {
        snprintf(ret_why, why_size, "gzip: damaged at byte %zu of %zu: %s",
                 packed_size - stream.avail_in, packed_size,
                 stream.msg != NULL ? stream.msg : zError(code));
    } else if (stream.avail_in == 0) {
        snprintf(ret_why, why_size, "gzip: it breaks off after %zu bytes", packed_size);
    } else {
        snprintf(ret_why, why_size, "gzip: it unpacks to more than the %zu bytes expected", size);
    }
    return STATUS_MALFORMED;
}
