/* Tests of words of a command: a shell reads back what was given. */
#include "common/base/shell_word.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdio.h>
#include <string.h>

static void plain_arguments_stay_bare(void **state)
{
    (void)state;
    static const char *const arguments[] = {"--lr",       "0.01",         "--modes", "ps-sync,ring",
                                            "--out=a/b_", "cifar10:/d/x", "-n"};
    for (size_t i = 0; i < sizeof(arguments) / sizeof(arguments[0]); i++) {
        char quoted[64];
        shell_word_quote(arguments[i], quoted, sizeof(quoted));
        assert_string_equal(quoted, arguments[i]);
    }
}

/* The oracle is a shell. */
static void a_shell_reads_every_argument_as_it_was(void **state)
{
    (void)state;
    static const char *const arguments[] = {
        "",      "it's", "'",          "a b", "#x",  "[a]", "~",   "~root", "!x", "$HOME", "`id`",
        "\"q\"", "a\\",  "two\nlines", "*",   "a;b", "a|b", "<x>", "{a,b}", "?",  "&",     "(x)"};
    for (size_t i = 0; i < sizeof(arguments) / sizeof(arguments[0]); i++) {
        char quoted[64], script[128], output[64];
        shell_word_quote(arguments[i], quoted, sizeof(quoted));
        snprintf(script, sizeof(script), "printf '%%s|' %s", quoted);
        FILE *shell = popen(script, "r");
        assert_non_null(shell);
        output[fread(output, 1, sizeof(output) - 1, shell)] = '\0';
        assert_int_equal(pclose(shell), 0);
        assert_int_equal(strlen(output), strlen(arguments[i]) + 1);
        assert_memory_equal(output, arguments[i], strlen(arguments[i]));
    }
}

static void a_long_argument_is_cut_and_its_quotes_are_closed(void **state)
{
    (void)state;
    for (size_t size = 8; size < 40; size++) {
        char quoted[64];
        memset(quoted, '#', sizeof(quoted));
        shell_word_quote("''", quoted, size);
        size_t length = strlen(quoted);
        assert_in_range(length, 2, size - 1);
        assert_int_equal(quoted[length - 1], '\'');
        assert_int_equal(quoted[size], '#');
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_arguments_stay_bare),
        cmocka_unit_test(a_shell_reads_every_argument_as_it_was),
        cmocka_unit_test(a_long_argument_is_cut_and_its_quotes_are_closed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
