/* Sums over the bits of floats, by which one finds out whether a vector is still what it was. Two
 * vectors that differ in one value always have different sums; those that differ in more almost
 * always. All machines have the same sums. */
#ifndef COMMON_VECTOR_BIT_SUM_H
#define COMMON_VECTOR_BIT_SUM_H

#include "common/vector/variants.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bit_sum {
    uint64_t plain;    // tells any change of one value
    uint64_t weighted; // by places: tells values that change places
};

bool bit_sum_equals(struct bit_sum sum, struct bit_sum other);

struct bit_sum bit_sum_of(const float *values, size_t count);

/* Copies values that do not overlap. Returns the sum of what they are written over, and in
 * ret_copied that of what is there then; one pass over both does it all. */
struct bit_sum bit_sum_copy(float *to, const float *from, size_t count, struct bit_sum *ret_copied);

/* The variants of both, for their test. Only what variant_is_supported allows may be called. */
struct bit_sum_loops {
    struct bit_sum (*of)(const float *values, size_t count);
    struct bit_sum (*copy)(float *to, const float *from, size_t count, struct bit_sum *ret_copied);
};
extern const struct bit_sum_loops bit_sum_loops[VARIANT_COUNT];

#endif
