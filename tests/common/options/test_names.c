/* Tests of the lists of names: what --help, checks and the job's text expect of them. */
#include "common/job/job.h"
#include "common/optimizer/optimizer.h"
#include "common/options/names.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <string.h>

static const struct option_choice *const lists[] = {names_models, names_datasets, names_optimizers};
static const size_t list_count = sizeof(lists) / sizeof(lists[0]);

static void every_name_has_a_summary(void **state)
{
    (void)state;
    for (size_t list = 0; list < list_count; list++) {
        assert_non_null(lists[list][0].name);
        for (size_t i = 0; lists[list][i].name != NULL; i++) {
            assert_true(strlen(lists[list][i].summary) > 0);
        }
    }
}

static void names_are_words_that_fit_a_job(void **state)
{
    (void)state;
    for (size_t list = 0; list < list_count; list++) {
        for (size_t i = 0; lists[list][i].name != NULL; i++) {
            const char *name = lists[list][i].name;
            assert_in_range(strlen(name), 1, JOB_NAME_BYTES - 1);
            assert_int_equal(strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-"), strlen(name));
        }
    }
}

static void no_name_is_in_its_list_twice(void **state)
{
    (void)state;
    for (size_t list = 0; list < list_count; list++) {
        for (size_t i = 0; lists[list][i].name != NULL; i++) {
            for (size_t j = 0; j < i; j++) {
                assert_string_not_equal(lists[list][i].name, lists[list][j].name);
            }
        }
    }
}

static void every_optimizer_has_a_learning_rate(void **state)
{
    (void)state;
    for (unsigned i = 0; i < OPTIMIZER_KIND_COUNT; i++) {
        assert_true(optimizer_default_rate((enum optimizer_kind)i) > 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_name_has_a_summary),
        cmocka_unit_test(names_are_words_that_fit_a_job),
        cmocka_unit_test(no_name_is_in_its_list_twice),
        cmocka_unit_test(every_optimizer_has_a_learning_rate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
