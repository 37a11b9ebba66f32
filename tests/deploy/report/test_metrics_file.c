/* Tests of reading metrics.jsonl, whole and damaged. */
#include "deploy/report/metrics_file.h"
#include "tests/support/common/captured_log.h"
#include "tests/support/common/temp_folder.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdlib.h>
#include <string.h>

/* The steps of the lines that are read, as digits, and what is logged. */
static void read_text(const char *text, char ret_steps[32], struct damaged_lines *ret_damaged)
{
    static struct run_folder run;
    struct metrics_file metrics;
    char *folder = temp_folder_create();
    size_t count = 0;
    temp_folder_write(folder, "metrics.jsonl", text, strlen(text));
    snprintf(run.path, sizeof(run.path), "%s", folder);
    metrics_file_open(&run, &metrics);
    for (json_t *line; (line = metrics_file_next(&metrics)) != NULL;) {
        ret_steps[count++] = (char)('0' + json_integer_value(json_object_get(line, "step")));
        json_decref(line);
    }
    ret_steps[count] = '\0';
    *ret_damaged = metrics.damaged;
    metrics_file_close(&metrics);
    temp_folder_destroy(folder);
}

static void whole_lines_are_read_in_order(void **state)
{
    (void)state;
    char steps[32];
    struct damaged_lines damaged;
    read_text("{\"step\": 1}\n{\"step\": 2}\n{\"step\": 3}", steps, &damaged);
    assert_string_equal(steps, "123");
    assert_int_equal(damaged.count, 0);
    read_text("", steps, &damaged);
    assert_string_equal(steps, "");
    assert_int_equal(damaged.count, 0);
}

static void damaged_lines_are_left_out_and_counted(void **state)
{
    (void)state;
    char steps[32], *garbage = malloc(6000);
    struct damaged_lines damaged;
    read_text("{\"step\": 1}\n{\"step\n{\"step\": 3}\n7\n\n{\"step\": 4}\n{\"st", steps, &damaged);
    assert_string_equal(steps, "134");
    assert_int_equal(damaged.count, 4);
    assert_int_equal(damaged.first, 2);
    assert_non_null(garbage);
    memset(garbage, 'x', 5000);
    snprintf(garbage + 5000, 1000, "\n{\"step\": 5}\n");
    read_text(garbage, steps, &damaged);
    assert_string_equal(steps, "5");
    assert_int_equal(damaged.first, 1);
    free(garbage);
}

static void a_run_without_metrics_has_no_lines(void **state)
{
    (void)state;
    static const struct run_folder run = {.path = "/nonexistent"};
    struct metrics_file metrics;
    metrics_file_open(&run, &metrics);
    assert_null(metrics_file_next(&metrics));
    metrics_file_close(&metrics);
}

/* What is logged of damaged lines. */
static const char *said_of(const struct damaged_lines *damaged)
{
    captured_log_begin();
    damaged_lines_warn(damaged, "metrics");
    return captured_log_end();
}

static void what_is_damaged_is_said(void **state)
{
    (void)state;
    struct damaged_lines damaged = {0, 0};
    assert_string_equal(said_of(&damaged), "");
    damaged_lines_note(&damaged, 7);
    assert_non_null(strstr(said_of(&damaged), "metrics: line 7 is damaged, and left out"));
    damaged_lines_note(&damaged, 9);
    assert_non_null(strstr(said_of(&damaged), "metrics: 2 lines are damaged, from line 7 on"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_lines_are_read_in_order),
        cmocka_unit_test(damaged_lines_are_left_out_and_counted),
        cmocka_unit_test(a_run_without_metrics_has_no_lines),
        cmocka_unit_test(what_is_damaged_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
