/* Adds up 64-bit words in lanes, and behind each block adds that sum to a second one, in which a
 * word counts once for each block from its own on (Fletcher's checksum). These are additions alone,
 * which cost little beside reading the memory. The last block is padded by zeros. */
#include "common/vector/bit_sum.h"

#include <string.h>

#define LANES        8
#define BLOCK_FLOATS (LANES * sizeof(uint64_t) / sizeof(float))
#define PRIME        UINT64_C(0x9E3779B185EBCA87)

typedef uint64_t lanes_t __attribute__((vector_size(LANES * sizeof(uint64_t))));

struct lane_sums {
    lanes_t plain, weighted;
};

VARIANT_BODY void add_block(struct lane_sums *sums, const float *values, size_t count)
{
    lanes_t words = {0};
    memcpy(&words, values, count * sizeof(float));
    sums->plain += words;
    sums->weighted += sums->plain;
}

/* One number of all lanes: another value in one lane gives another number. */
VARIANT_BODY uint64_t fold(const lanes_t *lanes)
{
    uint64_t sum = 0;
    for (int i = 0; i < LANES; i++) {
        sum = (sum ^ (*lanes)[i]) * PRIME;
    }
    return sum;
}

VARIANT_BODY struct bit_sum fold_both(const struct lane_sums *sums)
{
    return (struct bit_sum){.plain = fold(&sums->plain), .weighted = fold(&sums->weighted)};
}

VARIANT_BODY struct bit_sum of_body(const float *values, size_t count)
{
    struct lane_sums sums = {0};
    for (; count >= BLOCK_FLOATS; count -= BLOCK_FLOATS, values += BLOCK_FLOATS) {
        add_block(&sums, values, BLOCK_FLOATS);
    }
    add_block(&sums, values, count);
    return fold_both(&sums);
}

VARIANT_BODY struct bit_sum copy_body(float *restrict to, const float *restrict from, size_t count,
                                      struct bit_sum *ret_copied)
{
    struct lane_sums before = {0}, copied = {0};
    for (; count >= BLOCK_FLOATS; count -= BLOCK_FLOATS, to += BLOCK_FLOATS, from += BLOCK_FLOATS) {
        add_block(&before, to, BLOCK_FLOATS);
        add_block(&copied, from, BLOCK_FLOATS);
        memcpy(to, from, BLOCK_FLOATS * sizeof(float));
    }
    add_block(&before, to, count);
    add_block(&copied, from, count);
    memcpy(to, from, count * sizeof(float));
    *ret_copied = fold_both(&copied);
    return fold_both(&before);
}

#define DEFINE_LOOPS(variant, target)                                                       \
    target static struct bit_sum of_##variant(const float *values, size_t count)            \
    {                                                                                       \
        return of_body(values, count);                                                      \
    }                                                                                       \
    target static struct bit_sum copy_##variant(float *to, const float *from, size_t count, \
                                                struct bit_sum *ret_copied)                 \
    {                                                                                       \
        return copy_body(to, from, count, ret_copied);                                      \
    }

DEFINE_LOOPS(portable, )
DEFINE_LOOPS(avx2, VARIANT_TARGET_AVX2)
DEFINE_LOOPS(avx512, VARIANT_TARGET_AVX512)

const struct bit_sum_loops bit_sum_loops[VARIANT_COUNT] = {
    [VARIANT_PORTABLE] = {of_portable, copy_portable},
    [VARIANT_AVX2] = {of_avx2, copy_avx2},
    [VARIANT_AVX512] = {of_avx512, copy_avx512},
};

bool bit_sum_equals(struct bit_sum sum, struct bit_sum other)
{
    return sum.plain == other.plain && sum.weighted == other.weighted;
}

struct bit_sum bit_sum_of(const float *values, size_t count)
{
    return bit_sum_loops[variant_best()].of(values, count);
}

struct bit_sum bit_sum_copy(float *to, const float *from, size_t count, struct bit_sum *ret_copied)
{
    return bit_sum_loops[variant_best()].copy(to, from, count, ret_copied);
}
