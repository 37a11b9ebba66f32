/* Turns bytes into floats. Writing takes longer than the arithmetic, so the memory that comes next
 * is fetched ahead. */
#include "common/vector/float_loops.h"

#define BLOCK 64   // floats
#define AHEAD 1024 // floats: a page
#define LINE  16   // floats

VARIANT_BODY void convert(const uint8_t *restrict bytes, size_t count, float scale, float shift,
                          float *restrict ret_pixels)
{
    for (size_t i = 0; i < count; i++) {
        ret_pixels[i] = (float)bytes[i] * scale + shift;
    }
}

VARIANT_BODY void float_body(const uint8_t *bytes, size_t count, float scale, float shift,
                             float *ret_pixels)
{
    size_t i = 0;
    for (; i + AHEAD + BLOCK <= count; i += BLOCK) {
        for (size_t line = 0; line < BLOCK; line += LINE) {
            __builtin_prefetch(ret_pixels + i + AHEAD + line, 1);
        }
        convert(bytes + i, BLOCK, scale, shift, ret_pixels + i);
    }
    convert(bytes + i, count - i, scale, shift, ret_pixels + i);
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
