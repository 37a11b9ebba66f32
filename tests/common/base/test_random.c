/* Tests of seeded randomness, against known values of splitmix64 and against what is likely. */
#include "common/base/random.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <math.h>

#define DRAWS 65536

static void a_sequence_is_splitmix64(void **state)
{
    (void)state;
    // The published outputs of the generator with seed 0.
    struct random_sequence sequence = {0};
    assert_true(random_next(&sequence) == UINT64_C(0xE220A8397B1DCDAF));
    assert_true(random_next(&sequence) == UINT64_C(0x6E789E6AA1B965F4));
    assert_true(random_next(&sequence) == UINT64_C(0x06C45D188009454F));
}

static void keys_depend_on_each_of_their_parts(void **state)
{
    (void)state;
    uint64_t key = random_key(1, RANDOM_DROPOUT, 2, 3);
    assert_true(key == random_key(1, RANDOM_DROPOUT, 2, 3));
    assert_true(key != random_key(2, RANDOM_DROPOUT, 2, 3));
    assert_true(key != random_key(1, RANDOM_SHUFFLE, 2, 3));
    assert_true(key != random_key(1, RANDOM_DROPOUT, 3, 3));
    assert_true(key != random_key(1, RANDOM_DROPOUT, 2, 4));
    assert_true(key != random_key(1, RANDOM_DROPOUT, 3, 2));
}

/* The mean of n uniform numbers is 1/2 with a standard deviation of 1 / sqrt(12 n). */
static void check_mean(double sum, double count)
{
    double deviations = fabs(sum / count - 0.5) * sqrt(12 * count);
    if (!(deviations < 5)) {
        fail_msg("the mean of %g draws is %g: off by %g standard deviations", count, sum / count,
                 deviations);
    }
}

static void elements_of_a_key_are_uniform(void **state)
{
    (void)state;
    double sum = 0, product = 0;
    float before = 0.5F;
    for (uint32_t i = 0; i < DRAWS; i++) {
        float value = random_unit_float(random_element(random_key(1, RANDOM_DROPOUT, 0, 7), i));
        sum += (double)value;
        product += ((double)value - 0.5) * ((double)before - 0.5);
        before = value;
    }
    check_mean(sum, DRAWS);
    // Neighbours are not correlated: each product has variance 1/144.
    assert_true(fabs(product) * 12 / sqrt(DRAWS) < 5);
}

static void the_first_elements_of_neighbouring_keys_are_uniform(void **state)
{
    (void)state;
    double sum = 0;
    for (uint32_t sample = 0; sample < DRAWS; sample++) {
        uint64_t key = random_key(1, RANDOM_DROPOUT, 0, sample);
        sum += (double)random_unit_float(random_element(key, 0));
    }
    check_mean(sum, DRAWS);
}

static void every_bit_of_an_element_is_set_half_of_the_time(void **state)
{
    (void)state;
    uint32_t counts[32] = {0};
    for (uint32_t i = 0; i < DRAWS; i++) {
        uint32_t bits = random_element(random_key(3, RANDOM_PARAMS, 1, 2), i);
        for (unsigned bit = 0; bit < 32; bit++) {
            counts[bit] += bits >> bit & 1;
        }
    }
    for (unsigned bit = 0; bit < 32; bit++) {
        // The standard deviation is sqrt(65536) / 2 = 128.
        assert_in_range(counts[bit], DRAWS / 2 - 5 * 128, DRAWS / 2 + 5 * 128);
    }
}

static void unit_floats_are_in_the_half_open_interval(void **state)
{
    (void)state;
    assert_true(random_unit_float(0) >= 0 && random_unit_float(0) <= 0);
    assert_true(random_unit_float(UINT32_MAX) < 1);
    assert_true(random_unit_float(UINT32_MAX) >= 1 - 0x1p-24F);
}

static void numbers_below_a_bound_come_equally_often(void **state)
{
    (void)state;
    struct random_sequence sequence = {42};
    uint32_t counts[10] = {0};
    for (uint32_t i = 0; i < 100000; i++) {
        uint64_t value = random_below(&sequence, 10);
        assert_true(value < 10);
        counts[value]++;
    }
    for (unsigned i = 0; i < 10; i++) {
        // Expected 10000, standard deviation sqrt(100000 * 0.1 * 0.9) = 95.
        assert_in_range(counts[i], 10000 - 5 * 95, 10000 + 5 * 95);
    }
    assert_true(random_below(&sequence, 1) == 0);
    assert_true(random_below(&sequence, UINT64_MAX) < UINT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sequence_is_splitmix64),
        cmocka_unit_test(keys_depend_on_each_of_their_parts),
        cmocka_unit_test(elements_of_a_key_are_uniform),
        cmocka_unit_test(the_first_elements_of_neighbouring_keys_are_uniform),
        cmocka_unit_test(every_bit_of_an_element_is_set_half_of_the_time),
        cmocka_unit_test(unit_floats_are_in_the_half_open_interval),
        cmocka_unit_test(numbers_below_a_bound_come_equally_often),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
