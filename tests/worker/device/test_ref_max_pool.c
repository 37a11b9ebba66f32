/* The reference maximum pooling: ties, windows that overlap or leave a rest, finite differences. */
#include "tests/worker/device/ref_kernel_fixture.h"

#include <math.h>

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on

/* Linear while no maximum changes. Inputs are whole numbers, all different: a step of a quarter
 * changes no order. */
#define STEP 0.25f

static struct op make_op(struct shape x, uint32_t window, uint32_t stride)
{
    struct op op = {.kind = OP_MAX_POOL, .x = x, .y = x, .window = window, .stride = stride};
    op.y.rows = (x.rows - window) / stride + 1;
    op.y.columns = (x.columns - window) / stride + 1;
    return op;
}

/* 0 ... count-1 in an order that has no pattern within a window. */
static void fill_with_distinct(float *values, size_t count)
{
    const size_t step = 7919; // a prime larger than any count here: a permutation
    for (size_t i = 0; i < count; i++) {
        values[i] = (float)(i * step % count);
    }
}

static void the_first_of_equal_maxima_gets_the_gradient(void **state)
{
    (void)state;
    struct op op = make_op((struct shape){1, 2, 4}, 2, 2);
    struct ref_kernel_fixture fixture;
    ref_kernel_fixture_init(&fixture, &ref_max_pool, &op, 1, 0);
    static const float x[] = {1, 5, 0, 0, 5, 5, 0, 0};
    for (size_t i = 0; i < 8; i++) {
        fixture.x[i] = x[i];
    }
    fixture.dy[0] = 3;
    fixture.dy[1] = 4;
    ref_kernel_fixture_forward(&fixture);
    ref_kernel_fixture_backward(&fixture);
    static const float y[] = {5, 0};
    static const float dx[] = {0, 3, 4, 0, 0, 0, 0, 0};
    assert_memory_equal(fixture.y, y, sizeof(y));
    assert_memory_equal(fixture.dx, dx, sizeof(dx));
    ref_kernel_fixture_finish(&fixture);
}

static void rows_and_columns_that_fill_no_window_are_left_out(void **state)
{
    (void)state;
    struct op op = make_op((struct shape){1, 3, 3}, 2, 2);
    struct ref_kernel_fixture fixture;
    ref_kernel_fixture_init(&fixture, &ref_max_pool, &op, 1, 0);
    for (size_t i = 0; i < 9; i++) {
        fixture.x[i] = (float)i;
    }
    fixture.dy[0] = 1;
    ref_kernel_fixture_forward(&fixture);
    ref_kernel_fixture_backward(&fixture);
    assert_true(fixture.y_count == 1 && fixture.y[0] == 4);
    static const float dx[] = {0, 0, 0, 0, 1, 0, 0, 0, 0};
    assert_memory_equal(fixture.dx, dx, sizeof(dx));
    ref_kernel_fixture_finish(&fixture);
}

static void not_a_number_is_a_maximum(void **state)
{
    (void)state;
    struct op op = make_op((struct shape){1, 2, 2}, 2, 2);
    struct ref_kernel_fixture fixture;
    ref_kernel_fixture_init(&fixture, &ref_max_pool, &op, 1, 0);
    for (size_t i = 0; i < 4; i++) {
        fixture.x[i] = i == 2 ? nanf("") : (float)i;
    }
    fixture.kernel->forward(&fixture.call);
    assert_true(isnan(fixture.y[0]));
    ref_kernel_fixture_finish(&fixture);
}

static void gradients_agree_with_finite_differences(void **state)
{
    (void)state;
    const struct op ops[] = {
        make_op((struct shape){2, 4, 4}, 2, 2), make_op((struct shape){3, 5, 7}, 2, 2),
        make_op((struct shape){2, 6, 6}, 3, 1), // overlapping: gradients add up
        make_op((struct shape){1, 7, 5}, 3, 2), make_op((struct shape){2, 6, 5}, 1, 2),
    };
    for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
        struct ref_kernel_fixture fixture;
        ref_kernel_fixture_init(&fixture, &ref_max_pool, &ops[i], 2, i);
        fill_with_distinct(fixture.x, fixture.x_count);
        ref_kernel_fixture_forward(&fixture);
        ref_kernel_fixture_backward(&fixture);
        assert_true(ref_kernel_fixture_x_error(&fixture, STEP) < 1e-5);
        ref_kernel_fixture_finish(&fixture);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_of_equal_maxima_gets_the_gradient),
        cmocka_unit_test(rows_and_columns_that_fill_no_window_are_left_out),
        cmocka_unit_test(not_a_number_is_a_maximum),
        cmocka_unit_test(gradients_agree_with_finite_differences),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
