/* Arithmetic loops compiled more than once, for the instruction sets that machines may have.
 *
 * A loop is written once as a VARIANT_BODY function, which is inlined into one wrapper for each
 * variant; only the wrappers name instruction sets. The compiler may neither reassociate nor fuse
 * (-ffp-contract=off), so all variants of a body agree in every bit. For common/ and the cpu
 * backend. */
#ifndef COMMON_VECTOR_VARIANTS_H
#define COMMON_VECTOR_VARIANTS_H

#include <stdbool.h>

enum variant { VARIANT_PORTABLE, VARIANT_AVX2, VARIANT_AVX512, VARIANT_COUNT };

#define VARIANT_BODY static inline __attribute__((always_inline))

#if defined(__x86_64__)
#define VARIANT_TARGET_AVX2   __attribute__((target("avx2,fma")))
#define VARIANT_TARGET_AVX512 __attribute__((target("avx512f,avx512vl,avx512dq,avx512bw,avx2,fma")))

static inline bool variant_is_supported(enum variant variant)
{
    bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    bool has_avx512 = has_avx2 && __builtin_cpu_supports("avx512f") &&
                      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
                      __builtin_cpu_supports("avx512bw");
    return variant == VARIANT_PORTABLE || (variant == VARIANT_AVX2 && has_avx2) ||
           (variant == VARIANT_AVX512 && has_avx512);
}
#else
#define VARIANT_TARGET_AVX2
#define VARIANT_TARGET_AVX512

static inline bool variant_is_supported(enum variant variant)
{
    return variant == VARIANT_PORTABLE;
}
#endif

static inline enum variant variant_best(void)
{
    if (variant_is_supported(VARIANT_AVX512)) {
        return VARIANT_AVX512;
    }
    return variant_is_supported(VARIANT_AVX2) ? VARIANT_AVX2 : VARIANT_PORTABLE;
}

#endif
