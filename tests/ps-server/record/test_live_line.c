/* Tests of the line on a terminal. */
#include "ps-server/record/live_line.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <math.h>
#include <string.h>

static struct live_line_curve falling_curve(void)
{
    struct live_line_curve curve = {{0}};
    for (uint64_t step = 1; step <= 32; step++) {
        live_line_add_loss(&curve, step, 64, 3.0 - (double)step / 16);
    }
    return curve;
}

static void check(const struct live_line *line, const char *expected)
{
    char text[LIVE_LINE_BYTES];
    live_line_format(line, text);
    assert_string_equal(text, expected);
}

static void bar_and_curve_stand_before_the_facts(void **state)
{
    (void)state;
    const struct live_line_curve curve = falling_curve();
    struct live_line line = {
        .step = 32, .total = 64, .curve = &curve, .facts = "facts", .rest = " rest"};
    line.has_blocks = true;
    check(&line, "[████████░░░░░░░░]  █▇▆▅▄▃▂▁  facts rest");
    line.has_blocks = false;
    check(&line, "[########........]  facts rest");
}

static void without_a_total_there_are_facts_alone(void **state)
{
    (void)state;
    struct live_line_curve curve = {{0}};
    live_line_add_loss(&curve, 3, 0, 1.5);
    const struct live_line line = {
        .step = 3, .curve = &curve, .facts = "facts", .rest = " rest", .has_blocks = true};
    check(&line, "facts rest");
}

static void what_does_not_fit_is_left_out_in_turn(void **state)
{
    (void)state;
    const struct live_line_curve curve = falling_curve();
    struct live_line line = {.step = 32,
                             .total = 64,
                             .curve = &curve,
                             .facts = "facts",
                             .rest = " rest",
                             .has_blocks = true};
    static const struct {
        unsigned columns;
        const char *text;
    } cases[] = {
        {41, "[████████░░░░░░░░]  █▇▆▅▄▃▂▁  facts rest"},
        {40, "[████████░░░░░░░░]  facts rest"},
        {31, "[████████░░░░░░░░]  facts rest"},
        {30, "facts rest"},
        {11, "facts rest"},
        {10, "facts"},
        {3, "fa"},
        {1, ""},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        line.columns = cases[i].columns;
        check(&line, cases[i].text);
    }
}

static void losses_that_are_none_leave_no_mark(void **state)
{
    (void)state;
    struct live_line_curve curve = {{0}};
    live_line_add_loss(&curve, 1, 10, (double)NAN);
    live_line_add_loss(&curve, 1, 10, (double)INFINITY);
    live_line_add_loss(&curve, 1, 0, 1);
    live_line_add_loss(&curve, 11, 10, 1);
    live_line_add_loss(&curve, 0, 10, 1);
    const struct live_line line = {
        .step = 0, .total = 10, .curve = &curve, .facts = "f", .rest = "", .has_blocks = true};
    check(&line, "[░░░░░░░░░░░░░░░░]    f");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bar_and_curve_stand_before_the_facts),
        cmocka_unit_test(without_a_total_there_are_facts_alone),
        cmocka_unit_test(what_does_not_fit_is_left_out_in_turn),
        cmocka_unit_test(losses_that_are_none_leave_no_mark),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
