/* Folds block by block: a block of each vector is read before it is written, and stays in the
 * cache. */
#include "worker/collective/fold.h"

#include <assert.h>

#define BLOCK 512

#define LEAST(a, b)    ((a) < (b) || (a) != (a) ? (a) : (b))
#define GREATEST(a, b) ((a) > (b) || (a) != (a) ? (a) : (b))
#define SUM(a, b)      ((a) + (b))
#define PRODUCT(a, b)  ((a) * (b))

/* A block of one operation: `wide` is the type that it is computed in. */
#define DEFINE_FOLD(name, type, wide, STEP)                                                  \
    static void name(const void *const *sources, uint32_t source_count, size_t at, void *to, \
                     size_t count)                                                           \
    {                                                                                        \
        wide block[BLOCK];                                                                   \
        const type *first = (const type *)sources[0] + at;                                   \
        for (size_t i = 0; i < count; i++) {                                                 \
            block[i] = (wide)first[i];                                                       \
        }                                                                                    \
        for (uint32_t source = 1; source < source_count; source++) {                         \
            const type *next = (const type *)sources[source] + at;                           \
            for (size_t i = 0; i < count; i++) {                                             \
                block[i] = (wide)STEP(block[i], (wide)next[i]);                              \
            }                                                                                \
        }                                                                                    \
        type *result = (type *)to + at;                                                      \
        for (size_t i = 0; i < count; i++) {                                                 \
            result[i] = (type)block[i];                                                      \
        }                                                                                    \
    }

#define DEFINE_MEAN(name, type, quotient)                                      \
    static void name(void *to, size_t at, size_t count, uint32_t source_count) \
    {                                                                          \
        type *values = (type *)to + at;                                        \
        for (size_t i = 0; i < count; i++) {                                   \
            values[i] = (type)((quotient)values[i] / (quotient)source_count);  \
        }                                                                      \
    }

/* Wide integers are added and multiplied without a sign, which wraps around; narrow ones as `int`,
 * and cut. */
#define DEFINE_TYPE(name, type, sum, wide, quotient) \
    DEFINE_FOLD(name##_sum, type, sum, SUM)          \
    DEFINE_FOLD(name##_min, type, type, LEAST)       \
    DEFINE_FOLD(name##_max, type, type, GREATEST)    \
    DEFINE_FOLD(name##_product, type, wide, PRODUCT) \
    DEFINE_MEAN(name##_mean, type, quotient)

DEFINE_TYPE(float32, float, double, float, float)
DEFINE_TYPE(float64, double, double, double, double)
DEFINE_TYPE(int8, int8_t, int8_t, int8_t, int64_t)
DEFINE_TYPE(int16, int16_t, int16_t, int16_t, int64_t)
DEFINE_TYPE(int32, int32_t, uint32_t, uint32_t, int64_t)
DEFINE_TYPE(int64, int64_t, uint64_t, uint64_t, int64_t)
DEFINE_TYPE(uint8, uint8_t, uint8_t, uint8_t, int64_t)

struct fold_row {
    size_t size;
    void (*folds[FOLD_OPERATION_COUNT])(const void *const *sources, uint32_t source_count,
                                        size_t at, void *to, size_t count);
    void (*mean)(void *to, size_t at, size_t count, uint32_t source_count);
};

#define ROW(name, type)                                                                 \
    {                                                                                   \
        sizeof(type), {name##_sum, name##_sum, name##_min, name##_max, name##_product}, \
            name##_mean                                                                 \
    }

static const struct fold_row rows[FOLD_TYPE_COUNT] = {
    [FOLD_FLOAT32] = ROW(float32, float), [FOLD_FLOAT64] = ROW(float64, double),
    [FOLD_INT8] = ROW(int8, int8_t),      [FOLD_INT16] = ROW(int16, int16_t),
    [FOLD_INT32] = ROW(int32, int32_t),   [FOLD_INT64] = ROW(int64, int64_t),
    [FOLD_UINT8] = ROW(uint8, uint8_t),
};

size_t fold_size(enum fold_type type)
{
    assert(type < FOLD_TYPE_COUNT);
    return rows[type].size;
}

void fold(enum fold_type type, enum fold_operation operation, const void *const *sources,
          uint32_t source_count, void *to, size_t count)
{
    assert(type < FOLD_TYPE_COUNT && operation < FOLD_OPERATION_COUNT);
    const struct fold_row *row = &rows[type];
    for (size_t at = 0; at < count; at += BLOCK) {
        size_t part = count - at < BLOCK ? count - at : BLOCK;
        row->folds[operation](sources, source_count, at, to, part);
        if (operation == FOLD_MEAN) {
            row->mean(to, at, part, source_count);
        }
    }
}
