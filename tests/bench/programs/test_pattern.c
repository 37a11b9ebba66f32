/* Tests of gradients whose sums are exact, and of what a check of them finds. */
#include "bench/programs/pattern.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on

#define COUNT (3 * PATTERN_PERIOD + 5)

static void a_filled_vector_is_the_sum_of_one(void **state)
{
    (void)state;
    float values[COUNT], sum[PATTERN_PERIOD];
    pattern_fill(values, COUNT, pattern_shift(0, 4));
    pattern_sum(1, 4, 1, sum);
    assert_int_equal(pattern_find_wrong(values, COUNT, sum), COUNT);
    assert_int_equal(pattern_find_wrong_probe(values, COUNT, sum), COUNT);
}

static void a_sum_over_ranks_is_that_of_their_elements(void **state)
{
    (void)state;
    float sum[PATTERN_PERIOD];
    pattern_sum(3, 2, 0.5f, sum);
    for (uint64_t i = 0; i < PATTERN_PERIOD; i++) {
        float expected = 0;
        for (uint32_t rank = 3; rank-- > 0;) {
            expected += pattern_at(pattern_shift(rank, 2), i);
        }
        assert_true(sum[i] >= expected / 2 && sum[i] <= expected / 2);
    }
}

static void ranks_and_rounds_differ(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < PATTERN_PERIOD; i++) {
        assert_int_not_equal((int)pattern_at(pattern_shift(0, 1), i),
                             (int)pattern_at(pattern_shift(1, 1), i));
        assert_int_not_equal((int)pattern_at(pattern_shift(0, 1), i),
                             (int)pattern_at(pattern_shift(0, 2), i));
    }
}

static void each_element_that_is_wrong_is_found(void **state)
{
    (void)state;
    float values[COUNT], sum[PATTERN_PERIOD];
    pattern_sum(1, 0, 1, sum);
    for (uint64_t i = 0; i < COUNT; i++) {
        pattern_fill(values, COUNT, pattern_shift(0, 0));
        values[i] += 0x1p-10f;
        assert_int_equal(pattern_find_wrong(values, COUNT, sum), i);
    }
}

static void probes_are_renewed_and_looked_at_alone(void **state)
{
    (void)state;
    float values[COUNT], sum[PATTERN_PERIOD];
    pattern_sum(1, 1, 1, sum);
    pattern_fill(values, COUNT, pattern_shift(0, 0));
    assert_int_equal(pattern_find_wrong_probe(values, COUNT, sum), 0);
    pattern_fill_probes(values, COUNT, pattern_shift(0, 1));
    assert_int_equal(pattern_find_wrong_probe(values, COUNT, sum), COUNT);
    values[COUNT - 1] = 0;
    assert_int_equal(pattern_find_wrong_probe(values, COUNT, sum), COUNT - 1);
}

static void a_single_element_is_enough(void **state)
{
    (void)state;
    float value, sum[PATTERN_PERIOD];
    pattern_sum(1, 0, 1, sum);
    pattern_fill_probes(&value, 1, pattern_shift(0, 0));
    assert_int_equal(pattern_find_wrong(&value, 1, sum), 1);
    assert_int_equal(pattern_find_wrong_probe(&value, 1, sum), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_filled_vector_is_the_sum_of_one),
        cmocka_unit_test(a_sum_over_ranks_is_that_of_their_elements),
        cmocka_unit_test(ranks_and_rounds_differ),
        cmocka_unit_test(each_element_that_is_wrong_is_found),
        cmocka_unit_test(probes_are_renewed_and_looked_at_alone),
        cmocka_unit_test(a_single_element_is_enough),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
