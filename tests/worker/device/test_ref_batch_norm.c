/* The reference batch normalisation: moments of its results, statistics, finite differences, and
 * the batch of several workers. */
#include "tests/worker/device/ref_kernel_fixture.h"

#include <math.h>

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on

#define BATCH_SIZE 5
#define CHANNELS   ((size_t)3)
#define EPSILON    1e-5f

static const struct op op = {
    .kind = OP_BATCH_NORM,
    .x = {3, 2, 3},
    .y = {3, 2, 3},
    .has_bias = true,
    .epsilon = EPSILON,
};
static const size_t plane = 6;

/* Element i of channel c in sample n. */
static double at(const float *values, size_t n, size_t c, size_t i)
{
    return (double)values[(n * CHANNELS + c) * plane + i];
}

struct moments {
    double mean, variance; // variance: around the mean, over n
};

static struct moments moments_of(const float *values, size_t c, uint32_t count)
{
    struct moments moments = {0};
    double squares = 0;
    for (size_t i = 0; i < count * plane; i++) {
        moments.mean += at(values, i / plane, c, i % plane) / (double)(count * plane);
    }
    for (size_t i = 0; i < count * plane; i++) {
        double d = at(values, i / plane, c, i % plane) - moments.mean;
        squares += d * d;
    }
    moments.variance = squares / (double)(count * plane);
    return moments;
}

static void results_have_the_mean_and_deviation_that_shift_and_scale_say(void **state)
{
    (void)state;
    struct ref_kernel_fixture fixture;
    ref_kernel_fixture_init(&fixture, &ref_batch_norm, &op, BATCH_SIZE, 1);
    ref_kernel_fixture_forward(&fixture);
    for (size_t c = 0; c < CHANNELS; c++) {
        struct moments moments = moments_of(fixture.y, c, BATCH_SIZE);
        double scale = (double)fixture.params[c];
        assert_true(fabs(moments.mean - (double)fixture.params[CHANNELS + c]) < 1e-6);
        assert_true(fabs(moments.variance - scale * scale) < 1e-3 * scale * scale);
    }
    ref_kernel_fixture_finish(&fixture);
}

static void statistics_move_a_tenth_of_the_way_to_those_of_the_batch(void **state)
{
    (void)state;
    struct ref_kernel_fixture fixture;
    ref_kernel_fixture_init(&fixture, &ref_batch_norm, &op, BATCH_SIZE, 2);
    ref_kernel_fixture_forward(&fixture);
    for (size_t c = 0; c < CHANNELS; c++) {
        struct moments moments = moments_of(fixture.x, c, BATCH_SIZE);
        double unbiased = moments.variance * 30 / 29;
        assert_true(fabs((double)fixture.statistics[c] - 0.1 * moments.mean) < 1e-7);
        assert_true(fabs((double)fixture.statistics[CHANNELS + c] - 0.9 - 0.1 * unbiased) < 1e-6);
    }
    ref_kernel_fixture_finish(&fixture);
}

static void evaluation_takes_the_statistics_and_leaves_them_alone(void **state)
{
    (void)state;
    struct ref_kernel_fixture fixture;
    ref_kernel_fixture_init(&fixture, &ref_batch_norm, &op, BATCH_SIZE, 3);
    fixture.input.is_training = false;
    for (size_t c = 0; c < CHANNELS; c++) {
        fixture.statistics[c] = 0.5f * (float)c;
        fixture.statistics[CHANNELS + c] = 4;
    }
    ref_kernel_fixture_forward(&fixture);
    for (size_t c = 0; c < CHANNELS; c++) {
        double expected = (at(fixture.x, 1, c, 4) - 0.5 * (double)c) / sqrt(4 + (double)EPSILON) *
                              (double)fixture.params[c] +
                          (double)fixture.params[CHANNELS + c];
        assert_true(fabs(at(fixture.y, 1, c, 4) - expected) < 1e-6);
        assert_true(fixture.statistics[CHANNELS + c] == 4);
    }
    ref_kernel_fixture_finish(&fixture);
}

static void gradients_agree_with_finite_differences(void **state)
{
    (void)state;
    struct ref_kernel_fixture fixture;
    ref_kernel_fixture_init(&fixture, &ref_batch_norm, &op, BATCH_SIZE, 4);
    ref_kernel_fixture_forward(&fixture);
    ref_kernel_fixture_backward(&fixture);
    assert_true(ref_kernel_fixture_x_error(&fixture, 0x1p-7f) < 1e-3);
    assert_true(ref_kernel_fixture_params_error(&fixture, 0.5f) < 1e-5);
    ref_kernel_fixture_finish(&fixture);
}

static void samples_of_padding_are_not_in_the_batch(void **state)
{
    (void)state;
    struct ref_kernel_fixture fixture;
    ref_kernel_fixture_init(&fixture, &ref_batch_norm, &op, BATCH_SIZE, 5);
    fixture.input.count = 3;
    ref_kernel_fixture_forward(&fixture);
    ref_kernel_fixture_backward(&fixture);
    for (size_t c = 0; c < CHANNELS; c++) {
        struct moments moments = moments_of(fixture.y, c, 3);
        assert_true(fabs(moments.mean - (double)fixture.params[CHANNELS + c]) < 1e-6);
        assert_true(at(fixture.dx, 3, c, 0) == 0 && at(fixture.dx, 4, c, 5) == 0);
    }
    ref_kernel_fixture_finish(&fixture);
}

/* A second worker whose sums are these; calls are counted. */
struct peer {
    double sums[2 * CHANNELS + 1];
    uint32_t calls;
};

static enum status add_peer(void *context, double *values, uint32_t count)
{
    struct peer *peer = context;
    assert_int_equal(count, 2 * CHANNELS + 1);
    for (uint32_t i = 0; i < count; i++) {
        values[i] += peer->sums[i];
    }
    peer->calls++;
    return STATUS_OK;
}

static void the_batch_may_be_that_of_all_workers(void **state)
{
    (void)state;
    struct ref_kernel_fixture whole, half;
    struct peer peer = {.calls = 0};
    ref_kernel_fixture_init(&whole, &ref_batch_norm, &op, BATCH_SIZE, 6);
    ref_kernel_fixture_init(&half, &ref_batch_norm, &op, BATCH_SIZE, 6); // the same values
    ref_kernel_fixture_forward(&whole);
    half.input.count = 2;
    half.input.sum_over_workers = add_peer;
    half.input.context = &peer;
    for (size_t i = 0; i < 3 * CHANNELS * plane; i++) { // the peer has samples 2, 3, 4
        size_t c = i / plane % CHANNELS;
        double x = (double)whole.x[2 * CHANNELS * plane + i];
        peer.sums[c] += x;
        peer.sums[CHANNELS + c] += x * x;
    }
    peer.sums[2 * CHANNELS] = 3 * (double)plane;
    ref_kernel_fixture_forward(&half);
    for (size_t i = 0; i < 2 * CHANNELS * plane; i++) {
        assert_true(fabs((double)half.y[i] - (double)whole.y[i]) < 1e-6);
    }
    assert_memory_equal(half.statistics, whole.statistics, sizeof(float) * 2 * CHANNELS);
    assert_int_equal(peer.calls, 1);
    ref_kernel_fixture_finish(&whole);
    ref_kernel_fixture_finish(&half);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_have_the_mean_and_deviation_that_shift_and_scale_say),
        cmocka_unit_test(statistics_move_a_tenth_of_the_way_to_those_of_the_batch),
        cmocka_unit_test(evaluation_takes_the_statistics_and_leaves_them_alone),
        cmocka_unit_test(gradients_agree_with_finite_differences),
        cmocka_unit_test(samples_of_padding_are_not_in_the_batch),
        cmocka_unit_test(the_batch_may_be_that_of_all_workers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
