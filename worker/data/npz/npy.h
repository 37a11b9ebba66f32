/* The header of NumPy's arrays in files (NEP 1): versions 1, 2 and 3. Pure. */
#ifndef WORKER_DATA_NPZ_NPY_H
#define WORKER_DATA_NPZ_NPY_H

#include "common/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NPY_DIMS_MAX   8
#define NPY_TYPE_BYTES 16

struct npy {
    char type[NPY_TYPE_BYTES]; // as NumPy writes it: "|u1", "<i8"; an order, a kind, bytes
    char order, kind;
    uint32_t item_bytes;
    bool is_fortran; // the first index changes fastest
    uint32_t dim_count;
    uint64_t dims[NPY_DIMS_MAX];
    uint64_t count; // items
    uint64_t at;    // where they begin
};

/* Reads the header of an array of `size` bytes, which its items fill. STATUS_MALFORMED, or
 * STATUS_UNSUPPORTED for what is no array of numbers, with the reason in ret_why. */
enum status npy_parse(const uint8_t *bytes, uint64_t size, struct npy *ret_npy, char *ret_why,
                      size_t why_size);

/* "(60000, 28, 28)" */
void npy_shape_text(const struct npy *npy, char *ret_text, size_t text_size);

#endif
