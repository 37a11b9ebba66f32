/* Tests of reading digits. */
#include "common/base/number.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <math.h>
#include <string.h>

static void whole_numbers_are_digits_up_to_a_limit(void **state)
{
    (void)state;
    static const char *const refused[] = {"",
                                          "-1",
                                          "+1",
                                          " 1",
                                          "1 ",
                                          "x",
                                          "1.0",
                                          "101",
                                          "18446744073709551616",
                                          "99999999999999999999999"};
    uint64_t value = 7;
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        assert_false(number_whole(refused[i], strlen(refused[i]), 100, &value));
        assert_int_equal(value, 7);
    }
    assert_true(number_whole("100", 3, 100, &value));
    assert_int_equal(value, 100);
    assert_true(number_whole("0123;", 3, 100, &value)); // so many characters, and no more
    assert_int_equal(value, 12);
    assert_true(number_whole("18446744073709551615", 20, UINT64_MAX, &value));
    assert_true(value == UINT64_MAX);
    assert_false(number_whole("18446744073709551616", 20, UINT64_MAX, &value));
}

static void decimals_end_where_they_are_no_number_any_more(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t size;
        double value;
    } cases[] = {{"0.25,x", 4, 0.25}, {"20ms", 2, 20},   {"1.", 2, 1},
                 {".5", 2, 0.5},      {"1.2.3", 3, 1.2}, {"1e5", 1, 1},
                 {"", 0, 0},          {".", 0, 0},       {"-1", 0, 0}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        double value = 7;
        assert_int_equal(number_decimal(cases[i].text, &value), cases[i].size);
        assert_true(cases[i].size == 0 || fabs(value - cases[i].value) < 1e-12);
    }
}

static void sizes_have_the_unit_that_leaves_something_to_read(void **state)
{
    (void)state;
    static const struct {
        uint64_t bytes;
        const char *text;
    } cases[] = {
        {0, "0 bytes"},
        {1, "1 byte"},
        {1023, "1023 bytes"},
        {1024, "1 KiB"},
        {250 << 10, "250 KiB"},
        {(1 << 20) - 1, "1.0 MiB"},
        {5033165, "4.8 MiB"},
        {10 << 20, "10 MiB"},
        {212 << 20, "212 MiB"},
        {UINT64_C(1536) << 20, "1.5 GiB"},
        {UINT64_MAX, "16777216 TiB"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[NUMBER_SIZE_BYTES];
        number_describe_size(cases[i].bytes, text);
        assert_string_equal(text, cases[i].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_numbers_are_digits_up_to_a_limit),
        cmocka_unit_test(decimals_end_where_they_are_no_number_any_more),
        cmocka_unit_test(sizes_have_the_unit_that_leaves_something_to_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
