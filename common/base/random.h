/* Seeded randomness that does not depend on who draws it.
 *
 * Everything random in a job is a pure function of (seed, purpose, epoch, sample, element), so that
 * any number of workers, in any order, draws the same. Two layers:
 *
 *     random_key(seed, purpose, a, b)   64 bits for one purpose, by chained splitmix64 finalizers
 *                                       (Steele, Lea and Flood 2014)
 *     random_element(key, index)        32 bits per element, by MurmurHash3's finalizer: cheap and
 *                                       vectorised by compilers, as dropout masks need it
 *
 * and a small sequential generator for shuffles. */
#ifndef COMMON_BASE_RANDOM_H
#define COMMON_BASE_RANDOM_H

#include <stdint.h>

// Keeps the streams of a seed apart.
enum random_purpose {
    RANDOM_SHUFFLE = 1,
    RANDOM_PARAMS,
    RANDOM_DROPOUT,
    RANDOM_SHAPES,
    RANDOM_SYNTHETIC,
    RANDOM_SPLIT,
    RANDOM_ORDER,
    RANDOM_STRAGGLER,
    RANDOM_AUGMENT,
    RANDOM_IMAGES,
    RANDOM_PREDICT,
};

// What a GPU draws as well says so before it includes this file.
#ifndef RANDOM_FUNCTION
#define RANDOM_FUNCTION static inline
#endif

RANDOM_FUNCTION uint64_t random_mix(uint64_t x)
{
    x += 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

static inline uint64_t random_key(uint64_t seed, enum random_purpose purpose, uint64_t a,
                                  uint64_t b)
{
    return random_mix(random_mix(random_mix(random_mix(seed) + (uint64_t)purpose) + a) + b);
}

RANDOM_FUNCTION uint32_t random_element(uint64_t key, uint32_t index)
{
    uint32_t x = (uint32_t)key + index * 0x9E3779B9u;
    x ^= x >> 16;
    x *= 0x85EBCA6Bu;
    x += (uint32_t)(key >> 32);
    x ^= x >> 13;
    x *= 0xC2B2AE35u;
    return x ^ (x >> 16);
}

/* Uniform in [0, 1) with 24 bits, exactly representable. */
RANDOM_FUNCTION float random_unit_float(uint32_t bits)
{
    return (float)(bits >> 8) * 0x1p-24f;
}

/* A sequence: splitmix64 over a counter. */
struct random_sequence {
    uint64_t state;
};

static inline uint64_t random_next(struct random_sequence *sequence)
{
    uint64_t value = random_mix(sequence->state);
    sequence->state += 0x9E3779B97F4A7C15u;
    return value;
}

/* Uniform in [0, bound), bound > 0, by Lemire's multiplication (2019) without its rejection: the
 * bias is below bound / 2^64. */
static inline uint64_t random_below(struct random_sequence *sequence, uint64_t bound)
{
    return (uint64_t)(((unsigned __int128)random_next(sequence) * bound) >> 64);
}

#endif
