/* The reference loss: closed forms, large outputs, padding, finite differences. */
#include "tests/support/model/gradient_check.h"
#include "tests/worker/device/ref_kernel_fixture.h"

#include <math.h>

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on

static const struct op ten_classes = {.kind = OP_SOFTMAX_LOSS, .x = {10, 1, 1}, .y = {10, 1, 1}};

static void equal_outputs_cost_the_logarithm_of_the_classes(void **state)
{
    (void)state;
    struct ref_kernel_fixture fixture;
    ref_kernel_fixture_init(&fixture, &ref_softmax_loss, &ten_classes, 4, 0);
    for (size_t i = 0; i < fixture.x_count; i++) {
        fixture.x[i] = 2.5f;
    }
    ref_kernel_fixture_forward(&fixture);
    assert_true(fabs(fixture.result.loss_sum - 4 * log(10)) < 1e-12);
    // The first of equal outputs is the answer; the labels are 0, 1, 2, 3.
    assert_int_equal(fixture.result.correct_count, 1);
    ref_kernel_fixture_finish(&fixture);
}

static void two_classes_are_the_logistic_function(void **state)
{
    (void)state;
    const struct op op = {.kind = OP_SOFTMAX_LOSS, .x = {2, 1, 1}, .y = {2, 1, 1}};
    struct ref_kernel_fixture fixture;
    ref_kernel_fixture_init(&fixture, &ref_softmax_loss, &op, 1, 0);
    fixture.x[0] = 0.75f;
    fixture.x[1] = -1;
    fixture.input.gradient_scale = 0.5f;
    ref_kernel_fixture_forward(&fixture);
    ref_kernel_fixture_backward(&fixture);
    double probability = 1 / (1 + exp(-1.75));
    assert_true(fabs(fixture.result.loss_sum + log(probability)) < 1e-12);
    assert_int_equal(fixture.result.correct_count, 1);
    assert_true(fabs((double)fixture.dx[0] - 0.5 * (probability - 1)) < 1e-7);
    assert_true(fabs((double)fixture.dx[1] + 0.5 * (probability - 1)) < 1e-7);
    ref_kernel_fixture_finish(&fixture);
}

static void large_outputs_do_not_overflow(void **state)
{
    (void)state;
    const struct op op = {.kind = OP_SOFTMAX_LOSS, .x = {3, 1, 1}, .y = {3, 1, 1}};
    struct ref_kernel_fixture fixture;
    ref_kernel_fixture_init(&fixture, &ref_softmax_loss, &op, 1, 0);
    fixture.x[0] = -1e30f;
    fixture.x[1] = 1e30f;
    fixture.x[2] = 3e4f;
    fixture.labels[0] = 2;
    ref_kernel_fixture_forward(&fixture);
    ref_kernel_fixture_backward(&fixture);
    assert_true(fabs(fixture.result.loss_sum / 1e30 - 1) < 1e-6);
    static const float dx[] = {0, 1, -1};
    assert_memory_equal(fixture.dx, dx, sizeof(dx));
    ref_kernel_fixture_finish(&fixture);
}

static void a_network_that_went_wrong_has_no_finite_loss(void **state)
{
    (void)state;
    for (size_t i = 0; i < 10; i++) {
        struct ref_kernel_fixture fixture;
        ref_kernel_fixture_init(&fixture, &ref_softmax_loss, &ten_classes, 1, 0);
        fixture.x[i] = i % 2 == 0 ? nanf("") : INFINITY;
        ref_kernel_fixture_forward(&fixture);
        assert_true(!isfinite(fixture.result.loss_sum));
        ref_kernel_fixture_finish(&fixture);
    }
}

static void padding_counts_nowhere(void **state)
{
    (void)state;
    struct ref_kernel_fixture whole;
    struct ref_kernel_fixture padded;
    ref_kernel_fixture_init(&whole, &ref_softmax_loss, &ten_classes, 3, 8);
    ref_kernel_fixture_init(&padded, &ref_softmax_loss, &ten_classes, 5, 8);
    padded.input.count = 3;
    for (size_t i = 0; i < padded.x_count; i++) {
        padded.x[i] = i < whole.x_count ? whole.x[i] : 100;
    }
    ref_kernel_fixture_forward(&whole);
    ref_kernel_fixture_forward(&padded);
    ref_kernel_fixture_backward(&whole);
    ref_kernel_fixture_backward(&padded);
    assert_true(whole.result.loss_sum == padded.result.loss_sum);
    assert_int_equal(whole.result.correct_count, padded.result.correct_count);
    assert_memory_equal(whole.dx, padded.dx, whole.x_count * sizeof(float));
    for (size_t i = whole.x_count; i < padded.x_count; i++) {
        assert_true(padded.dx[i] == 0);
    }
    ref_kernel_fixture_finish(&whole);
    ref_kernel_fixture_finish(&padded);
}

static double scaled_loss(void *context)
{
    struct ref_kernel_fixture *fixture = context;
    ref_kernel_fixture_forward(fixture);
    return fixture->result.loss_sum * (double)fixture->input.gradient_scale;
}

/* Smooth, and the loss is computed in double: the error is that of curvature, about step squared.
 */
static void gradients_agree_with_finite_differences(void **state)
{
    (void)state;
    static const uint32_t class_counts[] = {1, 2, 3, 10, 17};
    for (size_t i = 0; i < sizeof(class_counts) / sizeof(class_counts[0]); i++) {
        struct op op = ten_classes;
        op.x.channels = op.y.channels = class_counts[i];
        struct ref_kernel_fixture fixture;
        ref_kernel_fixture_init(&fixture, &ref_softmax_loss, &op, 6, i);
        fixture.input.count = 5;
        fixture.input.gradient_scale = 0.2f;
        ref_kernel_fixture_forward(&fixture);
        ref_kernel_fixture_backward(&fixture);
        double error =
            gradient_check(scaled_loss, &fixture, fixture.x, fixture.dx, fixture.x_count, 0x1p-8f);
        assert_true(error < 1e-5);
        ref_kernel_fixture_finish(&fixture);
    }
}

/* A loss that is linear in what its probabilities should be. */
static void a_mixed_sample_costs_what_its_two_labels_cost_by_their_shares(void **state)
{
    (void)state;
    struct ref_kernel_fixture fixture;
    double losses[2];
    ref_kernel_fixture_init(&fixture, &ref_softmax_loss, &ten_classes, 1, 3);
    for (uint32_t i = 0; i < 2; i++) {
        fixture.labels[0] = i == 0 ? 4 : 7;
        ref_kernel_fixture_forward(&fixture);
        losses[i] = fixture.result.loss_sum;
    }
    const struct mixed_label mixed = {.other = 4, .share = 0.75f};
    fixture.input.mixed = &mixed;
    ref_kernel_fixture_forward(&fixture);
    double expected = 0.25 * losses[0] + 0.75 * losses[1];
    assert_true(fabs(fixture.result.loss_sum / expected - 1) < 1e-12);
    ref_kernel_fixture_finish(&fixture);
}

static void gradients_of_mixed_samples_agree_with_finite_differences(void **state)
{
    (void)state;
    // The other label may be the same.
    static const struct mixed_label mixed[] = {{3, 0.5f}, {1, 0.75f}, {9, 1}, {0, 0}, {4, 0.9f}};
    struct ref_kernel_fixture fixture;
    ref_kernel_fixture_init(&fixture, &ref_softmax_loss, &ten_classes, 5, 8);
    fixture.input.mixed = mixed;
    fixture.input.gradient_scale = 0.2f;
    ref_kernel_fixture_forward(&fixture);
    ref_kernel_fixture_backward(&fixture);
    double error =
        gradient_check(scaled_loss, &fixture, fixture.x, fixture.dx, fixture.x_count, 0x1p-8f);
    assert_true(error < 1e-5);
    ref_kernel_fixture_finish(&fixture);
}

/* Whole labels with a share of 1 have the bits of labels alone. */
static void a_share_of_one_is_an_unmixed_sample(void **state)
{
    (void)state;
    static const struct mixed_label mixed[] = {{3, 1}, {1, 1}, {9, 1}};
    struct ref_kernel_fixture plain, whole;
    ref_kernel_fixture_init(&plain, &ref_softmax_loss, &ten_classes, 3, 5);
    ref_kernel_fixture_init(&whole, &ref_softmax_loss, &ten_classes, 3, 5);
    whole.input.mixed = mixed;
    ref_kernel_fixture_forward(&plain);
    ref_kernel_fixture_forward(&whole);
    ref_kernel_fixture_backward(&plain);
    ref_kernel_fixture_backward(&whole);
    assert_true(plain.result.loss_sum == whole.result.loss_sum);
    assert_int_equal(plain.result.correct_count, whole.result.correct_count);
    assert_memory_equal(plain.dx, whole.dx, plain.x_count * sizeof(float));
    ref_kernel_fixture_finish(&plain);
    ref_kernel_fixture_finish(&whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_outputs_cost_the_logarithm_of_the_classes),
        cmocka_unit_test(two_classes_are_the_logistic_function),
        cmocka_unit_test(large_outputs_do_not_overflow),
        cmocka_unit_test(a_network_that_went_wrong_has_no_finite_loss),
        cmocka_unit_test(padding_counts_nowhere),
        cmocka_unit_test(gradients_agree_with_finite_differences),
        cmocka_unit_test(a_mixed_sample_costs_what_its_two_labels_cost_by_their_shares),
        cmocka_unit_test(gradients_of_mixed_samples_agree_with_finite_differences),
        cmocka_unit_test(a_share_of_one_is_an_unmixed_sample),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
