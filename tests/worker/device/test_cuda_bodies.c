/* What the threads of the CUDA kernels do, but those of batch normalisation. */
#include "tests/worker/device/cuda_bodies.h"

#include <string.h>

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

static void forward(const struct op *op, const float *x, float *y, unsigned char *indices,
                    unsigned width)
{
    const struct cuda_window w = window_of(op);
    for (size_t i = 0; i < count_of(op->y) / width; i++) {
        if (op->kind == OP_MAX_POOL) {
            body_max_pool(&w, x, y, indices, i, width);
        } else if (op->kind == OP_PAD) {
            body_pad(&w, x, y, i, width);
        } else {
            body_subsample(&w, x, y, i, width);
        }
    }
}

static void backward(const struct op *op, const float *dy, float *dx, const unsigned char *indices,
                     unsigned width)
{
    const struct cuda_window w = window_of(op);
    for (size_t i = 0; i < count_of(op->x) / width; i++) {
        if (op->kind == OP_MAX_POOL) {
            body_max_pool_back(&w, dy, indices, dx, i, width);
        } else if (op->kind == OP_PAD) {
            body_pad_back(&w, dy, dx, i, width);
        } else {
            body_subsample_back(&w, dy, dx, i, width);
        }
    }
}

/* By threads of one element, or (width LANES) of 16 bytes. */
static void check_window(const struct op *op, unsigned width, uint64_t seed)
{
    const struct ref_kernel *kernel = op->kind == OP_MAX_POOL ? &ref_max_pool
                                      : op->kind == OP_PAD    ? &ref_pad
                                                              : &ref_subsample;
    struct ref_kernel_fixture fixture;
    run_reference(&fixture, kernel, op, seed);
    float *x = to_nhwc(fixture.x, op->x), *dy = to_nhwc(fixture.dy, op->y);
    float *y = allocate(count_of(op->y)), *dx = allocate(count_of(op->x));
    unsigned char *indices = calloc(count_of(op->y), 1);
    forward(op, x, y, indices, width);
    backward(op, dy, dx, indices, width);
    check_nhwc(y, fixture.y, op->y);
    check_nhwc(dx, fixture.dx, op->x);
    free(indices);
    free(x);
    free(dy);
    ref_kernel_fixture_finish(&fixture);
}

static void pooling_pads_and_subsamples_as_ref_does(void **state)
{
    (void)state;
    static const struct op ops[] = {
        {.kind = OP_MAX_POOL, .x = {3, 6, 8}, .y = {3, 3, 4}, .window = 2, .stride = 2},
        {.kind = OP_MAX_POOL, .x = {5, 7, 9}, .y = {5, 3, 4}, .window = 3, .stride = 2},
        {.kind = OP_MAX_POOL, .x = {8, 8, 10}, .y = {8, 3, 4}, .window = 3, .stride = 2},
        {.kind = OP_MAX_POOL, .x = {4, 5, 5}, .y = {4, 3, 3}, .window = 3, .stride = 1},
        {.kind = OP_MAX_POOL, .x = {4, 8, 7}, .y = {4, 3, 2}, .window = 2, .stride = 3},
        {.kind = OP_PAD, .x = {4, 3, 5}, .y = {4, 7, 9}, .padding = 2},
        {.kind = OP_PAD, .x = {3, 3, 5}, .y = {3, 5, 7}, .padding = 1},
        {.kind = OP_SUBSAMPLE, .x = {3, 5, 6}, .y = {7, 3, 3}, .window = 1, .stride = 2},
        {.kind = OP_SUBSAMPLE, .x = {4, 5, 6}, .y = {12, 3, 3}, .window = 1, .stride = 2},
    };
    for (size_t k = 0; k < sizeof(ops) / sizeof(ops[0]); k++) {
        check_window(&ops[k], 1, k);
        if ((ops[k].x.channels | ops[k].y.channels) % LANES == 0) {
            check_window(&ops[k], LANES, k);
        }
    }
}

static void check_global_pool(uint32_t channels, unsigned width)
{
    const struct op pool = {.kind = OP_GLOBAL_POOL, .x = {channels, 3, 4}, .y = {channels, 1, 1}};
    const struct cuda_shape s = {channels, 12};
    struct ref_kernel_fixture fixture;
    run_reference(&fixture, &ref_global_pool, &pool, 1);
    float *x = to_nhwc(fixture.x, pool.x), *dy = to_nhwc(fixture.dy, pool.y);
    float *y = allocate(count_of(pool.y)), *dx = allocate(count_of(pool.x));
    for (size_t i = 0; i < count_of(pool.y) / width; i++) {
        body_global_pool(&s, x, y, i, width);
    }
    for (size_t i = 0; i < count_of(pool.x) / width; i++) {
        body_global_pool_back(&s, dy, dx, i, width);
    }
    check_nhwc(y, fixture.y, pool.y);
    check_nhwc(dx, fixture.dx, pool.x);
    free(dy);
    free(x);
    ref_kernel_fixture_finish(&fixture);
}

static void check_dropout(uint32_t channels, unsigned width)
{
    const struct op drop = {.kind = OP_DROPOUT,
                            .x = {channels, 3, 4},
                            .y = {channels, 3, 4},
                            .rate = 0.3f,
                            .stream = 2};
    const struct cuda_shape s = {channels, 12};
    const struct cuda_dropout d = {2, (uint32_t)ceil((double)0.3f * 0x1p32), 1 / (1 - 0.3f)};
    struct ref_kernel_fixture fixture;
    run_reference(&fixture, &ref_dropout, &drop, 2);
    float *x = to_nhwc(fixture.x, drop.x), *y = allocate(count_of(drop.y));
    for (size_t i = 0; i < count_of(drop.y) / width; i++) {
        body_dropout(&s, &d, fixture.sample_keys, x, y, i, width);
    }
    check_nhwc(y, fixture.y, drop.y);
    free(x);
    ref_kernel_fixture_finish(&fixture);
}

static void global_pooling_and_dropout_are_those_of_ref(void **state)
{
    (void)state;
    check_global_pool(5, 1);
    check_global_pool(8, LANES);
    check_dropout(5, 1);
    check_dropout(8, LANES);
}

/* Of samples with one label, or (mixed) with two. */
static void check_loss(const struct mixed_label *mixed)
{
    static const struct op op = {.kind = OP_SOFTMAX_LOSS, .x = {7, 1, 1}, .y = {7, 1, 1}};
    struct ref_kernel_fixture fixture;
    ref_kernel_fixture_init(&fixture, &ref_softmax_loss, &op, (uint32_t)BATCH, 3);
    fixture.input.count = 2;
    fixture.input.gradient_scale = 0.25f;
    fixture.input.mixed = mixed;
    ref_kernel_fixture_forward(&fixture);
    ref_kernel_fixture_backward(&fixture);
    const struct cuda_loss l = {7, 2, 0.25f, mixed != NULL};
    float *probabilities = allocate(7 * BATCH), *dx = allocate(7 * BATCH);
    double losses[BATCH], sum = 0;
    uint32_t hits[BATCH], correct = 0;
    for (size_t n = 0; n < BATCH; n++) {
        body_loss(&l, fixture.x, fixture.labels, mixed, probabilities, losses, hits, n);
        sum += n < 2 ? losses[n] : 0;
        correct += n < 2 ? hits[n] : 0;
    }
    for (size_t i = 0; i < 7 * BATCH; i++) {
        body_loss_back(&l, probabilities, fixture.labels, mixed, dx, i);
    }
    assert_true(fabs(sum / fixture.result.loss_sum - 1) < TOLERANCE);
    assert_int_equal(correct, fixture.result.correct_count);
    check_nhwc(probabilities, fixture.y, op.y);
    check_nhwc(dx, fixture.dx, op.x);
    ref_kernel_fixture_finish(&fixture);
}

static void the_loss_is_that_of_ref(void **state)
{
    (void)state;
    check_loss(NULL);
}

static void the_loss_of_mixed_samples_is_that_of_ref(void **state)
{
    (void)state;
    struct mixed_label mixed[BATCH];
    for (uint32_t n = 0; n < BATCH; n++) {
        mixed[n] = (struct mixed_label){.other = (3 * n + 2) % 7, .share = 1 - 0.3f * (float)n};
    }
    check_loss(mixed);
}

#define FILTERS ((size_t)7 * 5 * 9)
#define BIASES  ((size_t)7)

/* Those of two operations with a bias between them, and something else in the flat vector. */
static void weights_come_to_the_librarys_layout_and_back(void **state)
{
    (void)state;
    const struct cuda_weight_row rows[] = {
        {.flat = 3, .place = 0, .begin = 100, .count = FILTERS, .inputs = 5, .taps = 9},
        {.flat = 3 + FILTERS,
         .place = 2048,
         .begin = 100 + FILTERS,
         .count = BIASES,
         .inputs = 1,
         .taps = 1},
        {.flat = 20 + FILTERS,
         .place = 2304,
         .begin = 100 + FILTERS + BIASES,
         .count = FILTERS,
         .inputs = 9,
         .taps = 5},
    };
    enum { LENGTH = 20 + 2 * FILTERS };
    float from[LENGTH], to[1024] = {0}, set[1024] = {0}, back[LENGTH];
    const struct cuda_weight_copy copy = {rows, 3, from, to};
    const struct cuda_weight_copy set_copy = {rows, 3, from, set};
    const struct cuda_weight_copy return_copy = {rows, 3, back, to};
    for (size_t i = 0; i < LENGTH; i++) {
        from[i] = (float)i;
        back[i] = -1;
    }
    for (size_t i = 2 * FILTERS + BIASES; i-- > 0;) {
        body_weights_in(&copy, i);
    }
    for (size_t i = 2 * FILTERS + BIASES; i-- > 0;) {
        body_weights_out(&return_copy, i);
    }
    for (size_t i = LENGTH; i-- > 0;) {
        body_weight_set(&set_copy, i, from[i]); // what lies between rows is nobody's
    }
    assert_memory_equal(set, to, sizeof(to));
    // Filter 2, channel 3, tap 4; of the other operation, whose taps are 5, filter 6, 8 and 1.
    const float *other_to = to + 2304 / sizeof(float), *other_from = from + 20 + FILTERS;
    assert_true(to[(2 * 9 + 4) * 5 + 3] == from[3 + (2 * 5 + 3) * 9 + 4]);
    assert_true(other_to[(6 * 5 + 1) * 9 + 8] == other_from[(6 * 9 + 8) * 5 + 1]);
    for (size_t i = 0; i < LENGTH; i++) {
        bool is_in_a_row = i >= 3 && (i < 3 + FILTERS + BIASES || i >= 20 + FILTERS);
        assert_true(back[i] == (is_in_a_row ? from[i] : -1)); // what lies between stays
    }
    assert_memory_equal(to + 2048 / 4, from + 3 + FILTERS, BIASES * sizeof(float));
}

/* Spans that begin and end within 16 bytes; what lies around them stays. */
static void means_are_added_up_in_the_order_of_the_vectors(void **state)
{
    (void)state;
    enum { LENGTH = 40 };
    for (size_t offset = 0; offset < 9; offset++) {
        for (size_t count = 0; count < 23; count++) {
            _Alignas(16) float vectors[3][LENGTH], before[3][LENGTH];
            struct cuda_mean m = {
                .world = 3, .factor = 1.0f / 3.0f, .offset = offset, .count = count};
            for (size_t k = 0; k < 3; k++) {
                m.vectors[k] = vectors[k];
                for (size_t i = 0; i < LENGTH; i++) {
                    before[k][i] = vectors[k][i] = 1.0f / (float)(7 * k + i + 1) - 0.1f;
                }
            }
            for (size_t i = mean_pack_count(&m); i-- > 0;) {
                mean_pack(&m, i);
            }
            for (size_t i = 0; i < LENGTH; i++) {
                float mean = ((before[0][i] + before[1][i]) + before[2][i]) * m.factor;
                bool is_inside = i >= offset && i < offset + count;
                for (size_t k = 0; k < 3; k++) {
                    assert_true(vectors[k][i] == (is_inside ? mean : before[k][i]));
                }
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pooling_pads_and_subsamples_as_ref_does),
        cmocka_unit_test(global_pooling_and_dropout_are_those_of_ref),
        cmocka_unit_test(the_loss_is_that_of_ref),
        cmocka_unit_test(the_loss_of_mixed_samples_is_that_of_ref),
        cmocka_unit_test(weights_come_to_the_librarys_layout_and_back),
        cmocka_unit_test(means_are_added_up_in_the_order_of_the_vectors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
