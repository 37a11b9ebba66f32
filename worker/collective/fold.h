/* Arithmetic of all-reduces: one vector of several, for the types and operations that programs
 * have.
 *
 * Sums and means of float32 are added in doubles and rounded once; all else is computed in its own
 * type, where integers wrap around. A mean divides the sum, and of integers rounds towards 0. The
 * least and greatest of values of which one is no number is no number. */
#ifndef WORKER_COLLECTIVE_FOLD_H
#define WORKER_COLLECTIVE_FOLD_H

#include <stddef.h>
#include <stdint.h>

/* As in ringside.h. */
enum fold_type {
    FOLD_FLOAT32,
    FOLD_FLOAT64,
    FOLD_INT8,
    FOLD_INT16,
    FOLD_INT32,
    FOLD_INT64,
    FOLD_UINT8,
    FOLD_TYPE_COUNT
};

enum fold_operation { FOLD_SUM, FOLD_MEAN, FOLD_MIN, FOLD_MAX, FOLD_PRODUCT, FOLD_OPERATION_COUNT };

/* The bytes of a value. */
size_t fold_size(enum fold_type type);

/* Writes to `to` what becomes of `source_count` vectors of `count` values, in their order. `to` may
 * be one of them. */
void fold(enum fold_type type, enum fold_operation operation, const void *const *sources,
          uint32_t source_count, void *to, size_t count);

#endif
