/* The reference linear layer: a closed form, finite differences. */
#include "tests/worker/device/ref_kernel_fixture.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on

/* Linear in the input and in the parameters: no curvature, so a large step. */
#define STEP 0.5f

static void the_sample_is_flattened_channel_by_channel(void **state)
{
    (void)state;
    const struct op op = {.kind = OP_LINEAR, .has_bias = true, .x = {2, 1, 2}, .y = {2, 1, 1}};
    struct ref_kernel_fixture fixture;
    ref_kernel_fixture_init(&fixture, &ref_linear, &op, 2, 0);
    static const float x[] = {1, 2, 3, 4, -1, 0, 1, 0};
    static const float params[] = {1, 10, 100, 1000, 0, 0, 0, 1, 0.5f, -4};
    for (size_t i = 0; i < 8; i++) {
        fixture.x[i] = x[i];
    }
    for (size_t i = 0; i < 10; i++) {
        fixture.params[i] = params[i];
    }
    ref_kernel_fixture_forward(&fixture);
    static const float expected[] = {4321.5f, 0, 99.5f, -4};
    assert_memory_equal(fixture.y, expected, sizeof(expected));
    ref_kernel_fixture_finish(&fixture);
}

static void gradients_agree_with_finite_differences(void **state)
{
    (void)state;
    static const struct op ops[] = {
        {.kind = OP_LINEAR, .has_bias = true, .x = {1, 1, 1}, .y = {1, 1, 1}},
        {.kind = OP_LINEAR, .has_bias = true, .x = {7, 1, 1}, .y = {5, 1, 1}},
        {.kind = OP_LINEAR, .has_bias = true, .x = {3, 2, 5}, .y = {11, 1, 1}},
    };
    for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
        for (uint32_t batch_size = 1; batch_size <= 3; batch_size++) {
            struct ref_kernel_fixture fixture;
            ref_kernel_fixture_init(&fixture, &ref_linear, &ops[i], batch_size, i);
            ref_kernel_fixture_forward(&fixture);
            ref_kernel_fixture_backward(&fixture);
            assert_true(ref_kernel_fixture_x_error(&fixture, STEP) < 1e-5);
            assert_true(ref_kernel_fixture_params_error(&fixture, STEP) < 1e-5);
            ref_kernel_fixture_finish(&fixture);
        }
    }
}

static void without_an_input_gradient_only_parameters_get_theirs(void **state)
{
    (void)state;
    const struct op op = {.kind = OP_LINEAR, .has_bias = true, .x = {3, 2, 2}, .y = {4, 1, 1}};
    struct ref_kernel_fixture fixture;
    ref_kernel_fixture_init(&fixture, &ref_linear, &op, 2, 1);
    fixture.call.dx = NULL;
    ref_kernel_fixture_forward(&fixture);
    ref_kernel_fixture_backward(&fixture);
    assert_true(ref_kernel_fixture_params_error(&fixture, STEP) < 1e-5);
    ref_kernel_fixture_finish(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_sample_is_flattened_channel_by_channel),
        cmocka_unit_test(gradients_agree_with_finite_differences),
        cmocka_unit_test(without_an_input_gradient_only_parameters_get_theirs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
