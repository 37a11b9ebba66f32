/* Tests of the rows of a job's options. */
#include "common/job/job_options.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <string.h>

static void every_row_has_what_help_shows(void **state)
{
    (void)state;
    for (size_t i = 0; i < job_option_count; i++) {
        const struct option *row = &job_options[i];
        assert_true(strlen(row->help) > 0 && row->fallback != NULL);
        bool is_number =
            row->type == OPTION_U32 || row->type == OPTION_U64 || row->type == OPTION_REAL;
        assert_true(!is_number || row->max > row->min);
        bool may_have_word = (row->type == OPTION_REAL || row->type == OPTION_U32) && row->min > 0;
        bool is_offered = row->type == OPTION_TEXT && row->is_valid != NULL;
        bool is_chosen = row->type == OPTION_CHOICE || row->type == OPTION_NAME;
        assert_true(row->choices != NULL ? is_chosen || may_have_word || is_offered : !is_chosen);
        assert_true(is_chosen || row->type == OPTION_FLAG || row->metavar != NULL);
        for (size_t j = 0; j < i; j++) {
            assert_string_not_equal(row->name, job_options[j].name);
            assert_true(row->letter == 0 || row->letter != job_options[j].letter);
            assert_true(row->offset != job_options[j].offset);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_has_what_help_shows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
