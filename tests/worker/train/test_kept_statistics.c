/* Tests of the statistics that a worker process keeps between generations. */
#include "worker/train/kept_statistics.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on

static void a_rank_gets_its_own_and_another_one_those_of_the_first(void **state)
{
    (void)state;
    struct kept_statistics kept = {.values = NULL};
    const struct rank_block ranks = {4, 2};
    bool is_own;
    assert_null(kept_statistics_find(&kept, 4, 3, &is_own));
    assert_false(is_own);
    assert_int_equal(kept_statistics_create(&kept, ranks, 3), STATUS_OK);
    kept_statistics_at(&kept, 0)[2] = 1;
    kept_statistics_at(&kept, 1)[2] = 2;
    assert_true(kept_statistics_find(&kept, 5, 3, &is_own)[2] == 2);
    assert_true(is_own);
    assert_true(kept_statistics_find(&kept, 6, 3, &is_own)[2] == 1);
    assert_false(is_own);
    assert_null(kept_statistics_find(&kept, 5, 4, &is_own)); // of another model
    kept_statistics_finish(&kept);
    assert_null(kept_statistics_find(&kept, 5, 3, &is_own));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rank_gets_its_own_and_another_one_those_of_the_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
