/* Tests of the map of the fastest designs. */
#include "deploy/predict/advise/winners.h"
#include "tests/support/deploy/small_study.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdlib.h>

static struct small_study *create(const char *modes, uint32_t threads)
{
    struct small_study *small = small_study_create(8, modes, "1,8", "2,8");
    assert_non_null(small);
    small->study.threads = threads;
    assert_int_equal(study_make(&small->study), STATUS_OK);
    return small;
}

static void test_a_server_alone_never_wins_against_several(void **state)
{
    (void)state;
    struct small_study *small = create("ps-sync", 0);
    struct winners *winners = calloc(1, sizeof(*winners));
    assert_non_null(winners);
    assert_int_equal(winners_make(&small->study, winners), STATUS_OK);
    for (size_t f = 0; f < WINNERS_FACTORS; f++) {
        assert_int_equal(winners->cells[1][f].design, 1); // 8 servers
        assert_true(winners->cells[1][f].lead > 0);
    }
    // The slower links are, the more it matters.
    assert_true(winners->cells[1][0].lead > winners->cells[1][WINNERS_FACTORS - 1].lead);
    const struct study_point *points = small->study.points;
    size_t as_is = 3;
    assert_float_equal(winners_factors[as_is], 1, 0);
    assert_float_equal(winners->cells[1][as_is].lead,
                       (points[3].made.images_per_s / points[2].made.images_per_s - 1), 1e-6);
    assert_float_equal(winners_bandwidth(&small->study, as_is), 125e6, 1);
    free(winners);
    small_study_destroy(small);
}

static void test_one_design_has_no_lead(void **state)
{
    (void)state;
    struct small_study *small = create("ring", 0);
    struct winners *winners = calloc(1, sizeof(*winners));
    assert_non_null(winners);
    assert_int_equal(winners_make(&small->study, winners), STATUS_OK);
    assert_int_equal(winners->cells[0][0].design, 0);
    assert_float_equal(winners->cells[0][0].lead, 0, 0);
    free(winners);
    small_study_destroy(small);
}

static void test_without_a_known_target_nobody_wins(void **state)
{
    (void)state;
    struct convergence_row row = {.images = 64, .updates = 100};
    const struct convergence convergence = {&row, 1};
    struct small_study *small = create("ring", 0);
    struct winners *winners = calloc(1, sizeof(*winners));
    assert_non_null(winners);
    small->study.convergence = &convergence;
    assert_int_equal(winners_make(&small->study, winners), STATUS_OK);
    assert_int_equal(winners->cells[0][0].design, 0); // 2 workers make updates of 64 images
    assert_true(winners->cells[1][0].design == WINNERS_NONE);
    free(winners);
    small_study_destroy(small);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_server_alone_never_wins_against_several),
        cmocka_unit_test(test_one_design_has_no_lead),
        cmocka_unit_test(test_without_a_known_target_nobody_wins),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
