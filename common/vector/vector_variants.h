/* The variants of vector.c, one by one, for its test. */
#ifndef COMMON_VECTOR_VECTOR_VARIANTS_H
#define COMMON_VECTOR_VECTOR_VARIANTS_H

#include "common/vector/variants.h"

#include <stdbool.h>
#include <stddef.h>

struct vector_operations {
    const char *name;
    void (*add)(float *to, const float *from, size_t count);
    void (*sum)(float *to, const float *a, const float *b, size_t count);
    void (*scale)(float *to, float factor, size_t count);
    void (*mean)(float *const *vectors, size_t vector_count, float factor, size_t count);
    bool (*is_finite)(const float *values, size_t count);
};

/* Only what variant_is_supported allows may be called. */
extern const struct vector_operations vector_variants[VARIANT_COUNT];

#endif
