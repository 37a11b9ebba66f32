/* Tests of the texts of the status codes. */
#include "common/base/status.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on

static void every_status_has_a_text_of_its_own(void **state)
{
    (void)state;
    for (unsigned i = 0; i < STATUS_COUNT; i++) {
        assert_non_null(status_text((enum status)i));
        for (unsigned j = 0; j < i; j++) {
            assert_string_not_equal(status_text((enum status)i), status_text((enum status)j));
        }
    }
}

static void a_number_that_is_no_status_has_a_text_too(void **state)
{
    (void)state;
    assert_string_equal(status_text(STATUS_COUNT), "unknown status");
}

static void ok_is_zero(void **state)
{
    (void)state;
    assert_int_equal(STATUS_OK, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_status_has_a_text_of_its_own),
        cmocka_unit_test(a_number_that_is_no_status_has_a_text_too),
        cmocka_unit_test(ok_is_zero),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
