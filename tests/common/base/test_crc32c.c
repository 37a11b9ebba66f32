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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_check_value_of_the_catalogue_is_found),
        cmocka_unit_test(the_examples_of_iscsi_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
