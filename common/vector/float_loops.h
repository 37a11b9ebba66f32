/* Bytes as floats, for each instruction set that machines have. All variants give the same bits. */
#ifndef COMMON_VECTOR_FLOAT_LOOPS_H
#define COMMON_VECTOR_FLOAT_LOOPS_H

#include "common/vector/variants.h"

#include <stddef.h>
#include <stdint.h>

/* Writes byte * scale + shift, rounded twice. */
typedef void float_loop(const uint8_t *bytes, size_t count, float scale, float shift,
                        float *ret_pixels);

/* Only what variant_is_supported allows may be called. */
extern float_loop *const float_loops[VARIANT_COUNT];

#endif
