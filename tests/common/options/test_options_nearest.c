/* Tests of the name that is offered for an unknown one. */
#include "common/options/options.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <string.h>

static const char *const names[] = {"workers",   "servers", "batch", "global-batch", "lr",
                                    "optimizer", "lenet5",  "adam",  "adamw",        "ring"};

static const char *nearest(const char *name)
{
    const char *found = options_nearest(name, names, sizeof(names) / sizeof(names[0]));
    return found != NULL ? found : "(none)";
}

static void a_letter_too_few_too_many_wrong_or_swapped_is_near(void **state)
{
    (void)state;
    assert_string_equal(nearest("worker"), "workers");
    assert_string_equal(nearest("workerss"), "workers");
    assert_string_equal(nearest("workars"), "workers");
    assert_string_equal(nearest("wrokers"), "workers");
    assert_string_equal(nearest("global_batch"), "global-batch");
    assert_string_equal(nearest("rl"), "lr");
    assert_string_equal(nearest("lenet"), "lenet5");
}

static void of_two_that_are_equally_near_the_one_of_the_same_length_is_taken(void **state)
{
    (void)state;
    assert_string_equal(nearest("adma"), "adam");
    assert_string_equal(nearest("adamv"), "adamw");
}

static void a_name_that_begins_or_continues_a_known_one_is_near(void **state)
{
    (void)state;
    assert_string_equal(nearest("optim"), "optimizer");
    assert_string_equal(nearest("batch-size"), "batch");
}

static void nothing_is_near_to_what_is_another_word(void **state)
{
    (void)state;
    assert_string_equal(nearest("foo"), "(none)");
    assert_string_equal(nearest("xy"), "(none)");
    assert_string_equal(nearest("x"), "(none)");
    assert_string_equal(nearest(""), "(none)");
    assert_string_equal(nearest("checkpoint"), "(none)");
}

static void a_name_of_any_length_is_looked_at(void **state)
{
    (void)state;
    static char name[100000];
    memset(name, 'w', sizeof(name) - 1);
    assert_string_equal(nearest(name), "(none)");
    name[64] = '\0';
    assert_string_equal(nearest(name), "(none)");
}

static void without_names_there_is_none(void **state)
{
    (void)state;
    assert_null(options_nearest("workers", names, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_letter_too_few_too_many_wrong_or_swapped_is_near),
        cmocka_unit_test(of_two_that_are_equally_near_the_one_of_the_same_length_is_taken),
        cmocka_unit_test(a_name_that_begins_or_continues_a_known_one_is_near),
        cmocka_unit_test(nothing_is_near_to_what_is_another_word),
        cmocka_unit_test(a_name_of_any_length_is_looked_at),
        cmocka_unit_test(without_names_there_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
