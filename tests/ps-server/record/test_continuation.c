/* Tests of what stays of a run folder in which a job goes on. */
#include "ps-server/record/continuation.h"
#include "tests/support/common/temp_folder.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void read_file(const char *folder, const char *name, char text[1024])
{
    char path[1024];
    snprintf(path, sizeof(path), "%.900s/%s", folder, name);
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    text[fread(text, 1, 1023, file)] = '\0';
    fclose(file);
}

static bool is_there(const char *folder, const char *name)
{
    char path[1024];
    snprintf(path, sizeof(path), "%.900s/%s", folder, name);
    return access(path, F_OK) == 0;
}

static const char lines[] = "{\"rank\": 0, \"step\": 5}\n{\"rank\": 1, \"step\": 5}\n"
                            "{\"rank\": 0, \"step\": 10}\n{\"rank\": 0, \"step\": 15}\n"
                            "{\"rank\": 1, \"step\": 10}\n{\"rank\": 0, \"st";
static const char kept[] = "{\"rank\": 0, \"step\": 5}\n{\"rank\": 1, \"step\": 5}\n"
                           "{\"rank\": 0, \"step\": 10}\n{\"rank\": 1, \"step\": 10}\n";

static struct continuation_lines lines_kept[2];

static void lines_up_to_the_step_stay_and_results_go(void **state)
{
    (void)state;
    char *folder = temp_folder_create(), text[1024];
    temp_folder_write(folder, "metrics.jsonl", lines, sizeof(lines) - 1);
    temp_folder_write(folder, "summary.json", "{}", 2);
    temp_folder_write(folder, "details.json", "{}", 2);
    temp_folder_write(folder, "job.json", "{}", 2);
    assert_int_equal(continuation_begin(folder, folder, 10, 2, lines_kept), STATUS_OK);
    read_file(folder, "metrics.jsonl", text);
    assert_string_equal(text, kept);
    assert_false(is_there(folder, "summary.json"));
    assert_false(is_there(folder, "details.json"));
    assert_true(is_there(folder, "job.json"));
    temp_folder_destroy(folder);
}

static void another_folder_gets_the_lines_and_the_first_stays(void **state)
{
    (void)state;
    char *from = temp_folder_create(), *to = temp_folder_create(), text[1024];
    temp_folder_write(from, "metrics.jsonl", lines, sizeof(lines) - 1);
    temp_folder_write(from, "summary.json", "{}", 2);
    assert_int_equal(continuation_begin(from, to, 10, 2, lines_kept), STATUS_OK);
    read_file(to, "metrics.jsonl", text);
    assert_string_equal(text, kept);
    read_file(from, "metrics.jsonl", text);
    assert_string_equal(text, lines);
    assert_true(is_there(from, "summary.json"));
    temp_folder_destroy(from);
    temp_folder_destroy(to);
}

static void a_run_without_metrics_goes_on_without(void **state)
{
    (void)state;
    char *folder = temp_folder_create();
    assert_int_equal(continuation_begin(folder, folder, 10, 2, lines_kept), STATUS_OK);
    assert_false(is_there(folder, "metrics.jsonl"));
    temp_folder_destroy(folder);
}

static void what_the_lines_that_stay_have_is_told_in_the_same_reading(void **state)
{
    (void)state;
    static const char told[] = "{\"rank\": 0, \"step\": 5, \"steps\": 5, \"loss\": 3}\n"
                               "{\"rank\": 1, \"step\": 9, \"steps\": 9, \"loss\": 1}\n"
                               "{\"rank\": 0, \"step\": 10, \"steps\": 5, \"loss\": 2}\n"
                               "{\"rank\": 0, \"step\": 20, \"steps\": 10, \"loss\": 8}\n";
    char *folder = temp_folder_create();
    temp_folder_write(folder, "metrics.jsonl", told, sizeof(told) - 1);
    assert_int_equal(continuation_begin(folder, folder, 10, 2, lines_kept), STATUS_OK);
    assert_int_equal(lines_kept[0].steps, 10);
    assert_true(lines_kept[0].loss_steps == 25);
    assert_int_equal(lines_kept[1].steps, 9);
    temp_folder_destroy(folder);
}

/* A process that was killed, or a disk that was full, may have left its newline out. */
static void a_last_line_without_its_end_gets_one(void **state)
{
    (void)state;
    static const char told[] = "{\"rank\": 0, \"step\": 5}";
    char *folder = temp_folder_create(), text[1024];
    temp_folder_write(folder, "metrics.jsonl", told, sizeof(told) - 1);
    assert_int_equal(continuation_begin(folder, folder, 10, 2, lines_kept), STATUS_OK);
    read_file(folder, "metrics.jsonl", text);
    assert_string_equal(text, "{\"rank\": 0, \"step\": 5}\n");
    temp_folder_destroy(folder);
}

static void lines_of_a_rank_are_counted_behind_a_step(void **state)
{
    (void)state;
    static const char told[] = "{\"rank\": 0, \"step\": 5, \"steps\": 5, \"loss\": 3}\n"
                               "{\"rank\": 1, \"step\": 15, \"steps\": 10, \"loss\": 9}\n"
                               "{\"rank\": 0, \"step\": 10, \"steps\": 5, \"loss\": 2}\n"
                               "{\"rank\": 0, \"step\": 20, \"steps\": 10, \"loss\": 0.5}\n"
                               "{\"rank\": 0, \"step\": 30, \"st";
    char *folder = temp_folder_create();
    struct continuation_lines got;
    assert_int_equal(continuation_read(folder, 0, 1, 0, &got), STATUS_OK);
    assert_int_equal(got.steps, 0);
    temp_folder_write(folder, "metrics.jsonl", told, sizeof(told) - 1);
    assert_int_equal(continuation_read(folder, 0, 1, 0, &got), STATUS_OK);
    assert_int_equal(got.steps, 20);
    assert_true(got.loss_steps == 30);
    assert_int_equal(continuation_read(folder, 0, 1, 10, &got), STATUS_OK);
    assert_int_equal(got.steps, 10);
    assert_true(got.loss_steps == 5);
    struct continuation_lines both[2];
    assert_int_equal(continuation_read(folder, 0, 2, 0, both), STATUS_OK);
    assert_int_equal(both[0].steps, 20);
    assert_int_equal(both[1].steps, 10);
    assert_true(both[1].loss_steps == 90);
    temp_folder_destroy(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_up_to_the_step_stay_and_results_go),
        cmocka_unit_test(another_folder_gets_the_lines_and_the_first_stays),
        cmocka_unit_test(a_run_without_metrics_goes_on_without),
        cmocka_unit_test(what_the_lines_that_stay_have_is_told_in_the_same_reading),
        cmocka_unit_test(a_last_line_without_its_end_gets_one),
        cmocka_unit_test(lines_of_a_rank_are_counted_behind_a_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
