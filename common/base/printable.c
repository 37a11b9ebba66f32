/* Control characters, and what is no UTF-8, become question marks. */
#include "common/base/printable.h"

#include <stdint.h>
#include <string.h>

void printable_make(char *text, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (((unsigned char)text[i] < 0x20 && text[i] != '\t') || text[i] == 0x7F) {
            text[i] = '?';
        }
    }
}

/* Bytes of the character that begins here; 0 if none does. */
static size_t character_size(const char *text)
{
    unsigned char first = (unsigned char)text[0];
    size_t size = first < 0x80       ? 1
                  : first >> 5 == 6  ? 2
                  : first >> 4 == 14 ? 3
                  : first >> 3 == 30 ? 4
                                     : 0;
    static const uint32_t masks[] = {0, 0x7F, 0x1F, 0x0F, 0x07};
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    uint32_t code = first & masks[size];
    for (size_t i = 1; i < size; i++) {
        if (((unsigned char)text[i] & 0xC0) != 0x80) {
            return 0;
        }
        code = code << 6 | ((unsigned char)text[i] & 0x3F);
    }
    bool is_control = (code < 0x20 && code != '\t') || (code >= 0x7F && code < 0xA0);
    bool is_none =
        (code >= 0xD800 && code < 0xE000) || code > 0x10FFFF || (code & 0xFFFE) == 0xFFFE;
    return is_control || is_none || code < least[size] ? 0 : size;
}

void printable_make_utf8(char *text)
{
    while (*text != '\0') {
        size_t size = character_size(text);
        if (size == 0) {
            *text = '?';
            size = 1;
        }
        text += size;
    }
}

bool printable_is_utf8(const char *text, size_t size)
{
    for (size_t at = 0; at < size;) {
        char next[5] = ""; // a character is never longer, and the end of the text is no part of one
        memcpy(next, text + at, size - at < 4 ? size - at : 4);
        size_t step = character_size(next);
        if (step == 0) {
            return false;
        }
        at += step;
    }
    return true;
}
