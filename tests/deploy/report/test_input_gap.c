/* Tests of the input gap: the figure of given rounds, which runs are a pair, and what is written.
 */
#include "deploy/page/html_input.h"
#include "deploy/report/input_gap.h"
#include "tests/support/common/temp_folder.h"
#include "tests/support/deploy/sample_runs.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REAL  "cifar10:/d"
#define NOISE "synthetic:cifar10:/d"

static struct run_folder make_run(const char *label, const char *data, int seed, double rate)
{
    struct run_folder run = {.path = "/nowhere"};
    snprintf(run.label, sizeof(run.label), "%s", label);
    run.summary = json_pack("{s:s, s:s, s:i, s:s, s:f, s:i}", "outcome", "completed", "mode", label,
                            "workers", 2, "dataset", data, "images_per_second", rate, "seed", seed);
    run.job = json_pack("{s:{s:s, s:s, s:s, s:i}}", "options", "data", data, "mode", label,
                        "augment", strcmp(data, REAL) == 0 ? "flip" : "none", "seed", seed);
    assert_non_null(run.summary);
    assert_non_null(run.job);
    return run;
}

static void close_runs(struct run_folder *runs, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        run_folder_close(&runs[i]);
    }
}

#define ROUNDS 7
static void make_rounds(struct run_folder runs[ROUNDS])
{
    runs[0] = make_run("ri<ng", REAL, 1, 90);
    runs[1] = make_run("ri<ng", NOISE, 1, 100);
    runs[2] = make_run("ri<ng", REAL, 2, 160);
    runs[3] = make_run("ri<ng", NOISE, 2, 200);
    runs[4] = make_run("local", REAL, 1, 55);
    runs[5] = make_run("local", NOISE, 1, 50);
    runs[6] = make_run("local", REAL, 2, 60); // has no partner
}

static void check_near(double value, double expected)
{
    if (!(fabs(value - expected) < 1e-3)) {
        fail_msg("%g is not %g", value, expected);
    }
}

/* Gaps of 10 and 20 %: a mean of 15, a deviation of 5 times the root of 2, an error of 5, and the
 * quantile of one degree of freedom is 12.706. */
static void the_figure_follows_from_the_rounds(void **state)
{
    (void)state;
    struct run_folder runs[ROUNDS];
    struct input_gaps gaps;
    check_near(input_gap_percent(95, 100), 5);
    check_near(input_gap_percent(110, 100), -10);
    make_rounds(runs);
    assert_int_equal(input_gaps_of(runs, ROUNDS, &gaps), STATUS_OK);
    assert_int_equal(gaps.count, 2);
    assert_int_equal(gaps.list[0].count, 2);
    check_near(gaps.list[0].percent.mean, 15);
    check_near(gaps.list[0].percent.half_width, 63.53);
    check_near(gaps.list[0].real_rate.mean, 125);
    check_near(gaps.list[0].synthetic_rate.mean, 150);
    assert_ptr_equal(gaps.list[0].pairs[1].real, &runs[2]);
    assert_ptr_equal(gaps.list[0].pairs[1].synthetic, &runs[3]);
    assert_int_equal(gaps.list[1].count, 1);
    check_near(gaps.list[1].percent.mean, -10);
    input_gaps_finish(&gaps);
    close_runs(runs, ROUNDS);
}

/* Two comparisons with the same seeds in one report: each run has a partner of its own. */
static void a_run_is_in_one_pair_alone(void **state)
{
    (void)state;
    struct run_folder runs[] = {make_run("ring", REAL, 1, 90), make_run("ring", NOISE, 1, 100),
                                make_run("ring", REAL, 1, 80), make_run("ring", NOISE, 1, 160)};
    struct input_gaps gaps;
    assert_int_equal(input_gaps_of(runs, 4, &gaps), STATUS_OK);
    assert_int_equal(gaps.count, 1);
    assert_int_equal(gaps.list[0].count, 2);
    check_near(gaps.list[0].pairs[0].percent, 10);
    check_near(gaps.list[0].pairs[1].percent, 50);
    input_gaps_finish(&gaps);
    close_runs(runs, 4);
}

static void runs_that_failed_or_are_of_other_jobs_are_no_pair(void **state)
{
    (void)state;
    struct run_folder runs[] = {make_run("ring", REAL, 1, 90), make_run("ring", NOISE, 1, 100),
                                make_run("local", REAL, 1, 90), make_run("ring", NOISE, 2, 100),
                                make_run("local", "synthetic", 1, 90)};
    struct input_gaps gaps;
    json_object_set_new(runs[1].summary, "outcome", json_string("failed"));
    json_object_clear(runs[0].job);
    assert_int_equal(input_gaps_of(runs, 5, &gaps), STATUS_OK);
    assert_int_equal(gaps.count, 0);
    input_gaps_finish(&gaps);
    close_runs(runs, 5);
}

static void the_table_and_the_page_have_a_row_for_each_gap(void **state)
{
    (void)state;
    struct run_folder runs[ROUNDS];
    struct input_gaps gaps;
    char *text = NULL;
    size_t size = 0;
    make_rounds(runs);
    assert_int_equal(input_gaps_of(runs, ROUNDS, &gaps), STATUS_OK);
    FILE *memory = open_memstream(&text, &size);
    input_gaps_print(memory, &gaps);
    html_input_gaps(memory, &gaps);
    input_gaps_print_markdown(memory, &gaps);
    fclose(memory);
    assert_non_null(strstr(text, "\nri<ng "));
    assert_non_null(strstr(text, "  15.0 ± 63.5 %\n"));
    assert_non_null(strstr(text, "<th>input gap</th>"));
    assert_non_null(strstr(text, "| synthetic images/s | input gap |\n|---|---|---|---|---|\n"));
    assert_non_null(strstr(text, "| ri<ng | 2 | 125 | 150 | 15.0 ± 63.5 % |\n"));
    assert_non_null(
        strstr(text, "<p class=\"note\">Input gap: the share of the images per second"));
    assert_non_null(strstr(text, "<tr><td>ri&lt;ng</td><td>2</td><td>125</td><td>150</td>"
                                 "<td>15.0 ± 63.5 %</td></tr>"));
    assert_non_null(strstr(text, "<tr><td>local</td><td>1</td><td>55.0</td><td>50.0</td>"
                                 "<td>-10.0 %</td></tr>"));
    free(text);
    input_gaps_finish(&gaps);
    memory = open_memstream(&text, &size);
    input_gaps_print(memory, &gaps);
    html_input_gaps(memory, &gaps);
    fclose(memory);
    assert_string_equal(text, "");
    free(text);
    close_runs(runs, ROUNDS);
}

static void the_file_has_each_gap_with_its_rounds(void **state)
{
    (void)state;
    struct run_folder runs[ROUNDS];
    struct input_gaps gaps;
    char *folder = temp_folder_create();
    make_rounds(runs);
    assert_int_equal(input_gaps_of(runs, ROUNDS, &gaps), STATUS_OK);
    assert_int_equal(input_gaps_write(&gaps, folder), STATUS_OK);
    char *text = sample_runs_read(folder, "input_gap.json");
    json_t *list = json_loads(text, 0, NULL);
    assert_int_equal(json_array_size(list), 2);
    const json_t *ring = json_array_get(list, 0), *local = json_array_get(list, 1);
    assert_string_equal(json_string_value(json_object_get(ring, "run")), "ri<ng");
    assert_string_equal(json_string_value(json_object_get(ring, "dataset")), REAL);
    check_near(json_number_value(json_object_get(ring, "percent")), 15);
    check_near(json_number_value(json_object_get(ring, "half_width")), 63.53);
    assert_true(json_is_null(json_object_get(local, "half_width"))); // one round has none
    const json_t *second = json_array_get(json_object_get(ring, "rounds"), 1);
    assert_int_equal(json_integer_value(json_object_get(second, "seed")), 2);
    check_near(json_number_value(json_object_get(second, "real_images_per_second")), 160);
    check_near(json_number_value(json_object_get(second, "synthetic_images_per_second")), 200);
    check_near(json_number_value(json_object_get(second, "percent")), 20);
    json_decref(list);
    free(text);
    input_gaps_finish(&gaps);
    close_runs(runs, ROUNDS);
    temp_folder_destroy(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_figure_follows_from_the_rounds),
        cmocka_unit_test(a_run_is_in_one_pair_alone),
        cmocka_unit_test(runs_that_failed_or_are_of_other_jobs_are_no_pair),
        cmocka_unit_test(the_table_and_the_page_have_a_row_for_each_gap),
        cmocka_unit_test(the_file_has_each_gap_with_its_rounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
