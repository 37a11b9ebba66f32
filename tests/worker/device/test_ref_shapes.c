/* The reference kernels that only move values about: add, subsample, pad, global pooling. */
#include "tests/worker/device/ref_kernel_fixture.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on

#include <math.h>

static void a_sum_passes_its_gradient_to_both_operands(void **state)
{
    (void)state;
    const struct op op = {.kind = OP_ADD, .x = {2, 3, 3}, .y = {2, 3, 3}};
    struct ref_kernel_fixture fixture;
    ref_kernel_fixture_init(&fixture, &ref_add, &op, 2, 1);
    ref_kernel_fixture_forward(&fixture);
    ref_kernel_fixture_backward(&fixture);
    for (size_t i = 0; i < fixture.x_count; i++) {
        assert_true(fixture.y[i] == fixture.x[i] + fixture.other[i]);
    }
    assert_true(ref_kernel_fixture_x_error(&fixture, 0.25f) < 1e-5);
    assert_true(ref_kernel_fixture_other_error(&fixture, 0.25f) < 1e-5);
    ref_kernel_fixture_finish(&fixture);
}

static void subsampling_takes_every_other_pixel_and_adds_channels_of_zeros(void **state)
{
    (void)state;
    const struct op op = {
        .kind = OP_SUBSAMPLE, .x = {2, 3, 5}, .y = {3, 2, 3}, .window = 1, .stride = 2};
    struct ref_kernel_fixture fixture;
    ref_kernel_fixture_init(&fixture, &ref_subsample, &op, 2, 2);
    for (size_t i = 0; i < fixture.x_count; i++) {
        fixture.x[i] = (float)(i + 1);
    }
    ref_kernel_fixture_forward(&fixture);
    ref_kernel_fixture_backward(&fixture);
    static const float y[] = {1,  3,  5,  11, 13, 15, 16, 18, 20, 26, 28, 30, 0, 0, 0, 0, 0, 0,
                              31, 33, 35, 41, 43, 45, 46, 48, 50, 56, 58, 60, 0, 0, 0, 0, 0, 0};
    assert_memory_equal(fixture.y, y, sizeof(y));
    assert_true(ref_kernel_fixture_x_error(&fixture, 0.25f) < 1e-5);
    ref_kernel_fixture_finish(&fixture);
}

static void padding_puts_zeros_around_each_channel(void **state)
{
    (void)state;
    const struct op op = {.kind = OP_PAD, .x = {2, 1, 2}, .y = {2, 3, 4}, .padding = 1};
    struct ref_kernel_fixture fixture;
    ref_kernel_fixture_init(&fixture, &ref_pad, &op, 1, 3);
    for (size_t i = 0; i < fixture.x_count; i++) {
        fixture.x[i] = (float)(i + 1);
    }
    ref_kernel_fixture_forward(&fixture);
    ref_kernel_fixture_backward(&fixture);
    static const float y[] = {0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0,
                              0, 0, 0, 0, 0, 3, 4, 0, 0, 0, 0, 0};
    assert_memory_equal(fixture.y, y, sizeof(y));
    assert_true(ref_kernel_fixture_x_error(&fixture, 0.25f) < 1e-5);
    ref_kernel_fixture_finish(&fixture);
}

static void global_pooling_is_the_mean_of_each_channel(void **state)
{
    (void)state;
    const struct op op = {.kind = OP_GLOBAL_POOL, .x = {2, 2, 3}, .y = {2, 1, 1}};
    struct ref_kernel_fixture fixture;
    ref_kernel_fixture_init(&fixture, &ref_global_pool, &op, 2, 4);
    for (size_t i = 0; i < fixture.x_count; i++) {
        fixture.x[i] = (float)i;
    }
    ref_kernel_fixture_forward(&fixture);
    ref_kernel_fixture_backward(&fixture);
    static const float y[] = {2.5f, 8.5f, 14.5f, 20.5f};
    assert_memory_equal(fixture.y, y, sizeof(y));
    assert_true(fabsf(fixture.dx[7] - fixture.dy[1] / 6) < 1e-7f);
    assert_true(ref_kernel_fixture_x_error(&fixture, 0.25f) < 1e-5);
    ref_kernel_fixture_finish(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sum_passes_its_gradient_to_both_operands),
        cmocka_unit_test(subsampling_takes_every_other_pixel_and_adds_channels_of_zeros),
        cmocka_unit_test(padding_puts_zeros_around_each_channel),
        cmocka_unit_test(global_pooling_is_the_mean_of_each_channel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
