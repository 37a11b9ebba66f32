/* gzip by zlib's deflate. */
#define ZLIB_CONST // deflate reads from const memory
#include "tests/support/data/packed.h"

#include <zlib.h>

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on

#define WINDOW_BITS_GZIP (16 + MAX_WBITS)
#define MEMORY_LEVEL     8

size_t packed_write(const void *bytes, size_t size, uint8_t *ret_packed, size_t capacity)
{
    z_stream stream = {0};
    assert_int_equal(deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, WINDOW_BITS_GZIP,
                                  MEMORY_LEVEL, Z_DEFAULT_STRATEGY),
                     Z_OK);
    stream.next_in = bytes;
    stream.avail_in = (uInt)size;
    stream.next_out = ret_packed;
    stream.avail_out = (uInt)capacity;
    assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
    deflateEnd(&stream);
    return capacity - stream.avail_out;
}
