/* One multiplication and one addition for each byte. */
#include "common/vector/float_loops.h"

VARIANT_BODY void float_body(const uint8_t *restrict bytes, size_t count, float scale, float shift,
                             float *restrict ret_pixels)
{
    for (size_t i = 0; i < count; i++) {
        ret_pixels[i] = (float)bytes[i] * scale + shift;
    }
}

#define DEFINE_LOOP(name, target)                                                                  \
    target static void floats_##name(const uint8_t *bytes, size_t count, float scale, float shift, \
                                     float *ret_pixels)                                            \
    {                                                                                              \
        float_body(bytes, count, scale, shift, ret_pixels);                                        \
    }

DEFINE_LOOP(portable, )
DEFINE_LOOP(avx2, VARIANT_TARGET_AVX2)
DEFINE_LOOP(avx512, VARIANT_TARGET_AVX512)

float_loop *const float_loops[VARIANT_COUNT] = {
    [VARIANT_PORTABLE] = floats_portable,
    [VARIANT_AVX2] = floats_avx2,
    [VARIANT_AVX512] = floats_avx512,
};
