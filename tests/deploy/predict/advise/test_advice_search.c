/* Tests of the search for the best combination. */
#include "deploy/predict/advise/advice_search.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on

/* Scores: each axis adds what its value is worth. */
struct worth {
    double of[ADVICE_AXES][ADVICE_VALUES_MAX];
    size_t asked;
};

static enum status score(void *context, const struct advice_picks *picks, size_t count,
                         double *ret_scores)
{
    struct worth *worth = context;
    for (size_t i = 0; i < count; i++) {
        ret_scores[i] = 1;
        for (size_t axis = 0; axis < ADVICE_AXES; axis++) {
            ret_scores[i] += worth->of[axis][picks[i].of[axis]];
        }
    }
    worth->asked += count;
    return STATUS_OK;
}

/* What both ways of searching find. */
static void finds(struct worth *worth, const size_t *counts, const size_t *wanted)
{
    for (size_t way = 0; way < 2; way++) {
        struct advice_space space = {.exhaustive_max = way == 0 ? ADVICE_TRIES_MAX : 0};
        const struct advice_scorer scorer = {score, worth};
        struct advice_found found;
        for (size_t axis = 0; axis < ADVICE_AXES; axis++) {
            space.counts[axis] = axis < 3 ? counts[axis] : 1;
        }
        assert_int_equal(advice_search(&space, &scorer, &found), STATUS_OK);
        assert_int_equal(found.is_exhaustive, way == 0);
        for (size_t axis = 0; axis < 3; axis++) {
            assert_int_equal(found.picks.of[axis], wanted[axis]);
        }
    }
}

static void test_the_best_of_each_axis_is_found_either_way(void **state)
{
    (void)state;
    struct worth worth = {.of = {{0, 0.5, 0.2}, {0, 0.1}, {0, -0.1, -0.2}}};
    finds(&worth, (size_t[]){3, 2, 3}, (size_t[]){1, 1, 0});
}

static void test_the_default_stays_where_nothing_brings_more(void **state)
{
    (void)state;
    struct worth worth = {.of = {{0, 0.0005, 0.0009}, {0, 0}, {0, -1}}};
    finds(&worth, (size_t[]){3, 2, 2}, (size_t[]){0, 0, 0});
}

static void test_of_values_that_are_as_good_the_first_is_taken(void **state)
{
    (void)state;
    struct worth worth = {.of = {{0, 0.5, 0.5001, 0.5}, {0}, {0}}};
    finds(&worth, (size_t[]){4, 1, 1}, (size_t[]){1, 0, 0});
}

static enum status score_pairs(void *context, const struct advice_picks *picks, size_t count,
                               double *ret_scores)
{
    (void)context;
    for (size_t i = 0; i < count; i++) {
        // Either of the two alone cannot be; both together are the best.
        bool first = picks[i].of[0] == 1, second = picks[i].of[1] == 1;
        ret_scores[i] = first && second ? 2 : first || second ? 0 : 1;
    }
    return STATUS_OK;
}

static void test_all_combinations_find_what_needs_two_changes(void **state)
{
    (void)state;
    const struct advice_space space = {.counts = {2, 2, 1, 1, 1}, .exhaustive_max = 4};
    const struct advice_scorer scorer = {score_pairs, NULL};
    struct advice_found found;
    assert_int_equal(advice_combinations(&space), 4);
    assert_int_equal(advice_search(&space, &scorer, &found), STATUS_OK);
    assert_int_equal(found.picks.of[0], 1);
    assert_int_equal(found.picks.of[1], 1);
    assert_float_equal(found.score, 2, 0);
}

static enum status fails(void *context, const struct advice_picks *picks, size_t count,
                         double *ret_scores)
{
    (void)context, (void)picks, (void)count, (void)ret_scores;
    return STATUS_NO_MEMORY;
}

static void test_a_score_that_fails_ends_the_search(void **state)
{
    (void)state;
    const struct advice_scorer scorer = {fails, NULL};
    for (size_t most = 0; most <= 4; most += 4) {
        const struct advice_space space = {.counts = {2, 2, 1, 1, 1}, .exhaustive_max = most};
        struct advice_found found;
        assert_int_equal(advice_search(&space, &scorer, &found), STATUS_NO_MEMORY);
    }
}

static void test_few_combinations_are_asked_for_axis_by_axis(void **state)
{
    (void)state;
    struct worth worth = {.of = {{0, 1}}};
    const struct advice_space space = {.counts = {16, 16, 16, 16, 1}, .exhaustive_max = 100000};
    const struct advice_scorer scorer = {score, &worth};
    struct advice_found found;
    assert_int_equal(advice_combinations(&space), ADVICE_TRIES_MAX + 1);
    assert_int_equal(advice_search(&space, &scorer, &found), STATUS_OK);
    assert_false(found.is_exhaustive);
    assert_in_range(worth.asked, 64, 2 * (64 + 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_best_of_each_axis_is_found_either_way),
        cmocka_unit_test(test_the_default_stays_where_nothing_brings_more),
        cmocka_unit_test(test_of_values_that_are_as_good_the_first_is_taken),
        cmocka_unit_test(test_all_combinations_find_what_needs_two_changes),
        cmocka_unit_test(test_a_score_that_fails_ends_the_search),
        cmocka_unit_test(test_few_combinations_are_asked_for_axis_by_axis),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
