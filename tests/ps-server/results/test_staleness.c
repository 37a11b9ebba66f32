/* Tests of the histogram of staleness. */
#include "ps-server/results/staleness.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on

static void counts_mean_and_maximum_are_those_of_what_was_added(void **state)
{
    (void)state;
    struct staleness staleness = {0};
    assert_int_equal(staleness_bins(&staleness), 1);
    assert_true(staleness_mean(&staleness) == 0);
    staleness_add(&staleness, 0);
    staleness_add_many(&staleness, 3, 2);
    staleness_add_many(&staleness, 9, 0);
    assert_int_equal(staleness.counts[0], 1);
    assert_int_equal(staleness.counts[3], 2);
    assert_int_equal(staleness.total, 3);
    assert_int_equal(staleness.max, 3);
    assert_int_equal(staleness_bins(&staleness), 4);
    assert_true(staleness_mean(&staleness) == 2);
}

static void what_is_beyond_the_last_bin_is_counted_in_it(void **state)
{
    (void)state;
    struct staleness staleness = {0};
    staleness_add(&staleness, 5000);
    assert_int_equal(staleness.counts[STALENESS_BINS - 1], 1);
    assert_int_equal(staleness.max, 5000);
    assert_true(staleness_mean(&staleness) == 5000);
    assert_int_equal(staleness_bins(&staleness), STALENESS_BINS);
}

static void counts_of_more_shards_become_those_of_fewer(void **state)
{
    (void)state;
    struct staleness staleness = {0};
    staleness_add_many(&staleness, 0, 30);
    staleness_add_many(&staleness, 4, 61); // one shard was behind
    staleness_scale(&staleness, 2, 3);
    assert_int_equal(staleness.counts[0], 20);
    assert_int_equal(staleness.counts[4], 41);
    assert_int_equal(staleness.total, 61);
    assert_int_equal(staleness.max, 4);
    assert_true(staleness.sum > 162.66 && staleness.sum < 162.67); // 244 * 2 / 3
}

/* Six gradients on three shards: 18 counts, two in each of nine bins. On two shards they are 12, so
 * each bin would have 4/3. */
static void the_total_is_exact_where_each_gradient_counts_on_every_shard(void **state)
{
    (void)state;
    struct staleness staleness = {0};
    for (uint64_t i = 0; i < 9; i++) {
        staleness_add_many(&staleness, i, 2);
    }
    staleness_scale(&staleness, 2, 3);
    assert_int_equal(staleness.total, 12);
    uint64_t total = 0;
    for (uint32_t i = 0; i < STALENESS_BINS; i++) {
        uint64_t most = i < 9 ? 2 : 0, least = i < 9 ? 1 : 0;
        assert_in_range(staleness.counts[i], least, most);
        total += staleness.counts[i];
    }
    assert_int_equal(total, 12);
    staleness_scale(&staleness, 1, 2);
    assert_int_equal(staleness.total, 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_mean_and_maximum_are_those_of_what_was_added),
        cmocka_unit_test(what_is_beyond_the_last_bin_is_counted_in_it),
        cmocka_unit_test(counts_of_more_shards_become_those_of_fewer),
        cmocka_unit_test(the_total_is_exact_where_each_gradient_counts_on_every_shard),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
