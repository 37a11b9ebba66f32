/* Tests of how fast a run was before, during and after its faults. */
#include "deploy/report/fault_lines.h"
#include "tests/support/common/temp_folder.h"

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

static void expect(double rate, double expected)
{
    assert_true(fabs(rate - expected) < 1e-9);
}

/* Ten steps a second, five after the loss; steps 31 to 37 are made twice. */
static struct fault_line sample[] = {
    {10, 3}, {20, 4}, {30, 5}, {40, 9}, {50, 11}, {60, 13},
};

static void rates_are_of_lines_that_no_fault_touches(void **state)
{
    (void)state;
    const struct fault_lines lines = {sample, 6};
    const struct fault_rates rates = fault_lines_rates(&lines, (struct fault_window){31, 38});
    expect(rates.before, 10); // the first line ends the warm-up
    expect(rates.during, 10.0 / 4);
    expect(rates.after, 5);
}

static void steps_that_come_twice_count_as_made_at_the_end(void **state)
{
    (void)state;
    struct fault_line twice[] = {{10, 1}, {20, 2}, {30, 3}, {20, 5}, {30, 6}, {40, 7}, {50, 8}};
    const struct fault_lines lines = {twice, 7};
    const struct fault_rates rates = fault_lines_rates(&lines, (struct fault_window){15, 33});
    expect(rates.before, 0); // one line is the warm-up's
    expect(rates.during, 30.0 / 6);
    expect(rates.after, 10);
}

static void what_lines_do_not_show_is_not_known(void **state)
{
    (void)state;
    const struct fault_lines lines = {sample, 6};
    struct fault_rates rates = fault_lines_rates(&lines, (struct fault_window){1, 5});
    expect(rates.before, 0);
    expect(rates.during, 10.0 / 3);
    expect(rates.after, 5);
    rates = fault_lines_rates(&lines, (struct fault_window){55, 61});
    expect(rates.before, 40.0 / 8);
    expect(rates.during, 0);
    expect(rates.after, 0);
}

static void lines_are_those_of_the_first_rank(void **state)
{
    (void)state;
    static const char text[] = "{\"rank\": 1, \"step\": 5, \"seconds\": 0.5}\nnonsense\n"
                               "{\"rank\": 0, \"step\": 5, \"seconds\": 0.6}\n"
                               "{\"rank\": 1, \"step\": 10, \"seconds\": 1.25}\n";
    static struct run_folder run;
    struct fault_lines lines;
    char *folder = temp_folder_create();
    snprintf(run.path, sizeof(run.path), "%s", folder);
    assert_false(fault_lines_read(&run, &lines));
    temp_folder_write(folder, "metrics.jsonl", text, strlen(text));
    assert_true(fault_lines_read(&run, &lines));
    assert_int_equal(lines.count, 2);
    assert_int_equal(lines.list[1].step, 10);
    expect(lines.list[1].seconds, 1.25);
    fault_lines_finish(&lines);
    temp_folder_destroy(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rates_are_of_lines_that_no_fault_touches),
        cmocka_unit_test(steps_that_come_twice_count_as_made_at_the_end),
        cmocka_unit_test(what_lines_do_not_show_is_not_known),
        cmocka_unit_test(lines_are_those_of_the_first_rank),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
