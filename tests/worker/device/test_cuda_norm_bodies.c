/* Batch normalisation as the threads of the CUDA kernels do it: sums of rows, or what a convolution
 * has added up; and what follows from them. */
#include "tests/worker/device/cuda_bodies.h"

#include <string.h>

#define CHANNELS ((size_t)5)
#define ROWS     (BATCH * 12) // pixels of all samples
#define PARTS    ((size_t)4)

struct norm_bench {
    struct cuda_norm norm;
    struct cuda_norm_operands operands;
    struct cuda_norm_channel channel;
    double parts[PARTS * CHANNELS * 2], sums[2 * CHANNELS + 1], inverse[CHANNELS];
    float x_sums[2 * CHANNELS]; // of x and of its squares
    float vectors[5][CHANNELS], dparams[2][CHANNELS], statistics[2 * CHANNELS];
};

/* Parts, and their sums. */
static void take_sums(struct norm_bench *bench)
{
    memset(bench->sums, 0, sizeof(bench->sums));
    for (size_t c = 0; c < CHANNELS; c++) {
        for (size_t p = 0; p < PARTS; p++) {
            body_norm_part(&bench->norm, &bench->operands, c, p, 1);
            bench->sums[c] += bench->parts[(p * CHANNELS + c) * 2];
            bench->sums[CHANNELS + c] += bench->parts[(p * CHANNELS + c) * 2 + 1];
        }
    }
}

static void connect(struct norm_bench *bench, const struct ref_kernel_fixture *fixture)
{
    bench->norm = (struct cuda_norm){.channels = CHANNELS,
                                     .rows = ROWS,
                                     .counted = fixture->input.count * (size_t)12,
                                     .parts = PARTS,
                                     .rows_at_once = CUDA_NORM_ROWS};
    bench->operands = (struct cuda_norm_operands){.centre = bench->vectors[0],
                                                  .factor = bench->vectors[1],
                                                  .shift = bench->vectors[2],
                                                  .slope = bench->vectors[3],
                                                  .offset = bench->vectors[4],
                                                  .parts = bench->parts};
    memcpy(bench->statistics, fixture->statistics, sizeof(bench->statistics));
    bench->channel = (struct cuda_norm_channel){
        .scale = fixture->params,
        .bias = fixture->params + CHANNELS,
        .statistic_mean = bench->statistics,
        .statistic_variance = bench->statistics + CHANNELS,
        .centre = bench->vectors[0],
        .factor = bench->vectors[1],
        .shift = bench->vectors[2],
        .slope = bench->vectors[3],
        .offset = bench->vectors[4],
        .dscale = bench->dparams[0],
        .dbias = bench->dparams[1],
        .inverse = bench->inverse,
        .sums = bench->sums,
        .x_sums = bench->x_sums,
        .x_square_sums = bench->x_sums + CHANNELS,
        .count = (double)bench->norm.counted,
        .epsilon = fixture->op.epsilon,
        .rate = DEVICE_STATISTICS_RATE,
    };
}

/* Where the statistics come from. */
enum statistics {
    FROM_ROWS,    // of this worker
    FROM_WORKERS, // rows of all of them
    FROM_CONV,    // what a convolution has added up
};

/* In floats, as a convolution does. */
static void add_up(struct norm_bench *bench, const float *x)
{
    memset(bench->x_sums, 0, sizeof(bench->x_sums));
    for (size_t i = 0; i < bench->norm.counted * CHANNELS; i++) {
        bench->x_sums[i % CHANNELS] += x[i];
        bench->x_sums[CHANNELS + i % CHANNELS] += x[i] * x[i];
    }
}

static void take_statistics(struct norm_bench *bench, const float *x, enum statistics statistics)
{
    bench->channel.is_around_zero = statistics != FROM_ROWS;
    if (statistics == FROM_CONV) {
        add_up(bench, x);
        for (size_t c = CHANNELS; c-- > 0;) {
            channel_take(&bench->channel, CHANNELS, c);
        }
        return;
    }
    bench->operands.new_centre = bench->vectors[0];
    take_sums(bench);
    bench->operands.new_centre = NULL;
    assert_memory_equal(bench->vectors[0], x, sizeof(bench->vectors[0])); // the first row
    for (size_t c = 0; c < CHANNELS && statistics == FROM_WORKERS; c++) {
        channel_uncentre(&bench->channel, CHANNELS, c);
    }
}

/* As norm_forward and norm_backward of the backend; y, dy and dx are the bench's. */
static void run_norm(struct norm_bench *bench, const float *x, const float *dy,
                     enum statistics statistics)
{
    float *y = allocate(ROWS * CHANNELS), *dx = allocate(ROWS * CHANNELS);
    float *gradient = allocate(ROWS * CHANNELS);
    memcpy(gradient, dy, ROWS * CHANNELS * sizeof(*dy));
    bench->operands.x = x;
    bench->operands.y = y;
    take_statistics(bench, x, statistics);
    for (size_t c = 0; c < CHANNELS; c++) {
        channel_forward(&bench->channel, CHANNELS, c);
    }
    for (size_t i = 0; i < ROWS * CHANNELS; i++) {
        body_norm_apply(&bench->norm, &bench->operands, i, 1);
    }
    bench->operands.dy = gradient;
    bench->operands.dx = dx;
    take_sums(bench);
    for (size_t c = 0; c < CHANNELS; c++) {
        channel_gradients(&bench->channel, CHANNELS, c);
    }
    for (size_t c = 0; c < CHANNELS; c++) {
        channel_backward(&bench->channel, CHANNELS, c, bench->sums[2 * CHANNELS]);
    }
    for (size_t i = 0; i < ROWS * CHANNELS; i++) {
        body_norm_gradient(&bench->norm, &bench->operands, i, 1);
    }
}

static void disconnect(struct norm_bench *bench)
{
    free(bench->operands.y);
    free(bench->operands.dx);
    free(bench->operands.dy);
}

static void normalisation_is_that_of_ref(void **state)
{
    (void)state;
    static const struct op op = {
        .kind = OP_BATCH_NORM, .x = {5, 3, 4}, .y = {5, 3, 4}, .has_bias = true, .epsilon = 1e-3f};
    for (uint32_t i = 0; i < 4; i++) {
        struct ref_kernel_fixture fixture;
        struct norm_bench bench;
        ref_kernel_fixture_init(&fixture, &ref_batch_norm, &op, (uint32_t)BATCH, i);
        fixture.input.count = i % 2 == 0 ? (uint32_t)BATCH : 2;
        for (size_t k = 0; k < fixture.x_count; k++) {
            fixture.x[k] += 10; // a mean far from zero
        }
        float *x = to_nhwc(fixture.x, op.x), *dy = to_nhwc(fixture.dy, op.y);
        connect(&bench, &fixture);
        run_norm(&bench, x, dy, i >= 2 ? FROM_WORKERS : FROM_ROWS);
        ref_kernel_fixture_forward(&fixture);
        ref_kernel_fixture_backward(&fixture);
        for (size_t k = 0; k < 2 * CHANNELS; k++) {
            float grad = k < CHANNELS ? bench.dparams[0][k] : bench.dparams[1][k - CHANNELS];
            assert_true(fabsf(grad - fixture.grads[k]) < 1e-4f);
            assert_true(fabsf(bench.statistics[k] - fixture.statistics[k]) < 1e-5f);
        }
        check_nhwc(bench.operands.y, fixture.y, op.y);
        check_nhwc(bench.operands.dx, fixture.dx, op.x);
        free(bench.operands.dy);
        free(x);
        free(dy);
        ref_kernel_fixture_finish(&fixture);
    }
}

static double largest_error(const struct norm_bench *bench, const struct ref_kernel_fixture *ref)
{
    double largest = 0;
    for (size_t i = 0; i < ROWS * CHANNELS; i++) {
        size_t c = i % CHANNELS, row = i / CHANNELS;
        double expected = (double)ref->y[(row / 12 * CHANNELS + c) * 12 + row % 12];
        largest = fmax(largest, fabs((double)((float *)bench->operands.y)[i] - expected));
    }
    return largest;
}

/* conv2d.c says how far from the truth a variance is that comes from sums of squares: within
 * k 2^-24 (1 + m^2) of itself, for k additions behind each other and a mean of m deviations. What
 * is divided by its root is wrong by half of that. */
static void statistics_from_a_convolution_lose_what_is_said(void **state)
{
    (void)state;
    static const struct op op = {
        .kind = OP_BATCH_NORM, .x = {5, 3, 4}, .y = {5, 3, 4}, .has_bias = true, .epsilon = 1e-5f};
    static const float means[] = {0, 1, 10, 100};
    for (uint32_t i = 0; i < 16; i++) {
        struct ref_kernel_fixture fixture;
        struct norm_bench bench;
        double mean = (double)means[i % 4];
        ref_kernel_fixture_init(&fixture, &ref_batch_norm, &op, (uint32_t)BATCH, i);
        double deviation = 0;
        for (size_t k = 0; k < fixture.x_count; k++) {
            deviation += (double)(fixture.x[k] * fixture.x[k]) / (double)fixture.x_count;
            fixture.x[k] += means[i % 4];
        }
        deviation = sqrt(deviation) / 2; // of any channel it is larger
        float *x = to_nhwc(fixture.x, op.x), *dy = to_nhwc(fixture.dy, op.y);
        connect(&bench, &fixture);
        run_norm(&bench, x, dy, FROM_CONV);
        ref_kernel_fixture_forward(&fixture);
        double m = mean / deviation, share = (double)ROWS * 0x1p-24 * (1 + m * m);
        double error = largest_error(&bench, &fixture);
        print_message("a mean of %.0f deviations: %.1e, at most %.1e\n", m, error, 8 * share);
        // Up to four deviations from the mean, a scale below two, half; and the float y.
        assert_true(error < 4 * 2 * share / 2 + TOLERANCE * (1 + m));
        disconnect(&bench);
        free(x);
        free(dy);
        ref_kernel_fixture_finish(&fixture);
    }
}

/* Where nothing is left of the variance it is zero, not below: what comes out is finite. */
static void statistics_from_a_convolution_are_never_of_a_negative_variance(void **state)
{
    (void)state;
    static const struct op op = {
        .kind = OP_BATCH_NORM, .x = {5, 3, 4}, .y = {5, 3, 4}, .has_bias = true, .epsilon = 1e-5f};
    bool was_negative = false;
    for (uint32_t i = 0; i < 8; i++) {
        struct ref_kernel_fixture fixture;
        struct norm_bench bench;
        ref_kernel_fixture_init(&fixture, &ref_batch_norm, &op, (uint32_t)BATCH, i);
        for (size_t k = 0; k < fixture.x_count; k++) {
            fixture.x[k] = 1000 + fixture.x[k] / 1000;
        }
        float *x = to_nhwc(fixture.x, op.x), *dy = to_nhwc(fixture.dy, op.y);
        connect(&bench, &fixture);
        run_norm(&bench, x, dy, FROM_CONV);
        for (size_t c = 0; c < CHANNELS; c++) {
            double count = bench.channel.count, mean = (double)bench.x_sums[c] / count;
            was_negative = was_negative || (double)bench.x_sums[CHANNELS + c] / count < mean * mean;
            assert_true(bench.statistics[CHANNELS + c] >= 0);
        }
        for (size_t k = 0; k < ROWS * CHANNELS; k++) {
            assert_true(isfinite(((float *)bench.operands.y)[k]));
            assert_true(isfinite(((float *)bench.operands.dx)[k]));
        }
        disconnect(&bench);
        free(x);
        free(dy);
        ref_kernel_fixture_finish(&fixture);
    }
    assert_true(was_negative);
}

static void a_relu_behind_a_normalisation_masks_alike_from_x_and_from_y(void **state)
{
    (void)state;
    static const struct op op = {
        .kind = OP_BATCH_NORM, .x = {5, 3, 4}, .y = {5, 3, 4}, .has_bias = true, .epsilon = 1e-3f};
    struct ref_kernel_fixture fixture;
    struct norm_bench from_x, from_y;
    ref_kernel_fixture_init(&fixture, &ref_batch_norm, &op, (uint32_t)BATCH, 9);
    float *x = to_nhwc(fixture.x, op.x), *dy = to_nhwc(fixture.dy, op.y);
    connect(&from_x, &fixture);
    connect(&from_y, &fixture);
    from_x.norm.has_relu = from_y.norm.has_relu = true;
    from_x.norm.mask = CUDA_MASK_X;
    from_y.norm.mask = CUDA_MASK_Y;
    run_norm(&from_x, x, dy, FROM_ROWS);
    run_norm(&from_y, x, dy, FROM_ROWS);
    assert_memory_equal(from_x.operands.dx, from_y.operands.dx, ROWS * CHANNELS * sizeof(float));
    assert_memory_equal(from_x.dparams, from_y.dparams, sizeof(from_x.dparams));
    const float *y = from_x.operands.y, *masked = from_y.operands.dy;
    bool has_zero = false;
    for (size_t i = 0; i < ROWS * CHANNELS; i++) {
        assert_true(y[i] >= 0 && (y[i] > 0 ? masked[i] == dy[i] : masked[i] == 0));
        has_zero = has_zero || y[i] == 0;
    }
    assert_true(has_zero);
    disconnect(&from_x);
    disconnect(&from_y);
    free(x);
    free(dy);
    ref_kernel_fixture_finish(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(normalisation_is_that_of_ref),
        cmocka_unit_test(statistics_from_a_convolution_lose_what_is_said),
        cmocka_unit_test(statistics_from_a_convolution_are_never_of_a_negative_variance),
        cmocka_unit_test(a_relu_behind_a_normalisation_masks_alike_from_x_and_from_y),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
