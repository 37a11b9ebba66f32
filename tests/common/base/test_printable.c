/* Tests of what is shown of other hosts' text. */
#include "common/base/printable.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <string.h>

static void control_characters_become_question_marks(void **state)
{
    (void)state;
    char text[] = "a\033[2Jb\tc\r\nd\x7f\xc3\xa9";
    printable_make(text, sizeof(text) - 1);
    assert_string_equal(text, "a?[2Jb\tc??d?\xc3\xa9");
    char part[] = "\n\n";
    printable_make(part, 1);
    assert_string_equal(part, "?\n");
    printable_make(part, 0);
    assert_string_equal(part, "?\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(control_characters_become_question_marks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
