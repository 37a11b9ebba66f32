/* Tests of the encodings in 16 bits: all patterns, and all neighbours. */
#include "tests/support/common/encoded.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <float.h>
#include <math.h>
#include <string.h>

static float half_by_definition(uint32_t half)
{
    int exponent = (int)(half >> 10 & 31);
    double fraction = (half & 1023) / 1024.0;
    double value = exponent == 0 ? ldexp(fraction, -14) : ldexp(1 + fraction, exponent - 15);
    if (exponent == 31) {
        value = fraction == 0 ? HUGE_VAL : (double)NAN;
    }
    return (float)(half & 0x8000 ? -value : value);
}

/* What a pattern of 16 bits stands for, and what that is encoded as. */
static void check_pattern(const char *text, uint32_t pattern, float wanted, uint32_t quiet_bit)
{
    static struct encoded encoded;
    struct codec codec = encoded_codec(text);
    float value[2];
    uint8_t *bytes = encoded_prepare(&encoded, sizeof(uint16_t));
    memcpy(bytes, &(uint16_t){(uint16_t)pattern}, sizeof(uint16_t));
    encoded_decode(&codec, &encoded, 1, value);
    uint16_t back;
    encoded_encode(&codec, value, 1, &encoded);
    memcpy(&back, encoded_bytes(&encoded), sizeof(back));
    if (isnan(wanted)) {
        assert_true(isnan(value[0]));
        assert_int_equal(back, pattern | quiet_bit);
    } else {
        assert_int_equal(encoded_bits(value[0]), encoded_bits(wanted));
        assert_int_equal(back, pattern);
    }
}

static void every_pattern_of_16_bits_has_its_value_and_comes_back(void **state)
{
    (void)state;
    for (uint32_t pattern = 0; pattern <= 0xFFFF; pattern++) {
        check_pattern("fp16", pattern, half_by_definition(pattern), 0x200);
        float brain;
        memcpy(&brain, &(uint32_t){pattern << 16}, sizeof(brain));
        check_pattern("bf16", pattern, brain, 0x40);
    }
}

/* `low` and `high` are neighbours in the encoding, and `even` is the one of them whose last place
 * is 0. */
static void check_rounding(const char *text, float low, float high, float even)
{
    float middle = low + (high - low) / 2;
    assert_true(encoded_passed(text, middle) == even && encoded_passed(text, -middle) == -even);
    assert_true(encoded_passed(text, nextafterf(middle, low)) == low);
    assert_true(encoded_passed(text, nextafterf(middle, high)) == high);
}

static void sixteen_bits_are_rounded_to_the_nearest_and_ties_to_even(void **state)
{
    (void)state;
    for (uint32_t half = 0; half < 0x7BFF; half++) {
        float low = half_by_definition(half), high = half_by_definition(half + 1);
        check_rounding("fp16", low, high, half % 2 == 0 ? low : high);
    }
    for (uint32_t brain = 0; brain < 0x7F7F; brain++) {
        float low, high;
        memcpy(&low, &(uint32_t){brain << 16}, sizeof(low));
        memcpy(&high, &(uint32_t){(brain + 1) << 16}, sizeof(high));
        check_rounding("bf16", low, high, brain % 2 == 0 ? low : high);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pattern_of_16_bits_has_its_value_and_comes_back),
        cmocka_unit_test(sixteen_bits_are_rounded_to_the_nearest_and_ties_to_even),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
