/* Tests of the search for the number of workers from which on another design is ahead. */
#include "deploy/predict/advise/crossover.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The second design is ahead below `turn`, level at it if is_level, and behind above it. */
struct rule {
    uint32_t turn;
    bool is_level;
};

static enum status measure(void *context, uint32_t workers, struct crossover_rates *ret_rates)
{
    const struct rule *rule = context;
    bool is_behind = workers < rule->turn;
    bool is_level = rule->is_level && workers == rule->turn;
    *ret_rates = (struct crossover_rates){is_behind ? 1 : is_level ? 2 : 3, 2};
    return STATUS_OK;
}

/* The first design is ahead, and from 10 workers on it is not known. */
static enum status is_unknown_from_10(void *context, uint32_t workers,
                                      struct crossover_rates *ret_rates)
{
    (void)context;
    *ret_rates = (struct crossover_rates){workers < 10 ? 3 : -1, 2};
    return STATUS_OK;
}

static enum status fails_at_16(void *context, uint32_t workers, struct crossover_rates *ret_rates)
{
    (void)context;
    *ret_rates = (struct crossover_rates){workers, 10};
    return workers == 16 ? STATUS_NO_MEMORY : STATUS_OK;
}

static void test_every_turn_is_found(void **state)
{
    (void)state;
    const uint32_t workers[] = {2, 16, 1024};
    for (uint32_t turn = 3; turn <= 1024; turn++) {
        struct crossover crossover;
        struct rule rule = {turn, false};
        assert_int_equal(crossover_search(workers, 3, measure, &rule, &crossover), STATUS_OK);
        assert_int_equal(crossover.turn_count, 2);
        assert_int_equal(crossover.turns[0].ahead, CROSSOVER_SECOND);
        assert_int_equal(crossover.turns[1].workers, turn);
        assert_int_equal(crossover.turns[1].ahead, CROSSOVER_FIRST);
        assert_int_equal(crossover.workers_last, 1024);
    }
}

static void test_a_lead_that_stays_has_one_turn(void **state)
{
    (void)state;
    const uint32_t workers[] = {2, 16};
    struct crossover crossover;
    struct rule rule = {1000, false};
    assert_int_equal(crossover_search(workers, 2, measure, &rule, &crossover), STATUS_OK);
    assert_int_equal(crossover.turn_count, 1);
    assert_int_equal(crossover.turns[0].ahead, CROSSOVER_SECOND);
}

static void test_neither_is_ahead_where_they_are_level(void **state)
{
    (void)state;
    const uint32_t workers[] = {2, 16};
    struct crossover crossover;
    struct rule rule = {5, true};
    assert_int_equal(crossover_search(workers, 2, measure, &rule, &crossover), STATUS_OK);
    assert_int_equal(crossover.turn_count, 3);
    assert_int_equal(crossover.turns[1].workers, 5);
    assert_int_equal(crossover.turns[1].ahead, CROSSOVER_NEITHER);
    assert_int_equal(crossover.turns[2].workers, 6);
    assert_int_equal(crossover.turns[2].ahead, CROSSOVER_FIRST);
}

static void test_what_is_not_known_has_a_turn_of_its_own(void **state)
{
    (void)state;
    const uint32_t workers[] = {2, 64};
    struct crossover crossover;
    assert_int_equal(crossover_search(workers, 2, is_unknown_from_10, NULL, &crossover), STATUS_OK);
    assert_int_equal(crossover.turn_count, 2);
    assert_int_equal(crossover.turns[0].ahead, CROSSOVER_FIRST);
    assert_int_equal(crossover.turns[1].workers, 10);
    assert_int_equal(crossover.turns[1].ahead, CROSSOVER_UNKNOWN);
}

static void test_a_prediction_that_fails_ends_the_search(void **state)
{
    (void)state;
    const uint32_t workers[] = {2, 16, 32};
    struct crossover crossover;
    assert_int_equal(crossover_search(workers, 3, fails_at_16, NULL, &crossover), STATUS_NO_MEMORY);
}

/* What is printed of a turn at 48 workers, with such a global batch. */
static void expect_turn(uint32_t global_batch, const char *want)
{
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    struct crossover crossover = {
        .first = {{.kind = MODE_RING}, 0},
        .second = {{.kind = MODE_PS_SYNC}, 1},
        .turns = {{2, CROSSOVER_SECOND, {1, 2}}, {48, CROSSOVER_FIRST, {3, 2}}},
        .turn_count = 2,
        .workers_last = 64,
        .rates_last = {3, 2},
        .global_batch = global_batch};
    const struct crossover_list list = {&crossover, 1};
    assert_non_null(stream);
    crossover_print(&list, stream);
    fclose(stream);
    if (strstr(text, want) == NULL) {
        fail_msg("%s instead of: %s", text, want);
    }
    free(text);
}

static void test_a_turn_that_does_not_divide_the_batch_says_so(void **state)
{
    (void)state;
    expect_turn(0, "from N = 48 on ring (by 50.0 %); at");
    expect_turn(96, "from N = 48 on ring (by 50.0 %); at");
    expect_turn(64, "from N = 48 on ring (by 50.0 %) [64 images are not divisible by 48 workers: "
                    "some have 2, some 1]; at");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_turn_is_found),
        cmocka_unit_test(test_a_lead_that_stays_has_one_turn),
        cmocka_unit_test(test_neither_is_ahead_where_they_are_level),
        cmocka_unit_test(test_what_is_not_known_has_a_turn_of_its_own),
        cmocka_unit_test(test_a_prediction_that_fails_ends_the_search),
        cmocka_unit_test(test_a_turn_that_does_not_divide_the_batch_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
