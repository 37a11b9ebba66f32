/* Tests of commands as text: a shell reads back what was given. */
#include "common/base/printable.h"
#include "deploy/system/command_text.h"
#include "deploy/system/process_run.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void a_command_is_its_arguments_and_a_program_has_a_name_of_its_own(void **state)
{
    (void)state;
    static char words[][6] = {"run", "--out", "a b"};
    char *argv[] = {words[0], words[1], words[2], NULL};
    const char *const program[] = {"python3", "train.py", "it's", NULL};
    char text[COMMAND_TEXT_BYTES];
    command_text_write(3, argv, text);
    assert_string_equal(text, "ringside run --out 'a b'");
    command_text_write_program(program, text);
    assert_string_equal(text, "python3 train.py 'it'\\''s'");
    static char large[2 * COMMAND_TEXT_BYTES];
    memset(large, 'x', sizeof(large) - 1);
    command_text_write_program((const char *const[]){"a", large, "b", NULL}, text);
    assert_int_equal(strlen(text), COMMAND_TEXT_BYTES - 1);
}

/* Whatever bytes it has. The oracle is a shell that has such quotes. */
static void a_line_of_plain_text_has_every_argument_as_it_was(void **state)
{
    (void)state;
    static const char *const words[] = {
        "two\nlines", "tab\there", "\x1b[2J",       "\x7f",           "\xff\xfe", "\xc3\xa4\xc3",
        "\xc2\x80",   "it's\r",    "back\\slash\n", "\xc3\xa4 plain", "",         "--x=$HOME\n0"};
    if (access("/bin/bash", X_OK) != 0) {
        skip();
    }
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        char line[256], plain[256], output[64];
        const char *const program[] = {"printf", "%s|", words[i], NULL};
        assert_true(command_text_write_line(program, line, sizeof(line)));
        snprintf(plain, sizeof(plain), "%s", line);
        printable_make_utf8(plain);
        assert_string_equal(line, plain);
        assert_null(strchr(line, '\t'));
        const char *const argv[] = {"/bin/bash", "-c", line, NULL};
        const struct process_run_options options = {.argv = argv, .input = ""};
        int code = -1;
        assert_int_equal(process_run(&options, output, sizeof(output), &code), STATUS_OK);
        assert_int_equal(code, 0);
        assert_int_equal(strlen(output), strlen(words[i]) + 1);
        assert_memory_equal(output, words[i], strlen(words[i]));
    }
}

static void a_line_without_room_is_no_line(void **state)
{
    (void)state;
    const char *const program[] = {"sh", "a\nb", NULL};
    char line[16];
    assert_true(command_text_write_line(program, line, sizeof(line)));
    assert_string_equal(line, "sh $'a\\nb'");
    for (size_t size = 1; size <= strlen("sh $'a\\nb'"); size++) {
        memset(line, '#', sizeof(line));
        assert_false(command_text_write_line(program, line, size));
        assert_string_equal(line, "");
        assert_int_equal(line[size], '#');
    }
}

static void the_command_begins_with_ringside(void **state)
{
    (void)state;
    char compare[] = "compare", out[] = "--out", folder[] = "my runs";
    char *argv[] = {compare, out, folder, NULL};
    char text[COMMAND_TEXT_BYTES];
    command_text_write(3, argv, text);
    assert_string_equal(text, "ringside compare --out 'my runs'");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_command_is_its_arguments_and_a_program_has_a_name_of_its_own),
        cmocka_unit_test(a_line_of_plain_text_has_every_argument_as_it_was),
        cmocka_unit_test(a_line_without_room_is_no_line),
        cmocka_unit_test(the_command_begins_with_ringside),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
