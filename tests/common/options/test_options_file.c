/* Tests of config files: what is read, and what is refused at which line. */
#include "common/options/options_sources.h"
#include "tests/support/common/captured_log.h"
#include "tests/support/common/sample_options.h"
#include "tests/support/common/temp_folder.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum status read_bytes(struct sample *sample, const char *bytes, size_t size,
                              const char **ret_log)
{
    char path[256];
    char *folder = temp_folder_create();
    temp_folder_write(folder, "job.ini", bytes, size);
    snprintf(path, sizeof(path), "%s/job.ini", folder);
    struct option_program program = sample_program(sample);
    captured_log_begin();
    enum status status = options_read_file(&program, path);
    *ret_log = captured_log_end();
    temp_folder_destroy(folder);
    return status;
}

static struct sample read_text(const char *text)
{
    struct sample sample;
    const char *log;
    if (read_bytes(&sample, text, strlen(text), &log) != STATUS_OK) {
        fail_msg("refused: %s", log);
    }
    assert_string_equal(log, "");
    return sample;
}

/* The log must be one line, that contains the text. */
static void refuse_bytes(const char *bytes, size_t size, const char *text)
{
    struct sample sample;
    const char *log;
    assert_int_equal(read_bytes(&sample, bytes, size, &log), STATUS_INVALID);
    const char *line_end = strchr(log, '\n');
    if (line_end == NULL || line_end[1] != '\0') {
        fail_msg("not one line: %s", log);
    }
    if (strstr(log, text) == NULL) {
        fail_msg("\"%s\" is not in: %s", text, log);
    }
}

static void refuse_text(const char *bytes, const char *text)
{
    refuse_bytes(bytes, strlen(bytes), text);
}

static void names_and_values_are_read_in_any_section_or_none(void **state)
{
    (void)state;
    struct sample sample = read_text("workers = 3\n[first]\nname=abc\n\n[second]\nport: 80\n");
    assert_int_equal(sample.workers, 3);
    assert_string_equal(sample.name, "abc");
    assert_int_equal(sample.port, 80);
}

static void comments_and_empty_lines_are_free(void **state)
{
    (void)state;
    struct sample sample =
        read_text("# one\n; two\n\n   \nworkers = 3 ; three\n  # four\nname = a;b\n");
    assert_int_equal(sample.workers, 3);
    assert_string_equal(sample.name, "a;b");
}

static void an_indented_line_is_a_line_of_its_own(void **state)
{
    (void)state;
    struct sample sample = read_text("[job]\n  name = one\n  color = blue\n\tworkers = 3\n");
    assert_string_equal(sample.name, "one");
    assert_int_equal(sample.color, SAMPLE_BLUE);
    assert_int_equal(sample.workers, 3);
}

static void line_ends_of_other_systems_are_taken(void **state)
{
    (void)state;
    struct sample sample = read_text("\xef\xbb\xbfworkers = 3\r\nname = abc\r\n");
    assert_int_equal(sample.workers, 3);
    assert_string_equal(sample.name, "abc");
}

static void the_last_line_needs_no_end(void **state)
{
    (void)state;
    assert_int_equal(read_text("workers = 3").workers, 3);
    assert_int_equal(read_text("").workers, 2);
}

static void an_unknown_name_is_refused_with_file_line_and_nearest(void **state)
{
    (void)state;
    refuse_text("[job]\n\nworker = 3\n",
                "/job.ini:3: unknown option 'worker'; did you mean workers?");
    refuse_text("help = true\n", "/job.ini:1: unknown option 'help'");
}

static void a_bad_value_is_refused_with_file_and_line(void **state)
{
    (void)state;
    refuse_text("port = 80\nworkers = none\nport = x\n", "/job.ini:2: workers is 'none'");
}

static void what_is_no_option_is_refused_with_its_line(void **state)
{
    (void)state;
    refuse_text("port = 80\nworkers\n", "/job.ini:2: not a line of the form NAME = VALUE");
    refuse_text("port = 80\n[job\n", "/job.ini:2: not a line of the form");
}

static void a_line_that_the_parser_would_cut_is_refused(void **state)
{
    (void)state;
    static char text[70000] = "port = 80\nname = ";
    memset(text + strlen(text), 'x', 65536);
    refuse_text(text, "/job.ini:2: the line is too long");
}

static void lines_of_every_length_are_read_whole_or_refused(void **state)
{
    (void)state;
    // Around the size of the parser's buffer, a line must never be taken for two.
    for (int padding = 0; padding < 400; padding++) {
        char text[512];
        struct sample sample;
        const char *log;
        snprintf(text, sizeof(text), "workers = %*s\nport = 80\n", padding, "3");
        if (read_bytes(&sample, text, strlen(text), &log) == STATUS_OK) {
            assert_int_equal(sample.workers, 3);
            assert_int_equal(sample.port, 80);
            assert_true(padding < 200);
        } else {
            assert_true(padding > 150);
            assert_non_null(strstr(log, "/job.ini:1: the line is too long"));
        }
    }
}

static void a_file_with_zero_bytes_is_no_config_file(void **state)
{
    (void)state;
    refuse_bytes("workers = 3\0\nport = 80\n", 24, "/job.ini:1: this is not a text file");
}

static void a_file_of_more_than_a_mebibyte_is_given_up(void **state)
{
    (void)state;
    static char text[(1 << 20) + 3];
    memset(text, '\n', sizeof(text) - 1);
    refuse_bytes(text, sizeof(text) - 1, "the file is too long");
}

static void what_cannot_be_read_is_refused_with_the_reason(void **state)
{
    (void)state;
    sample_refuse((const char *const[8]){"--config", "/does/not/exist"},
                  "cannot read the config file /does/not/exist", "No such file or directory");
    sample_refuse((const char *const[8]){"--config", "/"}, "cannot read the config file /",
                  "Is a directory");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_and_values_are_read_in_any_section_or_none),
        cmocka_unit_test(comments_and_empty_lines_are_free),
        cmocka_unit_test(an_indented_line_is_a_line_of_its_own),
        cmocka_unit_test(line_ends_of_other_systems_are_taken),
        cmocka_unit_test(the_last_line_needs_no_end),
        cmocka_unit_test(an_unknown_name_is_refused_with_file_line_and_nearest),
        cmocka_unit_test(a_bad_value_is_refused_with_file_and_line),
        cmocka_unit_test(what_is_no_option_is_refused_with_its_line),
        cmocka_unit_test(a_line_that_the_parser_would_cut_is_refused),
        cmocka_unit_test(lines_of_every_length_are_read_whole_or_refused),
        cmocka_unit_test(a_file_with_zero_bytes_is_no_config_file),
        cmocka_unit_test(a_file_of_more_than_a_mebibyte_is_given_up),
        cmocka_unit_test(what_cannot_be_read_is_refused_with_the_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
