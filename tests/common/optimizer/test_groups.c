/* Tests of groups of parameters: how runs are cut, and what is refused and told apart. */
#include "common/optimizer/groups.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdlib.h>
#include <string.h>

static const struct optimizer_group rows[2] = {{1, {.momentum = 0.9}},
                                               {0.5, {.momentum = 0.8, .weight_decay = 0.1}}};
static const uint64_t ends[4] = {3, 10, 11, 20};
static const uint32_t members[4] = {0, 1, 0, 1};

static struct optimizer_groups sample(void)
{
    return (struct optimizer_groups){
        .groups = rows, .group_count = 2, .run_count = 4, .run_ends = ends, .run_groups = members};
}

/* Value by value: the group of each in the spans, one behind the other. */
static void runs_are_cut_as_the_spans_are(void **state)
{
    (void)state;
    const struct span cuts[][3] = {{{0, 20}, {0, 0}, {0, 0}},
                                   {{12, 8}, {2, 9}, {0, 2}},
                                   {{10, 1}, {4, 2}, {19, 1}},
                                   {{11, 9}, {5, 0}, {3, 7}}};
    const struct optimizer_groups groups = sample();
    for (size_t i = 0; i < sizeof(cuts) / sizeof(cuts[0]); i++) {
        struct optimizer_run *runs;
        uint32_t count, run = 0;
        uint64_t place = 0;
        assert_int_equal(optimizer_groups_cut(&groups, cuts[i], 3, &runs, &count), STATUS_OK);
        for (size_t k = 0; k < 3; k++) {
            for (uint64_t j = 0; j < cuts[i][k].count; j++, place++) {
                uint64_t value = cuts[i][k].offset + j;
                uint32_t expected = value < 3 ? 0 : value < 10 ? 1 : value < 11 ? 0 : 1;
                run += place == runs[run].end;
                assert_true(run < count);
                assert_int_equal(runs[run].group, expected);
            }
        }
        assert_int_equal(runs[count - 1].end, place);
        free(runs);
    }
}

static void what_does_not_cover_the_model_or_fit_the_optimizer_is_refused(void **state)
{
    (void)state;
    struct optimizer_groups groups = sample();
    assert_true(optimizer_groups_are_valid(&groups, OPTIMIZER_MOMENTUM, 20));
    assert_false(optimizer_groups_are_valid(&groups, OPTIMIZER_MOMENTUM, 21));
    assert_false(optimizer_groups_are_valid(&groups, OPTIMIZER_MOMENTUM, 19));
    assert_false(optimizer_groups_are_valid(&groups, OPTIMIZER_ADAM, 20)); // epsilon is 0
    assert_false(optimizer_groups_are_valid(&groups, OPTIMIZER_AUTO, 20));
    groups.run_count = 0;
    assert_false(optimizer_groups_are_valid(&groups, OPTIMIZER_MOMENTUM, 20));
    groups.group_count = 1;
    assert_true(optimizer_groups_are_valid(&groups, OPTIMIZER_MOMENTUM, 20));
}

static void a_difference_is_named(void **state)
{
    (void)state;
    struct optimizer_group others[2];
    struct optimizer_difference differs;
    const struct optimizer_groups groups = sample();
    struct optimizer_groups other = sample();
    memcpy(others, rows, sizeof(rows));
    other.groups = others;
    const struct optimizer_side left = {&groups, 0.2}, right = {&other, 0.2};
    assert_false(optimizer_groups_differ(left, right, OPTIMIZER_MOMENTUM, 0, &differs));
    others[1].settings.beta1 = 0.5; // which it does not use
    assert_false(optimizer_groups_differ(left, right, OPTIMIZER_MOMENTUM, 0, &differs));
    others[1].settings.weight_decay = 0.2;
    assert_true(optimizer_groups_differ(left, right, OPTIMIZER_MOMENTUM, 0, &differs));
    assert_string_equal(differs.name, "weight-decay");
    assert_int_equal(differs.group, 1);
    assert_true(differs.value == 0.1 && differs.other == 0.2);
    others[0].rate = 3;
    assert_true(optimizer_groups_differ(left, right, OPTIMIZER_MOMENTUM, 0, &differs));
    assert_string_equal(differs.name, "lr");
    assert_true(differs.value == 0.2 && differs.other == 0.2 * 3);
    others[0].rate = 1 + 1e-9;
    others[1] = rows[1];
    assert_false(optimizer_groups_differ(left, right, OPTIMIZER_MOMENTUM, 1e-6, &differs));
    assert_true(optimizer_groups_differ(left, right, OPTIMIZER_MOMENTUM, 0, &differs));
    other.group_count = 1;
    assert_true(optimizer_groups_differ(left, right, OPTIMIZER_MOMENTUM, 0, &differs));
    assert_string_equal(differs.name, "groups");
}

static void a_copy_stands_by_itself(void **state)
{
    (void)state;
    const struct optimizer_groups groups = sample();
    struct optimizer_groups *copy;
    assert_int_equal(optimizer_groups_copy(&groups, &copy), STATUS_OK);
    assert_ptr_not_equal(copy->groups, groups.groups);
    assert_memory_equal(copy->groups, rows, sizeof(rows));
    assert_memory_equal(copy->run_ends, ends, sizeof(ends));
    assert_memory_equal(copy->run_groups, members, sizeof(members));
    free(copy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs_are_cut_as_the_spans_are),
        cmocka_unit_test(what_does_not_cover_the_model_or_fit_the_optimizer_is_refused),
        cmocka_unit_test(a_difference_is_named),
        cmocka_unit_test(a_copy_stands_by_itself),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
