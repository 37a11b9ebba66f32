/* An allocator that hands out a block piece by piece and frees nothing: for decoding into memory of
 * a fixed size, however hostile the input is. */
#ifndef COMMON_BASE_BUMP_H
#define COMMON_BASE_BUMP_H

#include <stddef.h>

struct bump {
    unsigned char *bytes; // (size), borrowed; aligned for anything
    size_t used, size;
};

/* `data` is a struct bump. NULL: there is no room for so many bytes. */
void *bump_alloc(void *data, size_t size);
void bump_free(void *data, void *pointer); // does nothing

#endif
