/* Tests of sums over bits: every variant that this machine runs, against each other and for what
 * they tell apart. */
#include "common/vector/bit_sum.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <string.h>

enum { LONGEST = 1100, STEP = 37 }; // lengths that are tried

static void fill(float *values, size_t count, uint32_t seed)
{
    for (size_t i = 0; i < count; i++) {
        seed = seed * 1664525 + 1013904223;
        values[i] = (float)seed / 4e9F - 0.5F;
    }
}

static size_t next(size_t count)
{
    return count + (count < 70 ? 1 : STEP);
}

static void assert_same(struct bit_sum sum, struct bit_sum wanted)
{
    assert_true(bit_sum_equals(sum, wanted));
}

static void all_instruction_sets_have_the_same_sums(void **state)
{
    (void)state;
    float values[LONGEST];
    fill(values, LONGEST, 1);
    for (uint32_t i = 0; i < VARIANT_COUNT; i++) {
        for (size_t count = 0; count < LONGEST && variant_is_supported((enum variant)i);
             count = next(count)) {
            assert_same(bit_sum_loops[i].of(values, count), bit_sum_of(values, count));
        }
    }
}

static void a_copy_has_the_sums_of_before_and_after(void **state)
{
    (void)state;
    float from[LONGEST + 1], to[LONGEST + 2], before[LONGEST + 2];
    fill(from, LONGEST + 1, 2);
    fill(before, LONGEST + 2, 3);
    for (uint32_t i = 0; i < VARIANT_COUNT; i++) {
        for (size_t count = 0; count < LONGEST && variant_is_supported((enum variant)i);
             count = next(count)) {
            struct bit_sum copied;
            memcpy(to, before, sizeof(to));
            struct bit_sum over = bit_sum_loops[i].copy(to + 1, from + 1, count, &copied);
            assert_same(over, bit_sum_of(before + 1, count));
            assert_same(copied, bit_sum_of(from + 1, count));
            assert_memory_equal(to + 1, from + 1, count * sizeof(float));
            assert_true(to[0] == before[0] && to[count + 1] == before[count + 1]);
        }
    }
}

static void any_other_bit_gives_another_sum(void **state)
{
    (void)state;
    enum { COUNT = 45 };
    float values[COUNT];
    fill(values, COUNT, 4);
    struct bit_sum sum = bit_sum_of(values, COUNT);
    for (size_t i = 0; i < (size_t)COUNT * 32; i++) {
        float before = values[i / 32];
        uint32_t bits;
        memcpy(&bits, &before, sizeof(bits));
        bits ^= UINT32_C(1) << i % 32;
        memcpy(&values[i / 32], &bits, sizeof(bits));
        assert_true(bit_sum_of(values, COUNT).plain != sum.plain);
        values[i / 32] = before;
    }
    assert_same(bit_sum_of(values, COUNT), sum);
}

static void values_that_change_places_give_another_sum(void **state)
{
    (void)state;
    enum { COUNT = 100 };
    float values[COUNT];
    fill(values, COUNT, 5);
    struct bit_sum sum = bit_sum_of(values, COUNT);
    for (size_t i = 0; i < COUNT; i++) {
        for (size_t k = i + 1; k < COUNT; k++) {
            float value = values[i];
            values[i] = values[k];
            values[k] = value;
            assert_false(bit_sum_equals(bit_sum_of(values, COUNT), sum));
            values[k] = values[i];
            values[i] = value;
        }
    }
}

/* What scripts do to whole tensors: lengths whose sums of equal changes might vanish. */
static void changes_of_all_values_give_another_sum(void **state)
{
    (void)state;
    static float values[1 << 16], changed[1 << 16];
    for (size_t count = 1; count <= 1 << 16; count *= 2) {
        fill(values, count, 6);
        struct bit_sum sum = bit_sum_of(values, count);
        for (int change = 0; change < 5; change++) {
            for (size_t i = 0; i < count; i++) {
                changed[i] = change == 0   ? 2 * values[i]
                             : change == 1 ? -values[i]
                             : change == 2 ? 0
                             : change == 3 ? 1
                                           : values[i] / 4;
            }
            assert_false(bit_sum_equals(bit_sum_of(changed, count), sum));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_instruction_sets_have_the_same_sums),
        cmocka_unit_test(a_copy_has_the_sums_of_before_and_after),
        cmocka_unit_test(any_other_bit_gives_another_sum),
        cmocka_unit_test(values_that_change_places_give_another_sum),
        cmocka_unit_test(changes_of_all_values_give_another_sum),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
