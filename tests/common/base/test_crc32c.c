/* Tests of CRC-32C by values that others have published. */
#include "common/base/crc32c.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <string.h>

static void the_check_value_of_the_catalogue_is_found(void **state)
{
    (void)state;
    assert_int_equal(crc32c("123456789", 9), 0xE3069283);
}

/* RFC 3720, appendix B.4. */
static void the_examples_of_iscsi_are_found(void **state)
{
    unsigned char bytes[32];
    (void)state;
    memset(bytes, 0, sizeof(bytes));
    assert_int_equal(crc32c(bytes, sizeof(bytes)), 0x8A9136AA);
    memset(bytes, 0xFF, sizeof(bytes));
    assert_int_equal(crc32c(bytes, sizeof(bytes)), 0x62A8AB43);
    for (size_t i = 0; i < sizeof(bytes); i++) {
        bytes[i] = (unsigned char)i;
    }
    assert_int_equal(crc32c(bytes, sizeof(bytes)), 0x46DD794E);
    assert_int_equal(crc32c(bytes, 0), 0);
}

/* Around the size from which tables are used, against the definition. */
static void long_and_short_texts_have_one_sum(void **state)
{
    static unsigned char bytes[5003];
    (void)state;
    for (size_t i = 0; i < sizeof(bytes); i++) {
        bytes[i] = (unsigned char)(i * i + 7 * i);
    }
    for (size_t size = 4090; size < 4106; size++) {
        uint32_t rest = UINT32_MAX;
        for (size_t i = 0; i < 8 * size; i++) {
            uint32_t bit = bytes[i / 8] >> i % 8 & 1;
            rest = rest >> 1 ^ (((rest ^ bit) & 1) != 0 ? UINT32_C(0x82F63B78) : 0);
        }
        assert_int_equal(crc32c(bytes, size), ~rest);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_check_value_of_the_catalogue_is_found),
        cmocka_unit_test(the_examples_of_iscsi_are_found),
        cmocka_unit_test(long_and_short_texts_have_one_sum),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
