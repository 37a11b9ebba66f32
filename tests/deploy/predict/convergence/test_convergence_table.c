/* Tests of lines of comma-separated values. */
#include "deploy/predict/convergence/convergence_table.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <string.h>

static struct table_line headings, line;

static void test_values_are_cut_at_commas_outside_of_quotes(void **state)
{
    (void)state;
    assert_true(table_line_parse("a,\"b,\"\"c\"\"\",,d", &line));
    assert_int_equal(line.count, 4);
    assert_string_equal(line.values[1], "b,\"c\"");
    assert_string_equal(line.values[2], "");
    assert_string_equal(line.values[3], "d");
    assert_true(table_line_parse("", &line));
    assert_int_equal(line.count, 1);
    assert_true(table_line_parse("a,", &line));
    assert_int_equal(line.count, 2);
}

static void test_what_is_no_line_is_refused(void **state)
{
    (void)state;
    char many[3 * TABLE_VALUES_MAX], wide[TABLE_VALUE_BYTES + 1];
    assert_false(table_line_parse("a,\"b", &line));
    assert_false(table_line_parse("\"a\"b,c", &line));
    memset(many, ',', sizeof(many) - 1);
    many[sizeof(many) - 1] = '\0';
    assert_false(table_line_parse(many, &line));
    memset(wide, 'x', sizeof(wide) - 1);
    wide[sizeof(wide) - 1] = '\0';
    assert_false(table_line_parse(wide, &line));
    wide[TABLE_VALUE_BYTES - 1] = '\0';
    assert_true(table_line_parse(wide, &line));
}

static void test_values_are_found_by_their_heading(void **state)
{
    (void)state;
    assert_true(table_line_parse("a,b,c", &headings));
    assert_true(table_line_parse("1,2", &line));
    assert_string_equal(table_line_value(&headings, &line, "b"), "2");
    assert_string_equal(table_line_value(&headings, &line, "c"), "");
    assert_null(table_line_value(&headings, &line, "d"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values_are_cut_at_commas_outside_of_quotes),
        cmocka_unit_test(test_what_is_no_line_is_refused),
        cmocka_unit_test(test_values_are_found_by_their_heading),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
