/* Tests of the values of options: what is taken, what is refused with which words, and that what is
 * written reads back. */
#include "common/options/options.h"
#include "tests/support/common/sample_options.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <locale.h>
#include <string.h>

static enum status set(struct sample *sample, const char *name, const char *value, char *ret_error)
{
    struct option_program program = sample_program(sample);
    ret_error[0] = '\0';
    return options_set_text(program.sets, program.set_count, name, value, ret_error,
                            OPTION_ERROR_BYTES);
}

static void refuse(const char *name, const char *value, const char *text)
{
    struct sample sample, untouched;
    char error[OPTION_ERROR_BYTES];
    assert_int_equal(set(&sample, name, value, error), STATUS_INVALID);
    if (strstr(error, text) == NULL) {
        fail_msg("\"%s\" is not in: %s", text, error);
    }
    sample_program(&untouched);
    assert_memory_equal(&sample, &untouched, sizeof(sample));
}

static void take(const char *name, const char *value, const char *reads)
{
    struct sample sample;
    char error[OPTION_ERROR_BYTES], text[OPTION_VALUE_BYTES];
    if (set(&sample, name, value, error) != STATUS_OK) {
        fail_msg("%s = %s was refused: %s", name, value, error);
    }
    struct sample other;
    struct option_program program = sample_program(&other);
    for (size_t s = 0; s < program.set_count; s++) {
        for (size_t i = 0; i < program.sets[s].count; i++) {
            if (strcmp(program.sets[s].rows[i].name, name) == 0) {
                option_format(&program.sets[s].rows[i], &sample, text, sizeof(text));
                assert_string_equal(text, reads);
            }
        }
    }
    // What was written reads back to the same value.
    assert_int_equal(set(&other, name, text, error), STATUS_OK);
    assert_memory_equal(&sample, &other, sizeof(sample));
}

static void defaults_are_set(void **state)
{
    (void)state;
    struct sample sample;
    sample_program(&sample);
    assert_false(sample.is_loud);
    assert_int_equal(sample.workers, 2);
    assert_true(sample.rate >= 0.5 && sample.rate <= 0.5);
    assert_string_equal(sample.name, "");
    assert_int_equal(sample.color, SAMPLE_RED);
    assert_string_equal(sample.even, "ab");
}

static void a_default_covers_what_was_there(void **state)
{
    (void)state;
    struct sample sample, fresh;
    struct option_program program = sample_program(&sample);
    memset(sample.name, 'x', sizeof(sample.name));
    sample.color = SAMPLE_BLUISH;
    options_reset(&program.sets[0]);
    sample_program(&fresh);
    assert_memory_equal(&sample, &fresh, sizeof(sample));
}

static void whole_numbers_are_taken_within_their_range(void **state)
{
    (void)state;
    take("workers", "1", "1");
    take("workers", "4096", "4096");
    take("workers", "007", "7");
    take("total-steps", "9007199254740992", "9007199254740992");
}

static void other_whole_numbers_are_refused_with_the_range(void **state)
{
    (void)state;
    static const char *const values[] = {"0",    "4097", "4294967298", "99999999999999999999",
                                         "-1",   "+1",   "",           " 1",
                                         "1 ",   "1.5",  "1e3",        "0x10",
                                         "four", "4x",   "4,5"};
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        refuse("workers", values[i], "but must be a whole number from 1 to 4096");
        refuse("workers", values[i], values[i]);
    }
}

static void a_limit_that_a_double_cannot_tell_from_its_neighbour_holds(void **state)
{
    (void)state;
    refuse("total-steps", "9007199254740993", "from 0 to 9007199254740992");
    refuse("total-steps", "18446744073709551616", "from 0 to 9007199254740992");
}

static void real_numbers_are_plain_decimals(void **state)
{
    (void)state;
    take("rate", "0.1", "0.1");
    take("rate", ".5", "0.5");
    take("rate", "1e-3", "0.001");
    take("rate", "2", "2");
    take("rate", "+0.25", "0.25");
    take("rate", "-0", "0");
    take("rate", "0.1234567890123456789", "0.12345678901234568");
    take("rate", "1000000", "1000000");
}

static void other_real_numbers_are_refused_with_the_range(void **state)
{
    (void)state;
    static const char *const values[] = {"nan",  "inf",   "infinity",  "1e999", "0x1p3", "",
                                         "-0.1", "1.2.3", "1e",        "e5",    ".",     "1 ",
                                         "1,5",  "1f",    "1000000.1", "--1",   "1e6x",  "1e-400"};
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        refuse("rate", values[i], "but must be a number from 0 to 1000000");
    }
}

static void numbers_do_not_depend_on_the_locale(void **state)
{
    (void)state;
    if (setlocale(LC_ALL, "de_DE.UTF-8") == NULL && setlocale(LC_ALL, "fr_FR.UTF-8") == NULL) {
        print_message("there is no locale with a decimal comma on this machine\n");
        skip();
    }
    take("rate", "0.25", "0.25");
    refuse("rate", "0,25", "but must be a number");
    setlocale(LC_ALL, "C");
}

static void flags_are_true_or_false(void **state)
{
    (void)state;
    take("loud", "true", "true");
    take("loud", "1", "true");
    take("loud", "yes", "true");
    take("loud", "on", "true");
    take("loud", "false", "false");
    take("loud", "0", "false");
    take("loud", "no", "false");
    take("loud", "off", "false");
    refuse("loud", "maybe", "loud is 'maybe', but must be true or false");
    refuse("loud", "", "but must be true or false");
}

static void an_unknown_choice_is_refused_with_the_nearest_and_the_list(void **state)
{
    (void)state;
    take("color", "blue", "blue");
    refuse(
        "color", "bleu",
        "there is no color 'bleu'; did you mean blue? (one of red, green, blue, bluish-or-green)");
    refuse("color", "violet",
           "there is no color 'violet' (one of red, green, blue, bluish-or-green)");
    refuse("color", "", "there is no color ''");
}

static void a_text_that_is_too_long_is_refused_not_cut(void **state)
{
    (void)state;
    take("name", "1234567", "1234567");
    refuse("name", "12345678", "name is longer than 7 characters");
}

static void a_text_is_one_line_of_utf8(void **state)
{
    (void)state;
    static const char *const refused[] = {"a\nb",
                                          "a\rb",
                                          "\t",
                                          "\x7f",
                                          "\x1b[m",
                                          "\xff",
                                          "\x80",
                                          "\xc3",
                                          "\xc3(",
                                          "\xe2\x82",
                                          "\xc0\xaf",
                                          "\xe0\x80\xaf",
                                          "\xed\xa0\x80",
                                          "\xc2\x9b",
                                          "\xf8\x88\x80\x80",
                                          "\xf4\x90\x80\x80",
                                          "\xf0\x80\x80\xaf"};
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        refuse("name", refused[i],
               "the value of name contains a line break, another control character");
    }
    take("name", "\xc3\xa4 \xe2\x82\xac", "\xc3\xa4 \xe2\x82\xac");
    take("name", "\xf0\x9f\xa5\x8a", "\xf0\x9f\xa5\x8a");
    take("name", "a=b ;#", "a=b ;#");
}

static void a_text_with_a_check_of_its_own_is_refused_with_its_words(void **state)
{
    (void)state;
    take("even", "abcd", "abcd");
    refuse("even", "abc", "even is 'abc': it has an odd number of characters");
}

static void a_shorter_text_leaves_nothing_of_the_longer_one(void **state)
{
    (void)state;
    struct sample sample;
    char error[OPTION_ERROR_BYTES];
    struct option_program program = sample_program(&sample);
    assert_int_equal(options_set_text(program.sets, 2, "name", "longer", error, sizeof(error)),
                     STATUS_OK);
    assert_int_equal(options_set_text(program.sets, 2, "name", "a", error, sizeof(error)),
                     STATUS_OK);
    assert_memory_equal(sample.name, "a\0\0\0\0\0\0", 8);
}

static void an_unknown_name_is_refused_with_the_nearest(void **state)
{
    (void)state;
    refuse("wrokers", "1", "unknown option 'wrokers'; did you mean workers?");
    refuse("prot", "1", "unknown option 'prot'; did you mean port?");
    refuse("xyzzy", "1", "unknown option 'xyzzy'; --help lists them all");
    refuse("", "1", "unknown option ''");
}

static void a_short_error_buffer_is_not_exceeded(void **state)
{
    (void)state;
    for (size_t size = 1; size < 64; size++) {
        struct sample sample;
        char error[64];
        struct option_program program = sample_program(&sample);
        memset(error, 'x', sizeof(error));
        assert_int_equal(options_set_text(program.sets, 2, "color", "gren", error, size),
                         STATUS_INVALID);
        assert_non_null(memchr(error, '\0', size));
        assert_int_equal(error[size], 'x');
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_are_set),
        cmocka_unit_test(a_default_covers_what_was_there),
        cmocka_unit_test(whole_numbers_are_taken_within_their_range),
        cmocka_unit_test(other_whole_numbers_are_refused_with_the_range),
        cmocka_unit_test(a_limit_that_a_double_cannot_tell_from_its_neighbour_holds),
        cmocka_unit_test(real_numbers_are_plain_decimals),
        cmocka_unit_test(other_real_numbers_are_refused_with_the_range),
        cmocka_unit_test(numbers_do_not_depend_on_the_locale),
        cmocka_unit_test(flags_are_true_or_false),
        cmocka_unit_test(an_unknown_choice_is_refused_with_the_nearest_and_the_list),
        cmocka_unit_test(a_text_that_is_too_long_is_refused_not_cut),
        cmocka_unit_test(a_text_is_one_line_of_utf8),
        cmocka_unit_test(a_text_with_a_check_of_its_own_is_refused_with_its_words),
        cmocka_unit_test(a_shorter_text_leaves_nothing_of_the_longer_one),
        cmocka_unit_test(an_unknown_name_is_refused_with_the_nearest),
        cmocka_unit_test(a_short_error_buffer_is_not_exceeded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
