/* Tests of what is shown of other hosts' text. */
#include "common/base/printable.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdbool.h>
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

static void what_is_no_utf8_becomes_question_marks(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"plain \xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80",
         "plain \xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"},
        {"a\xff"
         "b",
         "a?b"},
        {"cut \xe2\x82", "cut ??"},
        {"long \xc0\xaf", "long ??"},          // an overlong slash
        {"half \xed\xa0\x80", "half ???"},     // a surrogate
        {"far \xf4\x90\x80\x80", "far ????"},  // beyond the last character
        {"\001\t\n\x7f \xc2\x80", "?\t?? ??"}, // controls
        {"", ""},
    };
    assert_false(printable_is_utf8("\xe2\x82\xac", 2)); // the end cuts it
    assert_false(printable_is_utf8("a\0b", 3));
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[64];
        memcpy(text, cases[i][0], strlen(cases[i][0]) + 1);
        printable_make_utf8(text);
        assert_string_equal(text, cases[i][1]);
        bool is_sound = strcmp(cases[i][0], cases[i][1]) == 0;
        assert_int_equal(printable_is_utf8(cases[i][0], strlen(cases[i][0])), is_sound);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(control_characters_become_question_marks),
        cmocka_unit_test(what_is_no_utf8_becomes_question_marks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
