/* The reference convolution: closed forms, a second way of writing it, finite differences. */
#include "tests/worker/device/ref_kernel_fixture.h"
#include "worker/device/ref/sanitized.h"
#include "worker/model/layer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on

/* Convolution is linear in the input and in the parameters: no curvature, so a large step. */
#define STEP 0.5f

struct geometry {
    uint32_t channels, rows, columns, results;
    uint32_t window, stride, padding;
    uint32_t batch_size;
};

static const struct geometry geometries[] = {
    {1, 1, 1, 1, 1, 1, 0, 1}, // a multiplication
    {3, 5, 5, 4, 3, 1, 1, 2}, // same size
    {2, 6, 5, 3, 3, 1, 0, 3}, // valid, not square
    {2, 7, 7, 3, 3, 2, 1, 2}, // strided, the window ends at the edge
    {2, 8, 6, 3, 3, 2, 1, 2}, // strided, the last rows are not reached
    {1, 9, 9, 2, 5, 3, 2, 1}, // large window, large stride
    {1, 2, 2, 2, 5, 1, 2, 2}, // window larger than the input
    {2, 1, 4, 1, 3, 2, 2, 1}, // some taps never meet the input
    {3, 4, 4, 2, 2, 1, 1, 2}, // even window
    {2, 5, 5, 2, 1, 2, 0, 2}, // stride larger than the window
};
#define GEOMETRY_COUNT (sizeof(geometries) / sizeof(geometries[0]))

/* With an odd number of results it has a bias. */
static struct op make_op(const struct geometry *geometry)
{
    const struct layer layer = {
        .kind = OP_CONV2D,
        .channels = geometry->results,
        .window = geometry->window,
        .stride = geometry->stride,
        .padding = geometry->padding,
        .has_no_bias = geometry->results % 2 == 0,
    };
    struct op op;
    struct shape x = {geometry->channels, geometry->rows, geometry->columns};
    assert_int_equal(layer_make_op(&layer, x, 0, &op), STATUS_OK);
    return op;
}

/* x[n][c][row][column], zero outside. */
static double padded_x(const struct ref_kernel_fixture *fixture, uint32_t n, uint32_t c,
                       int64_t row, int64_t column)
{
    struct shape x = fixture->op.x;
    if (row < 0 || row >= x.rows || column < 0 || column >= x.columns) {
        return 0;
    }
    size_t plane = (size_t)n * x.channels + c;
    return (double)fixture->x[(plane * x.rows + (size_t)row) * x.columns + (size_t)column];
}

/* One element of the result, as the textbook has it. */
static double textbook(const struct ref_kernel_fixture *fixture, uint32_t n, uint32_t k, uint32_t p,
                       uint32_t q)
{
    const struct op *op = &fixture->op;
    const float *weight = fixture->params + op->weight + (size_t)k * layer_fan_in(op);
    double sum = op->has_bias ? (double)fixture->params[op->bias + k] : 0;
    for (uint32_t c = 0; c < op->x.channels; c++) {
        for (uint32_t r = 0; r < op->window; r++) {
            for (uint32_t s = 0; s < op->window; s++) {
                int64_t row = (int64_t)p * op->stride + r - op->padding;
                int64_t column = (int64_t)q * op->stride + s - op->padding;
                sum += (double)*weight++ * padded_x(fixture, n, c, row, column);
            }
        }
    }
    return sum;
}

static void the_result_is_the_textbooks(void **state)
{
    (void)state;
    for (size_t g = 0; g < GEOMETRY_COUNT; g++) {
        struct op op = make_op(&geometries[g]);
        struct ref_kernel_fixture fixture;
        ref_kernel_fixture_init(&fixture, &ref_conv2d, &op, geometries[g].batch_size, g);
        ref_kernel_fixture_forward(&fixture);
        size_t plane = (size_t)op.y.rows * op.y.columns;
        for (size_t i = 0; i < fixture.y_count; i++) {
            uint32_t n = (uint32_t)(i / plane / op.y.channels);
            uint32_t k = (uint32_t)(i / plane % op.y.channels);
            uint32_t p = (uint32_t)(i % plane / op.y.columns);
            uint32_t q = (uint32_t)(i % op.y.columns);
            double expected = textbook(&fixture, n, k, p, q);
            assert_true(fabs((double)fixture.y[i] - expected) <= 1e-6 * (1 + fabs(expected)));
        }
        ref_kernel_fixture_finish(&fixture);
    }
}

static void a_window_of_ones_counts_what_it_covers(void **state)
{
    (void)state;
    const struct geometry geometry = {1, 3, 3, 1, 3, 1, 1, 1};
    struct op op = make_op(&geometry);
    struct ref_kernel_fixture fixture;
    ref_kernel_fixture_init(&fixture, &ref_conv2d, &op, 1, 0);
    for (size_t i = 0; i < 9; i++) {
        fixture.x[i] = 1;
        fixture.params[i] = 1;
    }
    fixture.params[9] = 0.5f;
    ref_kernel_fixture_forward(&fixture);
    static const float expected[] = {4.5f, 6.5f, 4.5f, 6.5f, 9.5f, 6.5f, 4.5f, 6.5f, 4.5f};
    assert_memory_equal(fixture.y, expected, sizeof(expected));
    ref_kernel_fixture_finish(&fixture);
}

static void gradients_agree_with_finite_differences(void **state)
{
    (void)state;
    for (size_t g = 0; g < GEOMETRY_COUNT; g++) {
        struct op op = make_op(&geometries[g]);
        struct ref_kernel_fixture fixture;
        ref_kernel_fixture_init(&fixture, &ref_conv2d, &op, geometries[g].batch_size, g);
        ref_kernel_fixture_forward(&fixture);
        ref_kernel_fixture_backward(&fixture);
        assert_true(ref_kernel_fixture_x_error(&fixture, STEP) < 1e-5);
        assert_true(ref_kernel_fixture_params_error(&fixture, STEP) < 1e-5);
        ref_kernel_fixture_finish(&fixture);
    }
}

static void without_an_input_gradient_only_parameters_get_theirs(void **state)
{
    (void)state;
    struct op op = make_op(&geometries[1]);
    struct ref_kernel_fixture fixture;
    ref_kernel_fixture_init(&fixture, &ref_conv2d, &op, 2, 7);
    fixture.call.dx = NULL;
    ref_kernel_fixture_forward(&fixture);
    ref_kernel_fixture_backward(&fixture);
    assert_true(ref_kernel_fixture_params_error(&fixture, STEP) < 1e-5);
    for (size_t i = 0; i < fixture.x_count; i++) {
        assert_true(isnan(fixture.dx[i]));
    }
    ref_kernel_fixture_finish(&fixture);
}

/* In a process of its own, as the sanitizer ends it: forward, of images that lack their last value.
 */
static void run_on_short_input(struct ref_kernel_fixture *fixture)
{
    const struct rlimit no_core = {0};
    size_t bytes = (fixture->x_count - 1) * sizeof(*fixture->x);
    float *x = malloc(bytes);
    setrlimit(RLIMIT_CORE, &no_core);
    close(STDERR_FILENO); // what the sanitizer reports
    if (x != NULL) {
        fixture->call.x = memcpy(x, fixture->x, bytes);
        ref_kernel_fixture_forward(fixture);
    }
    _exit(0);
}

/* The loops along rows are not looked at. What they reach is. */
static void the_address_sanitizer_sees_a_row_beyond_its_plane(void **state)
{
    (void)state;
    if (!HAS_ADDRESS_SANITIZER) {
        print_message("only the address sanitizer sees it\n");
        skip();
    }
    for (size_t g = 0; g < GEOMETRY_COUNT; g++) {
        if (geometries[g].stride > 1) { // may not reach the last value
            continue;
        }
        struct op op = make_op(&geometries[g]);
        struct ref_kernel_fixture fixture;
        int status = 0;
        ref_kernel_fixture_init(&fixture, &ref_conv2d, &op, geometries[g].batch_size, g);
        pid_t child = fork();
        if (child == 0) {
            run_on_short_input(&fixture);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_not_equal(status, 0);
        ref_kernel_fixture_finish(&fixture);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_result_is_the_textbooks),
        cmocka_unit_test(a_window_of_ones_counts_what_it_covers),
        cmocka_unit_test(gradients_agree_with_finite_differences),
        cmocka_unit_test(without_an_input_gradient_only_parameters_get_theirs),
        cmocka_unit_test(the_address_sanitizer_sees_a_row_beyond_its_plane),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
