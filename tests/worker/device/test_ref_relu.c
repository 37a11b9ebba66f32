/* The reference rectifier: special values, finite differences. */
#include "tests/worker/device/ref_kernel_fixture.h"

#include <math.h>

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on

/* Linear on each side of 0. Inputs are moved out of reach of the step. */
#define STEP 0.25f

static void negative_values_and_their_gradients_become_zero(void **state)
{
    (void)state;
    const struct op op = {.kind = OP_RELU, .x = {5, 1, 1}, .y = {5, 1, 1}};
    struct ref_kernel_fixture fixture;
    ref_kernel_fixture_init(&fixture, &ref_relu, &op, 1, 0);
    static const float x[] = {-2, 0, 3, -INFINITY, INFINITY};
    for (size_t i = 0; i < 5; i++) {
        fixture.x[i] = x[i];
        fixture.dy[i] = 7;
    }
    ref_kernel_fixture_forward(&fixture);
    ref_kernel_fixture_backward(&fixture);
    static const float y[] = {0, 0, 3, 0, INFINITY};
    static const float dx[] = {0, 0, 7, 0, 7}; // at 0 by definition 0
    assert_memory_equal(fixture.y, y, sizeof(y));
    assert_memory_equal(fixture.dx, dx, sizeof(dx));
    ref_kernel_fixture_finish(&fixture);
}

static void not_a_number_goes_through(void **state)
{
    (void)state;
    const struct op op = {.kind = OP_RELU, .x = {1, 1, 1}, .y = {1, 1, 1}};
    struct ref_kernel_fixture fixture;
    ref_kernel_fixture_init(&fixture, &ref_relu, &op, 1, 0);
    fixture.x[0] = nanf("");
    fixture.kernel->forward(&fixture.call);
    assert_true(isnan(fixture.y[0]));
    ref_kernel_fixture_finish(&fixture);
}

static void gradients_agree_with_finite_differences(void **state)
{
    (void)state;
    const struct op op = {.kind = OP_RELU, .x = {3, 5, 7}, .y = {3, 5, 7}};
    struct ref_kernel_fixture fixture;
    ref_kernel_fixture_init(&fixture, &ref_relu, &op, 3, 1);
    for (size_t i = 0; i < fixture.x_count; i++) {
        fixture.x[i] += fixture.x[i] < 0 ? -2 * STEP : 2 * STEP;
    }
    ref_kernel_fixture_forward(&fixture);
    ref_kernel_fixture_backward(&fixture);
    assert_true(ref_kernel_fixture_x_error(&fixture, STEP) < 1e-5);
    ref_kernel_fixture_finish(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(negative_values_and_their_gradients_become_zero),
        cmocka_unit_test(not_a_number_goes_through),
        cmocka_unit_test(gradients_agree_with_finite_differences),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
