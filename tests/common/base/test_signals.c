/* Tests of the exit codes of programs. */
#include "common/base/signals.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on

static void a_member_says_that_something_was_lost(void **state)
{
    (void)state;
    assert_int_equal(exit_code_of_member(STATUS_UNREACHABLE), 75);
    assert_int_equal(exit_code_of_member(STATUS_TIMED_OUT), 75);
    assert_int_equal(exit_code(STATUS_UNREACHABLE), 1); // other programs do not
}

static void what_would_happen_again_is_a_failure(void **state)
{
    (void)state;
    static const enum status failures[] = {STATUS_INVALID,    STATUS_IO,     STATUS_NO_MEMORY,
                                           STATUS_NOT_FINITE, STATUS_DENIED, STATUS_MISMATCH,
                                           STATUS_DEVICE};
    for (size_t i = 0; i < sizeof(failures) / sizeof(failures[0]); i++) {
        assert_int_equal(exit_code_of_member(failures[i]), 1);
    }
    assert_int_equal(exit_code_of_member(STATUS_OK), 0);
    assert_int_equal(exit_code_of_member(STATUS_INTERRUPTED), 130);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_member_says_that_something_was_lost),
        cmocka_unit_test(what_would_happen_again_is_a_failure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
