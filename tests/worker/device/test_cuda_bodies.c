/* What the threads of the CUDA kernels do, thread by thread on the host, against the reference
 * kernels: index for index the same arithmetic that a GPU runs. */
#include "common/random.h"
#include "tests/worker/device/ref_kernel_fixture.h"
#include "worker/device/cuda/kernels.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define BODY       static inline
#define ELEMENT    float
#define NAME(name) body_##name
#define LOAD(x)    (x)
#define STORE(x)   (x)
#include "worker/device/cuda/bodies.inc"
#include "worker/device/cuda/channel_bodies.inc"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on

#define TOLERANCE 1e-5
#define BATCH     ((size_t)3)

static float *allocate(size_t count)
{
    float *values = malloc((count + 1) * sizeof(*values));
    assert_non_null(values);
    for (size_t i = 0; i < count; i++) {
        values[i] = nanf("");
    }
    return values;
}

/* (N, C, H, W) to (N, H, W, C), by the body under test. */
static float *to_nhwc(const float *from, struct shape shape)
{
    const struct cuda_shape s = {shape.channels, (size_t)shape.rows * shape.columns};
    size_t count = BATCH * s.channels * s.pixels;
    float *to = allocate(count);
    for (size_t i = 0; i < count; i++) {
        body_pixels(&s, from, to, i);
    }
    return to;
}

/* Compares (N, H, W, C) values with (N, C, H, W) ones, and frees the former. */
static void check_nhwc(float *values, const float *expected, struct shape shape)
{
    size_t pixels = (size_t)shape.rows * shape.columns;
    for (size_t i = 0; i < BATCH * shape.channels * pixels; i++) {
        size_t c = i % shape.channels, at = i / shape.channels % pixels;
        size_t n = i / shape.channels / pixels;
        double other = (double)expected[(n * shape.channels + c) * pixels + at];
        if (!(fabs((double)values[i] - other) <= TOLERANCE * (1 + fabs(other)))) {
            fail_msg("element %zu (sample %zu, channel %zu, pixel %zu) is %g, not %g", i, n, c, at,
                     (double)values[i], other);
        }
    }
    free(values);
}

static size_t count_of(struct shape shape)
{
    return BATCH * shape.channels * shape.rows * shape.columns;
}

static struct cuda_window window_of(const struct op *op)
{
    return (struct cuda_window){op->x.channels, op->x.rows, op->x.columns,
                                op->y.channels, op->y.rows, op->y.columns,
                                op->window,     op->stride, op->padding};
}

static void run_reference(struct ref_kernel_fixture *fixture, const struct ref_kernel *kernel,
                          const struct op *op, uint64_t seed)
{
    ref_kernel_fixture_init(fixture, kernel, op, (uint32_t)BATCH, seed);
    ref_kernel_fixture_forward(fixture);
    ref_kernel_fixture_backward(fixture);
}

static void pooling_pads_and_subsamples_as_ref_does(void **state)
{
    (void)state;
    static const struct op ops[] = {
        {.kind = OP_MAX_POOL, .x = {3, 6, 8}, .y = {3, 3, 4}, .window = 2, .stride = 2},
        {.kind = OP_MAX_POOL, .x = {5, 7, 9}, .y = {5, 3, 4}, .window = 3, .stride = 2},
        {.kind = OP_MAX_POOL, .x = {2, 5, 5}, .y = {2, 3, 3}, .window = 3, .stride = 1},
        {.kind = OP_PAD, .x = {4, 3, 5}, .y = {4, 7, 9}, .padding = 2},
        {.kind = OP_SUBSAMPLE, .x = {3, 5, 6}, .y = {7, 3, 3}, .window = 1, .stride = 2},
    };
    for (size_t k = 0; k < sizeof(ops) / sizeof(ops[0]); k++) {
        const struct op *op = &ops[k];
        const struct ref_kernel *kernel = op->kind == OP_MAX_POOL ? &ref_max_pool
                                          : op->kind == OP_PAD    ? &ref_pad
                                                                  : &ref_subsample;
        struct ref_kernel_fixture fixture;
        run_reference(&fixture, kernel, op, k);
        const struct cuda_window w = window_of(op);
        float *x = to_nhwc(fixture.x, op->x), *dy = to_nhwc(fixture.dy, op->y);
        float *y = allocate(count_of(op->y)), *dx = allocate(count_of(op->x));
        unsigned char *indices = calloc(count_of(op->y), 1);
        for (size_t i = 0; i < count_of(op->y); i++) {
            if (op->kind == OP_MAX_POOL) {
                body_max_pool(&w, x, y, indices, i);
            } else if (op->kind == OP_PAD) {
                body_pad(&w, x, y, i);
            } else {
                body_subsample(&w, x, y, i);
            }
        }
        for (size_t i = 0; i < count_of(op->x); i++) {
            if (op->kind == OP_MAX_POOL) {
                body_max_pool_back(&w, dy, indices, dx, i);
            } else if (op->kind == OP_PAD) {
                body_pad_back(&w, dy, dx, i);
            } else {
                body_subsample_back(&w, dy, dx, i);
            }
        }
        check_nhwc(y, fixture.y, op->y);
        check_nhwc(dx, fixture.dx, op->x);
        free(indices);
        free(x);
        free(dy);
        ref_kernel_fixture_finish(&fixture);
    }
}

static void global_pooling_and_dropout_are_those_of_ref(void **state)
{
    (void)state;
    static const struct op pool = {.kind = OP_GLOBAL_POOL, .x = {5, 3, 4}, .y = {5, 1, 1}};
    static const struct op drop = {
        .kind = OP_DROPOUT, .x = {5, 3, 4}, .y = {5, 3, 4}, .rate = 0.3f, .stream = 2};
    const struct cuda_shape s = {5, 12};
    const struct cuda_dropout d = {2, (uint32_t)ceil((double)0.3f * 0x1p32), 1 / (1 - 0.3f)};
    struct ref_kernel_fixture fixture;
    run_reference(&fixture, &ref_global_pool, &pool, 1);
    float *x = to_nhwc(fixture.x, pool.x), *dy = to_nhwc(fixture.dy, pool.y);
    float *y = allocate(count_of(pool.y)), *dx = allocate(count_of(pool.x));
    for (size_t i = 0; i < count_of(pool.y); i++) {
        body_global_pool(&s, x, y, i);
    }
    for (size_t i = 0; i < count_of(pool.x); i++) {
        body_global_pool_back(&s, dy, dx, i);
    }
    check_nhwc(y, fixture.y, pool.y);
    check_nhwc(dx, fixture.dx, pool.x);
    free(dy);
    free(x);
    ref_kernel_fixture_finish(&fixture);

    run_reference(&fixture, &ref_dropout, &drop, 2);
    x = to_nhwc(fixture.x, drop.x);
    y = allocate(count_of(drop.y));
    for (size_t i = 0; i < count_of(drop.y); i++) {
        body_dropout(&s, &d, fixture.sample_keys, x, y, i);
    }
    check_nhwc(y, fixture.y, drop.y);
    free(x);
    ref_kernel_fixture_finish(&fixture);
}

static void the_loss_is_that_of_ref(void **state)
{
    (void)state;
    static const struct op op = {.kind = OP_SOFTMAX_LOSS, .x = {7, 1, 1}, .y = {7, 1, 1}};
    struct ref_kernel_fixture fixture;
    ref_kernel_fixture_init(&fixture, &ref_softmax_loss, &op, (uint32_t)BATCH, 3);
    fixture.input.count = 2;
    fixture.input.gradient_scale = 0.25f;
    ref_kernel_fixture_forward(&fixture);
    ref_kernel_fixture_backward(&fixture);
    const struct cuda_loss l = {7, 2, 0.25f};
    float *probabilities = allocate(7 * BATCH), *dx = allocate(7 * BATCH);
    double losses[BATCH], sum = 0;
    uint32_t hits[BATCH], correct = 0;
    for (size_t n = 0; n < BATCH; n++) {
        body_loss(&l, fixture.x, fixture.labels, probabilities, losses, hits, n);
        sum += n < 2 ? losses[n] : 0;
        correct += n < 2 ? hits[n] : 0;
    }
    for (size_t i = 0; i < 7 * BATCH; i++) {
        body_loss_back(&l, probabilities, fixture.labels, dx, i);
    }
    assert_true(fabs(sum / fixture.result.loss_sum - 1) < TOLERANCE);
    assert_int_equal(correct, fixture.result.correct_count);
    check_nhwc(probabilities, fixture.y, op.y);
    check_nhwc(dx, fixture.dx, op.x);
    ref_kernel_fixture_finish(&fixture);
}

#define FILTERS ((size_t)7 * 5 * 9)

static void weights_come_back_from_the_librarys_layout(void **state)
{
    (void)state;
    const struct cuda_weights w = {.inputs = 5, .taps = 9};
    float from[FILTERS], to[FILTERS], back[FILTERS];
    for (size_t i = 0; i < FILTERS; i++) {
        from[i] = (float)i;
    }
    for (size_t i = 0; i < FILTERS; i++) {
        body_weights_in(&w, from, to, i);
    }
    for (size_t i = 0; i < FILTERS; i++) {
        body_weights_out(&w, to, back, i);
    }
    // Filter 2, channel 3, tap 4.
    assert_true(to[(2 * 9 + 4) * 5 + 3] == from[(2 * 5 + 3) * 9 + 4]);
    assert_memory_equal(back, from, sizeof(from));
}

/* ---- Batch normalisation ---- */

#define CHANNELS ((size_t)5)
#define ROWS     (BATCH * 12) // pixels of all samples
#define PARTS    ((size_t)4)

struct norm_bench {
    struct cuda_norm norm;
    struct cuda_norm_operands operands;
    struct cuda_norm_channel channel;
    double parts[PARTS * CHANNELS * 2], sums[2 * CHANNELS + 1], inverse[CHANNELS];
    float vectors[5][CHANNELS], dparams[2][CHANNELS], statistics[2 * CHANNELS];
};

/* Both stages of kernel_norm_sums. */
static void take_sums(struct norm_bench *bench)
{
    memset(bench->sums, 0, sizeof(bench->sums));
    for (size_t c = 0; c < CHANNELS; c++) {
        for (size_t p = 0; p < PARTS; p++) {
            body_norm_part(&bench->norm, &bench->operands, c, p);
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
                                     .parts = PARTS};
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
        .count = (double)bench->norm.counted,
        .epsilon = fixture->op.epsilon,
        .rate = DEVICE_STATISTICS_RATE,
    };
}

/* As norm_forward and norm_backward of the backend; y and dx are new. */
static void run_norm(struct norm_bench *bench, const float *x, const float *dy, bool over_workers)
{
    float *y = allocate(ROWS * CHANNELS), *dx = allocate(ROWS * CHANNELS);
    float *gradient = allocate(ROWS * CHANNELS);
    memcpy(gradient, dy, ROWS * CHANNELS * sizeof(*dy));
    bench->operands.x = x;
    bench->operands.y = y;
    memcpy(bench->vectors[0], x, sizeof(bench->vectors[0])); // the centre: the first row
    take_sums(bench);
    bench->channel.has_sums = over_workers;
    for (size_t c = 0; c < CHANNELS && over_workers; c++) {
        channel_uncentre(&bench->channel, CHANNELS, c);
    }
    for (size_t c = 0; c < CHANNELS; c++) {
        channel_forward(&bench->channel, CHANNELS, c);
    }
    for (size_t i = 0; i < ROWS * CHANNELS; i++) {
        body_norm_apply(&bench->norm, &bench->operands, i);
    }
    bench->operands.dy = gradient;
    bench->operands.dx = dx;
    take_sums(bench);
    for (size_t c = 0; c < CHANNELS; c++) {
        channel_gradients(&bench->channel, CHANNELS, c);
    }
    for (size_t c = 0; c < CHANNELS; c++) {
        channel_backward(&bench->channel, CHANNELS, c);
    }
    for (size_t i = 0; i < ROWS * CHANNELS; i++) {
        body_norm_gradient(&bench->norm, &bench->operands, i);
    }
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
        run_norm(&bench, x, dy, i >= 2);
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
    run_norm(&from_x, x, dy, false);
    run_norm(&from_y, x, dy, false);
    assert_memory_equal(from_x.operands.dx, from_y.operands.dx, ROWS * CHANNELS * sizeof(float));
    assert_memory_equal(from_x.dparams, from_y.dparams, sizeof(from_x.dparams));
    const float *y = from_x.operands.y, *masked = from_y.operands.dy;
    bool has_zero = false;
    for (size_t i = 0; i < ROWS * CHANNELS; i++) {
        assert_true(y[i] >= 0 && (y[i] > 0 ? masked[i] == dy[i] : masked[i] == 0));
        has_zero = has_zero || y[i] == 0;
    }
    assert_true(has_zero);
    struct norm_bench *benches[] = {&from_x, &from_y};
    for (size_t i = 0; i < 2; i++) {
        free(benches[i]->operands.y);
        free(benches[i]->operands.dy);
        free(benches[i]->operands.dx);
    }
    free(x);
    free(dy);
    ref_kernel_fixture_finish(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pooling_pads_and_subsamples_as_ref_does),
        cmocka_unit_test(global_pooling_and_dropout_are_those_of_ref),
        cmocka_unit_test(the_loss_is_that_of_ref),
        cmocka_unit_test(weights_come_back_from_the_librarys_layout),
        cmocka_unit_test(normalisation_is_that_of_ref),
        cmocka_unit_test(a_relu_behind_a_normalisation_masks_alike_from_x_and_from_y),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
