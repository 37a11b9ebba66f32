/* Tests of --describe-options: JSON that says what the tables say. */
#include "tests/support/common/sample_options.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <jansson.h>

#include <stdio.h>
#include <string.h>

#define LINES_MAX 32

/* Every line of the sample's description, parsed. */
static size_t describe(const struct option_program *program, json_t *ret_lines[LINES_MAX])
{
    static char text[16 * 1024];
    size_t count = 0;
    FILE *stream = fmemopen(text, sizeof(text), "w");
    assert_non_null(stream);
    options_describe(program, stream);
    fclose(stream);
    for (char *line = text, *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
        *end = '\0';
        assert_in_range(count, 0, LINES_MAX - 1);
        ret_lines[count] = json_loads(line, 0, NULL);
        assert_non_null(ret_lines[count]);
        count++;
    }
    return count;
}

static void forget(json_t **lines, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        json_decref(lines[i]);
    }
}

static const char *text_of(const json_t *line, const char *key)
{
    return json_string_value(json_object_get(line, key));
}

static const json_t *find(json_t **lines, size_t count, const char *option)
{
    for (size_t i = 0; i < count; i++) {
        const char *name = text_of(lines[i], "option");
        if (name != NULL && strcmp(name, option) == 0) {
            return lines[i];
        }
    }
    fail_msg("there is no %s", option);
    return NULL;
}

static void the_first_line_is_the_program(void **state)
{
    (void)state;
    struct sample sample;
    struct option_program program = sample_program(&sample);
    json_t *lines[LINES_MAX] = {0};
    size_t count = describe(&program, lines);
    assert_string_equal(text_of(lines[0], "program"), "sample");
    assert_string_equal(text_of(lines[0], "usage"), "sample [OPTION ...]");
    assert_string_equal(text_of(lines[0], "example"), "  sample --loud\n");
    forget(lines, count);
}

static void a_row_has_all_that_help_says(void **state)
{
    (void)state;
    struct sample sample;
    struct option_program program = sample_program(&sample);
    json_t *lines[LINES_MAX] = {0};
    size_t count = describe(&program, lines);
    const json_t *row = find(lines, count, "workers");
    assert_string_equal(text_of(row, "set"), "First");
    assert_string_equal(text_of(row, "letter"), "n");
    assert_string_equal(text_of(row, "variable"), "RINGSIDE_WORKERS");
    assert_string_equal(text_of(row, "metavar"), "COUNT");
    assert_string_equal(text_of(row, "default"), "2");
    assert_string_equal(text_of(row, "range"), "1 to 4096");
    assert_string_equal(text_of(row, "help"), "processes");
    row = find(lines, count, "total-steps");
    assert_string_equal(text_of(row, "variable"), "RINGSIDE_TOTAL_STEPS");
    assert_true(json_is_null(json_object_get(row, "letter")));
    row = find(lines, count, "color");
    const json_t *choices = json_object_get(row, "choices");
    assert_int_equal(json_array_size(choices), 4);
    assert_string_equal(text_of(json_array_get(choices, 1), "name"), "green");
    assert_string_equal(text_of(json_array_get(choices, 1), "summary"), "of grass");
    assert_true(json_is_null(json_object_get(row, "range")));
    assert_true(json_is_null(json_object_get(find(lines, count, "loud"), "metavar")));
    forget(lines, count);
}

static void what_is_read_beside_the_tables_is_there_too(void **state)
{
    (void)state;
    static const struct option own = {.name = "list",
                                      .type = OPTION_TEXT,
                                      .fallback = "\"a\\b\"",
                                      .metavar = "ITEMS",
                                      .help = "what to take out"};
    struct sample sample;
    struct option_program program = sample_program(&sample);
    program.taken_before = (struct option_set){.title = "Own", .rows = &own, .count = 1};
    json_t *lines[LINES_MAX] = {0};
    size_t count = describe(&program, lines);
    const json_t *row = find(lines, count, "list");
    assert_string_equal(text_of(row, "default"), "\"a\\b\"");
    assert_true(json_is_null(json_object_get(row, "variable")));
    assert_string_equal(text_of(find(lines, count, "config"), "variable"), "RINGSIDE_CONFIG");
    assert_true(json_is_null(json_object_get(find(lines, count, "help"), "variable")));
    assert_true(json_is_null(json_object_get(find(lines, count, "help"), "default")));
    forget(lines, count);
}

static void a_program_without_tables_has_help_alone(void **state)
{
    (void)state;
    struct option_program program = {.name = "bare", .usage = "bare", .summary = "Nothing."};
    json_t *lines[LINES_MAX] = {0};
    assert_int_equal(describe(&program, lines), 2);
    assert_string_equal(text_of(lines[1], "option"), "help");
    forget(lines, 2);
}

static void it_is_printed_when_asked_for(void **state)
{
    (void)state;
    struct sample sample;
    struct option_program program = sample_program(&sample);
    char name[] = "sample", asked[] = "--describe-options";
    char *argv[] = {name, asked, NULL};
    bool is_done = false;
    assert_int_equal(options_parse(&program, 2, argv, &is_done), STATUS_OK);
    assert_true(is_done);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_line_is_the_program),
        cmocka_unit_test(a_row_has_all_that_help_says),
        cmocka_unit_test(what_is_read_beside_the_tables_is_there_too),
        cmocka_unit_test(a_program_without_tables_has_help_alone),
        cmocka_unit_test(it_is_printed_when_asked_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
