/* Makes .npz files for tests: zip files whose members are NumPy's arrays. */
#ifndef TESTS_SUPPORT_DATA_NPZ_MAKER_H
#define TESTS_SUPPORT_DATA_NPZ_MAKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NPZ_MAKER_BYTES 65536

struct npz_maker {
    bool is_deflated, is_zip64; // of what is added from here on
    uint8_t bytes[NPZ_MAKER_BYTES];
    size_t size;
    uint8_t directory[4096];
    size_t directory_size;
    unsigned count;
};

/* Appends a member as it is. */
void npz_maker_add(struct npz_maker *maker, const char *name, const void *bytes, size_t size);

/* Appends NAME.npy: an array whose header has this type ("|u1"), order and shape ("(3, 2)"). */
void npz_maker_add_array(struct npz_maker *maker, const char *name, const char *type,
                         const char *shape, const void *items, size_t size);

/* The directory, behind the members. */
void npz_maker_finish(struct npz_maker *maker);

/* The bytes of an array, with a header of this version and text; returns their number. */
size_t npz_maker_array(uint8_t version, const char *text, const void *items, size_t size,
                       uint8_t *ret_bytes, size_t capacity);

#endif
