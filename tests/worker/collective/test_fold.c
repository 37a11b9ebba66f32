/* Tests of fold: against one value after the other. */
#include "worker/collective/fold.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <math.h>

#define COUNT 1500 // more than one block

static void floats_are_added_in_doubles_and_rounded_once(void **state)
{
    (void)state;
    static float a[COUNT], b[COUNT], c[COUNT];
    for (int i = 0; i < COUNT; i++) {
        a[i] = 1.0f;
        b[i] = 0x1p-24f; // half of what a float of 1 can show
        c[i] = 0x1p-24f;
    }
    const void *sources[] = {a, b, c};
    fold(FOLD_FLOAT32, FOLD_SUM, sources, 3, b, COUNT);
    for (int i = 0; i < COUNT; i++) {
        assert_true(b[i] == 1.0f + 0x1p-23f); // in floats it would stay 1
    }
}

static void doubles_are_added_in_their_order(void **state)
{
    (void)state;
    double a[] = {0.1}, b[] = {0.2}, c[] = {0.3};
    const void *sources[] = {a, b, c};
    fold(FOLD_FLOAT64, FOLD_SUM, sources, 3, c, 1);
    double wanted = 0.1;
    wanted += 0.2;
    wanted += 0.3;
    assert_true(c[0] == wanted);
}

static void integers_wrap_around_and_means_round_towards_zero(void **state)
{
    (void)state;
    int8_t a[] = {127, -7}, b[] = {1, 0};
    const void *narrow[] = {a, b};
    fold(FOLD_INT8, FOLD_SUM, narrow, 2, a, 2);
    assert_int_equal(a[0], -128);
    assert_int_equal(a[1], -7);
    fold(FOLD_INT8, FOLD_MEAN, narrow, 2, a, 2);
    assert_int_equal(a[1], -3);
    int64_t wide[] = {INT64_MAX}, one[] = {1};
    const void *sources[] = {wide, one};
    fold(FOLD_INT64, FOLD_SUM, sources, 2, wide, 1);
    assert_true(wide[0] == INT64_MIN);
    int32_t factor[] = {65536};
    const void *factors[] = {factor, factor};
    fold(FOLD_INT32, FOLD_PRODUCT, factors, 2, factor, 1);
    assert_int_equal(factor[0], 0);
}

static void the_least_of_what_is_no_number_is_none(void **state)
{
    (void)state;
    float a[] = {1, NAN, 3}, b[] = {2, 1, NAN}, least[3], greatest[3];
    const void *sources[] = {a, b};
    fold(FOLD_FLOAT32, FOLD_MIN, sources, 2, least, 3);
    fold(FOLD_FLOAT32, FOLD_MAX, sources, 2, greatest, 3);
    assert_true(least[0] == 1 && greatest[0] == 2);
    assert_true(isnan(least[1]) && isnan(least[2]) && isnan(greatest[1]) && isnan(greatest[2]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(floats_are_added_in_doubles_and_rounded_once),
        cmocka_unit_test(doubles_are_added_in_their_order),
        cmocka_unit_test(integers_wrap_around_and_means_round_towards_zero),
        cmocka_unit_test(the_least_of_what_is_no_number_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
