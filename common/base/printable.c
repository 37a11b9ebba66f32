/* Control characters become question marks. */
#include "common/base/printable.h"

void printable_make(char *text, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (((unsigned char)text[i] < 0x20 && text[i] != '\t') || text[i] == 0x7F) {
            text[i] = '?';
        }
    }
}
