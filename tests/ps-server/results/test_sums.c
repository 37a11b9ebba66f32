/* Numbers that workers add up, round by round. */
#include "ps-server/results/sums.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on

static void the_sum_has_the_order_of_the_ranks_whatever_that_of_the_messages(void **state)
{
    (void)state;
    // Added in another order, the small ones would survive or not.
    static const double values[3][2] = {{1e16, 1}, {-1e16, 2}, {1, 3}};
    static const uint32_t orders[][3] = {{0, 1, 2}, {2, 0, 1}, {1, 2, 0}, {2, 1, 0}};
    struct sums sums;
    const double *sum;
    assert_int_equal(sums_init(&sums, 3), STATUS_OK);
    for (uint64_t round = 0; round < 4; round++) {
        for (uint32_t i = 0; i < 3; i++) {
            uint32_t rank = orders[round][i];
            assert_int_equal(sums_add(&sums, rank, round, values[rank], 2, &sum), STATUS_OK);
            assert_int_equal(sum != NULL, i == 2);
        }
        assert_true(sum != NULL && sum[0] == 1 && sum[1] == 6);
    }
    sums_finish(&sums);
}

static void rounds_may_differ_in_length(void **state)
{
    (void)state;
    static const double values[] = {1, 2, 3, 4, 5};
    struct sums sums;
    const double *sum;
    assert_int_equal(sums_init(&sums, 2), STATUS_OK);
    for (uint32_t round = 0; round < 8; round++) {
        uint32_t count = 1 + round * 3 % 5;
        assert_int_equal(sums_add(&sums, 1, round, values, count, &sum), STATUS_OK);
        assert_int_equal(sums_add(&sums, 0, round, values, count, &sum), STATUS_OK);
        for (uint32_t i = 0; i < count; i++) {
            assert_true(sum != NULL && sum[i] == 2 * values[i]);
        }
    }
    sums_finish(&sums);
}

static void what_does_not_fit_the_round_is_refused(void **state)
{
    (void)state;
    static const double values[] = {1, 2, 3};
    struct sums sums;
    const double *sum;
    assert_int_equal(sums_init(&sums, 2), STATUS_OK);
    assert_int_equal(sums_add(&sums, 0, 1, values, 3, &sum), STATUS_MISMATCH); // not begun
    assert_int_equal(sums_add(&sums, 0, 0, values, 0, &sum), STATUS_MISMATCH);
    assert_int_equal(sums_add(&sums, 0, 0, values, SUMS_COUNT_MAX + 1, &sum), STATUS_MISMATCH);
    assert_int_equal(sums_add(&sums, 0, 0, values, 3, &sum), STATUS_OK);
    assert_int_equal(sums_add(&sums, 0, 0, values, 3, &sum), STATUS_MISMATCH); // twice
    assert_int_equal(sums_add(&sums, 1, 0, values, 2, &sum), STATUS_MISMATCH); // another length
    assert_null(sum);
    assert_int_equal(sums_add(&sums, 1, 0, values, 3, &sum), STATUS_OK);
    assert_true(sum != NULL && sum[2] == 6);
    sums_finish(&sums);
}

static void what_was_given_can_be_taken_back_until_the_round_is_over(void **state)
{
    (void)state;
    static const double values[] = {1, 2, 3}, others[] = {5, 6};
    struct sums sums;
    const double *sum;
    assert_int_equal(sums_init(&sums, 2), STATUS_OK);
    assert_int_equal(sums_add(&sums, 1, 0, values, 3, &sum), STATUS_OK);
    sums_withdraw(&sums, 1);
    sums_withdraw(&sums, 0); // which has given nothing
    assert_int_equal(sums_add(&sums, 0, 0, others, 2, &sum), STATUS_OK);
    assert_null(sum);
    assert_int_equal(sums_add(&sums, 1, 0, others, 2, &sum), STATUS_OK);
    assert_true(sum != NULL && sum[1] == 12);
    sums_finish(&sums);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_sum_has_the_order_of_the_ranks_whatever_that_of_the_messages),
        cmocka_unit_test(rounds_may_differ_in_length),
        cmocka_unit_test(what_was_given_can_be_taken_back_until_the_round_is_over),
        cmocka_unit_test(what_does_not_fit_the_round_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
