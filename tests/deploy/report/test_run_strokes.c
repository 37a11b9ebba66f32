/* Tests of colours and dashes. */
#include "common/job/mode.h"
#include "deploy/report/run_strokes.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on

#define COUNT_MAX 40

static void a_mode_has_its_colour_and_its_settings_have_dashes(void **state)
{
    (void)state;
    const size_t ranks[] = {MODE_LOCAL, MODE_RING, MODE_RING, MODE_PS_ASYNC};
    const size_t alone[] = {MODE_RING};
    struct run_stroke strokes[COUNT_MAX], other[COUNT_MAX];
    assert_true(run_strokes_choose(ranks, 4, strokes));
    assert_true(run_strokes_choose(alone, 1, other));
    assert_int_equal(strokes[1].colour, other[0].colour);
    assert_int_equal(strokes[2].colour, strokes[1].colour);
    assert_int_equal(strokes[1].dash, 0);
    assert_int_equal(strokes[2].dash, 1);
    assert_int_not_equal(strokes[0].colour, strokes[1].colour);
    assert_int_not_equal(strokes[3].colour, strokes[1].colour);
}

static void settings_of_one_mode_have_colours_then_dashes(void **state)
{
    (void)state;
    size_t ranks[COUNT_MAX];
    struct run_stroke strokes[COUNT_MAX];
    for (size_t i = 0; i < COUNT_MAX; i++) {
        ranks[i] = MODE_PS_SSP;
    }
    assert_false(run_strokes_choose(ranks, COUNT_MAX, strokes));
    for (size_t i = 0; i < COUNT_MAX; i++) {
        assert_true(strokes[i].colour < RUN_COLOURS && strokes[i].dash < RUN_DASHES);
        for (size_t k = 0; k < i && i < (size_t)RUN_COLOURS * RUN_DASHES; k++) {
            assert_false(strokes[i].colour == strokes[k].colour &&
                         strokes[i].dash == strokes[k].dash);
        }
    }
}

static void more_settings_of_a_mode_than_dashes_have_colours_of_their_own(void **state)
{
    (void)state;
    size_t ranks[RUN_DASHES + 2] = {MODE_LOCAL};
    struct run_stroke strokes[RUN_DASHES + 2];
    for (size_t i = 1; i < RUN_DASHES + 2; i++) {
        ranks[i] = MODE_RING;
    }
    assert_true(run_strokes_choose(ranks, RUN_DASHES + 1, strokes));
    assert_false(run_strokes_choose(ranks, RUN_DASHES + 2, strokes));
    assert_int_not_equal(strokes[1].colour, strokes[2].colour);
}

static void a_mode_that_is_not_known_has_a_stroke(void **state)
{
    (void)state;
    const size_t ranks[] = {1000, 1000};
    struct run_stroke strokes[2];
    assert_false(run_strokes_choose(ranks, 2, strokes));
    assert_int_not_equal(strokes[0].colour, strokes[1].colour);
    assert_false(run_strokes_choose(NULL, 0, NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_mode_has_its_colour_and_its_settings_have_dashes),
        cmocka_unit_test(settings_of_one_mode_have_colours_then_dashes),
        cmocka_unit_test(more_settings_of_a_mode_than_dashes_have_colours_of_their_own),
        cmocka_unit_test(a_mode_that_is_not_known_has_a_stroke),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
