/* Encodes and decodes Z85. */
#include "common/security/z85.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

#define BASE         85
#define GROUP_BYTES  4
#define GROUP_DIGITS 5

static const char digits[] =
    "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#";

void z85_encode(const unsigned char *bytes, size_t size, char *ret_text)
{
    assert(size % GROUP_BYTES == 0);
    for (size_t i = 0; i < size; i += GROUP_BYTES) {
        uint32_t value = 0;
        for (size_t k = 0; k < GROUP_BYTES; k++) {
            value = value << 8 | bytes[i + k];
        }
        for (size_t k = GROUP_DIGITS; k-- > 0; value /= BASE) {
            ret_text[k] = digits[value % BASE];
        }
        ret_text += GROUP_DIGITS;
    }
    *ret_text = '\0';
}

bool z85_decode(const char *text, size_t text_size, unsigned char *ret_bytes)
{
    if (text_size % GROUP_DIGITS != 0) {
        return false;
    }
    for (size_t i = 0; i < text_size; i += GROUP_DIGITS) {
        uint64_t value = 0;
        for (size_t k = 0; k < GROUP_DIGITS; k++) {
            // NOLINTNEXTLINE(bugprone-not-null-terminated-result): its end is no digit
            const char *digit = memchr(digits, text[i + k], BASE);
            if (digit == NULL) {
                return false;
            }
            value = value * BASE + (uint64_t)(digit - digits);
        }
        if (value > UINT32_MAX) {
            return false;
        }
        for (size_t k = GROUP_BYTES; k-- > 0; value >>= 8) {
            ret_bytes[k] = (unsigned char)value;
        }
        ret_bytes += GROUP_BYTES;
    }
    return true;
}
