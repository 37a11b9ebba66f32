/* bfloat16 on the host: rounding, and loops on numbers that it holds exactly, against ref. */
#include "tests/worker/device/ref_kernel_fixture.h"
#include "worker/device/cpu/bf16.h"

#include <math.h>
#include <stdlib.h>

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on

#define BATCH 2

static void numbers_are_rounded_to_the_nearest_and_ties_to_even(void **state)
{
    (void)state;
    static const struct {
        float from, to;
    } rows[] = {
        {0, 0},
        {1, 1},
        {-2.5f, -2.5f},
        {1.00390625f, 1},         // half way between 1 and the next: 1 is even
        {1.01171875f, 1.015625f}, // half way, and the upper one is even
        {1.0040f, 1.0078125f},    // just above half way
        {3.4e38f, INFINITY},      // beyond the largest
        {INFINITY, INFINITY},
        {1e-40f, 0x1p-133f}, // below the smallest normal one
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        float rounded = bf16_load(bf16_store(rows[i].from));
        if (rounded != rows[i].to) {
            fail_msg("%.9g becomes %.9g, not %.9g", (double)rows[i].from, (double)rounded,
                     (double)rows[i].to);
        }
    }
    assert_true(isnan(bf16_load(bf16_store(nanf("")))));
    assert_true(signbit(bf16_load(bf16_store(-0.0f))));
}

/* (N, C, H, W) floats as a bfloat16 tensor. */
static uint16_t *halves_of(const float *values, struct shape shape)
{
    struct tensor tensor = {.shape = shape, .batch = BATCH, .block = shape.channels};
    uint16_t *halves = malloc((tensor_count(&tensor) + 1) * sizeof(*halves));
    assert_non_null(halves);
    bf16_from_plain(&tensor, values, halves, 2);
    return halves;
}

/* Frees the halves. */
static void check_halves(uint16_t *halves, const float *expected, struct shape shape)
{
    struct tensor tensor = {.shape = shape, .batch = BATCH, .block = shape.channels};
    size_t count = tensor_count(&tensor);
    float *values = malloc((count + 1) * sizeof(*values));
    assert_non_null(values);
    bf16_to_plain(&tensor, halves, values, 2);
    assert_memory_equal(values, expected, count * sizeof(*values));
    free(values);
    free(halves);
}

static void pooling_of_small_whole_numbers_is_exactly_that_of_ref(void **state)
{
    (void)state;
    static const struct op ops[] = {
        {.kind = OP_MAX_POOL, .x = {16, 6, 8}, .y = {16, 3, 4}, .window = 2, .stride = 2},
        {.kind = OP_MAX_POOL, .x = {21, 7, 9}, .y = {21, 3, 4}, .window = 3, .stride = 2},
        {.kind = OP_MAX_POOL, .x = {19, 9, 8}, .y = {19, 3, 3}, .window = 2, .stride = 3},
        {.kind = OP_MAX_POOL, .x = {300, 5, 5}, .y = {300, 3, 3}, .window = 3, .stride = 1},
    };
    for (size_t k = 0; k < sizeof(ops) / sizeof(ops[0]); k++) {
        const struct op *op = &ops[k];
        struct ref_kernel_fixture fixture;
        ref_kernel_fixture_init(&fixture, &ref_max_pool, op, BATCH, k);
        for (size_t i = 0; i < fixture.x_count; i++) {
            fixture.x[i] = (float)(i * 7919 % 61) - 30;
        }
        for (size_t i = 0; i < fixture.y_count; i++) {
            fixture.dy[i] = (float)(i % 9) - 4;
        }
        ref_kernel_fixture_forward(&fixture);
        ref_kernel_fixture_backward(&fixture);
        uint16_t *x = halves_of(fixture.x, op->x), *dy = halves_of(fixture.dy, op->y);
        uint16_t *y = calloc(fixture.y_count, sizeof(*y)),
                 *dx = calloc(fixture.x_count, sizeof(*dx));
        struct bf16_pool pool = {
            .op = op, .batch = BATCH, .threads = 2, .indices = calloc(fixture.y_count, 1)};
        bf16_max_pool(&pool, x, y);
        bf16_max_pool_back(&pool, dy, dx);
        check_halves(y, fixture.y, op->y);
        check_halves(dx, fixture.dx, op->x);
        free(pool.indices);
        free(x);
        free(dy);
        ref_kernel_fixture_finish(&fixture);
    }
}

static void not_a_number_is_a_maximum_wherever_it_stands(void **state)
{
    (void)state;
    static const struct op op = {
        .kind = OP_MAX_POOL, .x = {1, 2, 2}, .y = {1, 1, 1}, .window = 2, .stride = 2};
    static const uint16_t nans[] = {0x7FC0, 0xFFC0};
    for (uint32_t i = 0; i < 8; i++) {
        uint16_t x[] = {0x7F80, 0x4000, 0xFF80, 0x8000}, y = 0; // infinity, 2, -infinity, -0
        uint8_t index = UINT8_MAX;
        struct bf16_pool pool = {.op = &op, .batch = 1, .threads = 1, .indices = &index};
        x[i % 4] = nans[i / 4];
        bf16_max_pool(&pool, x, &y);
        assert_int_equal(y, nans[i / 4]);
        assert_int_equal(index, i % 4);
    }
}

static void zeros_of_both_signs_are_equal(void **state)
{
    (void)state;
    static const struct op op = {
        .kind = OP_MAX_POOL, .x = {1, 2, 2}, .y = {1, 1, 1}, .window = 2, .stride = 2};
    const uint16_t x[] = {0xBF80, 0x8000, 0x0000, 0x8000}; // -1, and zeros
    uint16_t y = 0;
    uint8_t index = UINT8_MAX;
    struct bf16_pool pool = {.op = &op, .batch = 1, .threads = 1, .indices = &index};
    bf16_max_pool(&pool, x, &y);
    assert_int_equal(y, 0x8000);
    assert_int_equal(index, 1);
}

static void loops_do_element_by_element_what_they_say(void **state)
{
    (void)state;
    enum { COUNT = 40000 };
    uint16_t *a = calloc(COUNT, sizeof(*a)), *b = calloc(COUNT, sizeof(*b));
    assert_non_null(a);
    assert_non_null(b);
    for (int i = 0; i < COUNT; i++) {
        a[i] = bf16_store((float)(i % 13 - 6));
        b[i] = bf16_store((float)(i % 7 - 3));
    }
    bf16_add(a, b, COUNT, 2);
    for (int i = 0; i < COUNT; i++) {
        assert_true(bf16_load(a[i]) == (float)(i % 13 - 6 + i % 7 - 3));
    }
    bf16_mask_positive(a, b, COUNT, 2);
    for (int i = 0; i < COUNT; i++) {
        float sum = (float)(i % 13 - 6 + i % 7 - 3);
        assert_true(bf16_load(a[i]) == (i % 7 > 3 ? sum : 0));
    }
    bf16_relu(a, COUNT, 2);
    for (int i = 0; i < COUNT; i++) {
        float sum = i % 7 > 3 ? (float)(i % 13 - 6 + i % 7 - 3) : 0;
        assert_true(bf16_load(a[i]) == fmaxf(sum, 0));
    }
    free(a);
    free(b);
}

int main(void)
{
    if (!__builtin_cpu_supports("avx512bw") || !__builtin_cpu_supports("avx512vl")) {
        print_message("skipped: this processor has no AVX-512\n");
        return 77;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_rounded_to_the_nearest_and_ties_to_even),
        cmocka_unit_test(pooling_of_small_whole_numbers_is_exactly_that_of_ref),
        cmocka_unit_test(not_a_number_is_a_maximum_wherever_it_stands),
        cmocka_unit_test(zeros_of_both_signs_are_equal),
        cmocka_unit_test(loops_do_element_by_element_what_they_say),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
