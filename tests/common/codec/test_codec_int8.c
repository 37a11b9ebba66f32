/* Tests of the encoding in blocks of bytes with a scale. */
#include "tests/support/common/encoded.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <float.h>
#include <math.h>

static void int8_keeps_multiples_of_its_scale_and_rounds_the_rest(void **state)
{
    (void)state;
    float values[256] = {127, 0.5F, 1.5F, 2.5F, -0.5F, -1.5F, 3.25F, -126.75F}, back[257];
    const float wanted[] = {127, 0, 2, 2, 0, -2, 3, -127};
    encoded_pass("int8", values, 8, back);
    assert_memory_equal(back, wanted, sizeof(wanted));
    for (int i = 0; i < 255; i++) {
        values[i] = ldexpf((float)(i - 127), -20);
    }
    values[255] = 0;
    encoded_pass("int8", values, 256, back);
    assert_memory_equal(back, values, sizeof(values));
}

static void int8_is_off_by_half_a_scale_at_most_in_each_block(void **state)
{
    (void)state;
    static float values[ENCODED_COUNT_MAX], back[ENCODED_COUNT_MAX + 1];
    encoded_fill(values, ENCODED_COUNT_MAX, 1);
    for (size_t i = 0; i < ENCODED_COUNT_MAX; i++) {
        values[i] = ldexpf(values[i], (int)(i / 256)); // so that blocks have scales of their own
    }
    encoded_pass("int8", values, ENCODED_COUNT_MAX, back);
    for (size_t start = 0; start < ENCODED_COUNT_MAX; start += 256) {
        float largest = 0;
        size_t end = start + 256 < ENCODED_COUNT_MAX ? start + 256 : ENCODED_COUNT_MAX;
        for (size_t i = start; i < end; i++) {
            largest = fmaxf(largest, fabsf(values[i]));
        }
        for (size_t i = start; i < end; i++) {
            assert_true(fabsf(back[i] - values[i]) <= largest / 127 * 0.50001F);
        }
    }
}

static void a_block_without_a_scale_is_zero_and_a_broken_one_is_nan(void **state)
{
    (void)state;
    static float values[1280], back[1281];
    values[0] = FLT_TRUE_MIN;
    values[1] = -1e-37F;
    values[256] = 1;
    values[300] = INFINITY;
    values[512] = FLT_MAX;
    values[513] = -FLT_MAX;
    values[800] = 3e-36F;
    values[1100] = 1.4e-36F;
    encoded_pass("int8", values, 1280, back);
    for (size_t i = 0; i < 1280; i++) {
        assert_true((i >= 256 && i < 512) ? isnan(back[i])
                                          : fabsf(back[i] - values[i]) <= 1e-6F * FLT_MAX);
    }
    assert_true(back[0] == 0 && back[1] == 0 && back[1100] == 0 && back[513] == -back[512]);
    assert_true(back[800] > 2.99e-36F && back[800] < 3.01e-36F);
}

static void zeros_of_either_sign_are_encoded_as_zero_bytes(void **state)
{
    (void)state;
    static struct encoded encoded;
    static const uint8_t zeros[300 + 2 * sizeof(float)];
    static float values[300];
    values[7] = -0.0F;
    values[299] = -0.0F;
    struct codec codec = encoded_codec("int8");
    encoded_encode(&codec, values, 300, &encoded);
    assert_int_equal(encoded.size, sizeof(zeros));
    assert_memory_equal(encoded_bytes(&encoded), zeros, sizeof(zeros));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(int8_keeps_multiples_of_its_scale_and_rounds_the_rest),
        cmocka_unit_test(int8_is_off_by_half_a_scale_at_most_in_each_block),
        cmocka_unit_test(a_block_without_a_scale_is_zero_and_a_broken_one_is_nan),
        cmocka_unit_test(zeros_of_either_sign_are_encoded_as_zero_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
