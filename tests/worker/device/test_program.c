/* What every backend's programs promise, checked on each backend of the build; and the whole of the
 * reference backend's gradient against finite differences. */
#include "tests/support/model/gradient_check.h"
#include "tests/support/model/program_compare.h"
#include "tests/support/model/program_fixture.h"
#include "tests/support/model/tested_backends.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on

/* Rounding differs where a backend picks other algorithms for another batch size. */
#define TOLERANCE 1e-5

#define REF_TOLERANCE 1e-4 // of a backend against ref

#define BATCH_SIZE 5

static const struct layer layers[] = {
    {OP_CONV2D, .channels = 6, .window = 3, .stride = 1, .padding = 1},
    {OP_RELU},
    {OP_MAX_POOL, .window = 2, .stride = 2},
    {OP_DROPOUT, .rate = 0.25f},
    {OP_CONV2D, .channels = 4, .window = 3, .stride = 1},
    {OP_RELU},
    {OP_LINEAR, .channels = 12},
    {OP_RELU},
    {OP_DROPOUT, .rate = 0.5f},
    {OP_LINEAR, .channels = 7},
};
#define LAYER_COUNT (sizeof(layers) / sizeof(layers[0]))

static const struct shape input_shape = {2, 9, 11};

/* For finite differences: one weight scales a whole channel of one-channel pixels, so that a small
 * change of it moves no maximum. */
static const struct layer kinkless_layers[] = {
    {OP_CONV2D, .channels = 6, .window = 1, .stride = 1},
    {OP_RELU},
    {OP_MAX_POOL, .window = 2, .stride = 2},
    {OP_DROPOUT, .rate = 0.25f},
    {OP_CONV2D, .channels = 5, .window = 3, .stride = 2, .padding = 1},
    {OP_RELU},
    {OP_CONV2D, .channels = 4, .window = 2, .stride = 1},
    {OP_RELU},
    {OP_LINEAR, .channels = 12},
    {OP_RELU},
    {OP_DROPOUT, .rate = 0.5f},
    {OP_LINEAR, .channels = 7},
};
#define KINKLESS_LAYER_COUNT (sizeof(kinkless_layers) / sizeof(kinkless_layers[0]))

/* One program on one backend. */
struct bench {
    struct network_plan plan;
    struct program_fixture fixture;
    struct device *device;
    struct program *program;
};

/* Of the plan that is in `bench`. */
static void compile(struct bench *bench, const char *backend, uint32_t batch_size, bool has_grads)
{
    program_fixture_init(&bench->fixture, &bench->plan, batch_size, 3);
    const struct device_options device_options = {.threads = 1, .replays_launches = true};
    assert_int_equal(device_open(backend, &device_options, &bench->device), STATUS_OK);
    const struct program_options options = {
        .ops = bench->plan.ops,
        .op_count = bench->plan.op_count,
        .batch_size = batch_size,
        .params = bench->fixture.params,
        .grads = has_grads ? bench->fixture.grads : NULL,
        .statistics = bench->fixture.statistics,
    };
    assert_int_equal(device_compile(bench->device, &options, &bench->program), STATUS_OK);
}

static void set_up(struct bench *bench, const char *backend, uint32_t batch_size, bool has_grads)
{
    program_fixture_plan(layers, LAYER_COUNT, input_shape, &bench->plan);
    compile(bench, backend, batch_size, has_grads);
}

static void tear_down(struct bench *bench)
{
    program_destroy(bench->program);
    device_close(bench->device);
    program_fixture_finish(&bench->fixture);
}

static struct program_result run_forward(struct bench *bench)
{
    struct program_result result = {.loss_sum = (double)NAN, .correct_count = UINT32_MAX};
    assert_int_equal(program_forward(bench->program, &bench->fixture.input, &result), STATUS_OK);
    assert_true(isfinite(result.loss_sum));
    assert_true(result.correct_count <= bench->fixture.input.count);
    return result;
}

static void run_backward(struct bench *bench, uint32_t last_op, uint32_t first_op)
{
    assert_int_equal(program_backward(bench->program, last_op, first_op), STATUS_OK);
    assert_int_equal(program_await(bench->program, first_op), STATUS_OK);
}

/* Forward and backward; the caller frees the gradients, a copy. */
static float *gradients_of(struct bench *bench, struct program_result *ret_result)
{
    size_t bytes = bench->plan.value_count * sizeof(float);
    program_fixture_poison(bench->fixture.grads, bench->plan.value_count);
    *ret_result = run_forward(bench);
    run_backward(bench, bench->plan.op_count - 1, 0);
    float *grads = malloc(bytes + 1); // the analyser sees no parameters
    assert_non_null(grads);
    memcpy(grads, bench->fixture.grads, bytes);
    return grads;
}

static double error_between(const struct bench *bench, const float *a, const float *b)
{
    return program_fixture_relative_error(a, b, bench->plan.value_count);
}

static void for_each_backend(void (*check)(const char *backend))
{
    for (const struct device_ops *const *ops = tested_backends(); *ops != NULL; ops++) {
        check((*ops)->name);
    }
}

static void check_split(const char *backend)
{
    struct bench bench;
    set_up(&bench, backend, BATCH_SIZE, true);
    struct program_result result;
    float *whole = gradients_of(&bench, &result);

    uint32_t last_op = bench.plan.op_count - 1;
    program_fixture_poison(bench.fixture.grads, bench.plan.value_count);
    run_forward(&bench);
    run_backward(&bench, last_op, last_op - 1);
    assert_true(isfinite(bench.fixture.grads[bench.plan.value_count - 1]));
    assert_true(isnan(bench.fixture.grads[bench.plan.ops[6].weight]));
    run_backward(&bench, last_op - 2, 4);
    for (uint32_t op = 4; op-- > 0;) {
        run_backward(&bench, op, op);
    }
    assert_memory_equal(bench.fixture.grads, whole, bench.plan.value_count * sizeof(float));
    free(whole);
    tear_down(&bench);
}

static void backward_in_pieces_is_backward_at_once(void **state)
{
    (void)state;
    for_each_backend(check_split);
}

/* Queued at once, waited for one after the other, as a trainer does with buckets. */
static void check_await(const char *backend)
{
    static const uint32_t firsts[5] = {8, 6, 4, 1, 0};
    struct bench bench;
    set_up(&bench, backend, BATCH_SIZE, true);
    struct program_result result;
    const float *grads = bench.fixture.grads;
    float *whole = gradients_of(&bench, &result);
    for (uint32_t step = 0; step < 3; step++) {
        program_fixture_poison(bench.fixture.grads, bench.plan.value_count);
        run_forward(&bench);
        uint32_t last = bench.plan.op_count - 1;
        for (size_t i = 0; i < 5; last = firsts[i++] - 1) {
            assert_int_equal(program_backward(bench.program, last, firsts[i]), STATUS_OK);
        }
        uint64_t end = bench.plan.value_count;
        for (size_t i = 0; i < 5; i++) {
            assert_int_equal(program_await(bench.program, firsts[i]), STATUS_OK);
            const struct op *op = &bench.plan.ops[firsts[i]];
            uint64_t begin = op_weight_count(op) > 0 ? op->weight : end;
            assert_memory_equal(grads + begin, whole + begin, (end - begin) * sizeof(*grads));
            end = begin;
        }
        assert_int_equal(end, 0);
    }
    free(whole);
    tear_down(&bench);
}

static void gradients_are_there_once_they_were_awaited(void **state)
{
    (void)state;
    for_each_backend(check_await);
}

static void check_repeat(const char *backend)
{
    struct bench bench;
    set_up(&bench, backend, BATCH_SIZE, true);
    struct program_result first;
    struct program_result second;
    float *before = gradients_of(&bench, &first);
    run_forward(&bench); // whose backward is never asked for
    float *after = gradients_of(&bench, &second);
    assert_true(first.loss_sum == second.loss_sum);
    assert_int_equal(first.correct_count, second.correct_count);
    assert_memory_equal(before, after, bench.plan.value_count * sizeof(float));
    free(before);
    free(after);
    tear_down(&bench);
}

static void a_step_leaves_nothing_behind(void **state)
{
    (void)state;
    for_each_backend(check_repeat);
}

static void check_params(const char *backend)
{
    struct bench changed;
    struct bench fresh;
    struct program_result ignored;
    struct program_result result;
    struct program_result expected;
    set_up(&changed, backend, BATCH_SIZE, true);
    free(gradients_of(&changed, &ignored));
    for (size_t i = 0; i < changed.plan.value_count; i++) {
        changed.fixture.params[i] *= 0.75f;
    }
    float *grads = gradients_of(&changed, &result);

    set_up(&fresh, backend, BATCH_SIZE, true);
    memcpy(fresh.fixture.params, changed.fixture.params, fresh.plan.value_count * sizeof(float));
    float *expected_grads = gradients_of(&fresh, &expected);
    assert_true(result.loss_sum == expected.loss_sum);
    assert_memory_equal(grads, expected_grads, fresh.plan.value_count * sizeof(float));
    free(grads);
    free(expected_grads);
    tear_down(&changed);
    tear_down(&fresh);
}

static void new_parameters_are_seen_by_the_next_step(void **state)
{
    (void)state;
    for_each_backend(check_params);
}

static void check_padding(const char *backend)
{
    struct bench padded;
    struct bench whole;
    struct program_result result;
    struct program_result other_result;
    struct program_result expected;
    set_up(&padded, backend, BATCH_SIZE, true);
    padded.fixture.input.count = 3;
    padded.fixture.input.gradient_scale = 0.25f;
    float *grads = gradients_of(&padded, &result);

    size_t sample = (size_t)2 * 9 * 11;
    for (size_t i = 3 * sample; i < BATCH_SIZE * sample; i++) {
        padded.fixture.pixels[i] = -9;
    }
    padded.fixture.labels[4] ^= 1;
    float *other_grads = gradients_of(&padded, &other_result);
    assert_true(result.loss_sum == other_result.loss_sum);
    assert_int_equal(result.correct_count, other_result.correct_count);
    assert_true(error_between(&padded, other_grads, grads) == 0);

    set_up(&whole, backend, 3, true);
    whole.fixture.input.gradient_scale = 0.25f;
    float *expected_grads = gradients_of(&whole, &expected);
    assert_true(fabs(result.loss_sum / expected.loss_sum - 1) < TOLERANCE);
    assert_int_equal(result.correct_count, expected.correct_count);
    assert_true(error_between(&whole, grads, expected_grads) < TOLERANCE);
    free(grads);
    free(other_grads);
    free(expected_grads);
    tear_down(&padded);
    tear_down(&whole);
}

static void padding_changes_nothing(void **state)
{
    (void)state;
    for_each_backend(check_padding);
}

static void check_scale(const char *backend)
{
    struct bench bench;
    set_up(&bench, backend, BATCH_SIZE, true);
    struct program_result result;
    bench.fixture.input.gradient_scale = 1;
    float *sums = gradients_of(&bench, &result);
    bench.fixture.input.gradient_scale = 0.5f;
    float *halves = gradients_of(&bench, &result);
    for (size_t i = 0; i < bench.plan.value_count; i++) {
        halves[i] *= 2;
    }
    assert_true(error_between(&bench, halves, sums) < TOLERANCE);
    free(sums);
    free(halves);
    tear_down(&bench);
}

static void gradients_are_proportional_to_their_scale(void **state)
{
    (void)state;
    for_each_backend(check_scale);
}

static void check_evaluation(const char *backend)
{
    struct bench training;
    struct bench evaluation;
    set_up(&training, backend, BATCH_SIZE, true);
    set_up(&evaluation, backend, BATCH_SIZE, false);
    double with_dropout = run_forward(&training).loss_sum;
    training.fixture.input.is_training = false;
    training.fixture.input.sample_keys = NULL;
    evaluation.fixture.input.is_training = false;
    evaluation.fixture.input.sample_keys = NULL;
    struct program_result result = run_forward(&training);
    struct program_result expected = run_forward(&evaluation);
    assert_true(fabs(result.loss_sum / expected.loss_sum - 1) < TOLERANCE);
    assert_int_equal(result.correct_count, expected.correct_count);
    assert_true(fabs(with_dropout / expected.loss_sum - 1) > 0.01);
    tear_down(&training);
    tear_down(&evaluation);
}

static void a_program_without_gradients_evaluates_without_dropout(void **state)
{
    (void)state;
    for_each_backend(check_evaluation);
}

static void check_description(const char *backend)
{
    struct bench bench;
    set_up(&bench, backend, 1, true);
    char text[512] = "";
    device_describe(bench.device, bench.program, text, sizeof(text));
    assert_true(text[0] != '\0');
    assert_null(strchr(text, '\n'));
    char small[4] = "";
    device_describe(bench.device, bench.program, small, sizeof(small));
    assert_true(memchr(small, '\0', sizeof(small)) != NULL);
    tear_down(&bench);
}

static void a_program_describes_itself_in_one_line(void **state)
{
    (void)state;
    for_each_backend(check_description);
}

static void a_batch_that_fits_no_memory_is_refused(void **state)
{
    (void)state;
    struct bench bench;
    set_up(&bench, "ref", 1, true);
    const struct program_options options = {
        .ops = bench.plan.ops,
        .op_count = bench.plan.op_count,
        .batch_size = UINT32_MAX,
        .params = bench.fixture.params,
        .grads = bench.fixture.grads,
    };
    struct program *program = NULL;
    assert_int_equal(device_compile(bench.device, &options, &program), STATUS_NO_MEMORY);
    assert_null(program);
    tear_down(&bench);
}

static void check_against_ref(const char *backend)
{
    struct network_plan plan;
    program_fixture_plan(layers, LAYER_COUNT, input_shape, &plan);
    bool is_ref = strcmp(backend, "ref") == 0;
    for (uint32_t batch_size = 1; batch_size <= 9; batch_size += 4) {
        const struct program_compare_options options = {
            .subject = backend,
            .reference = "ref",
            .batch_size = batch_size,
            .seed = batch_size,
        };
        struct program_difference difference;
        program_compare(&plan, &options, &difference);
        assert_true(difference.loss <= (is_ref ? 0 : REF_TOLERANCE));
        assert_true(difference.grads <= (is_ref ? 0 : REF_TOLERANCE));
        assert_int_equal(difference.correct, 0);
    }
}

static void every_backend_computes_what_ref_does(void **state)
{
    (void)state;
    for_each_backend(check_against_ref);
}

/* More parameters than any backend takes at once. */
static void check_many_params(const char *backend)
{
    static const struct layer wide[] = {
        {OP_LINEAR, .channels = 1300}, {OP_LINEAR, .channels = 1100}, {OP_LINEAR, .channels = 7}};
    struct network_plan plan;
    struct program_difference difference;
    const struct program_compare_options options = {
        .subject = backend, .reference = "ref", .batch_size = 2, .seed = 1};
    program_fixture_plan(wide, 3, (struct shape){2, 30, 40}, &plan);
    program_compare(&plan, &options, &difference);
    assert_true(difference.loss <= REF_TOLERANCE && difference.grads <= REF_TOLERANCE);
}

static void many_parameters_are_computed_as_ref_does(void **state)
{
    (void)state;
    for_each_backend(check_many_params);
}

static double mean_loss(void *context)
{
    struct bench *bench = context;
    return run_forward(bench).loss_sum * (double)bench->fixture.input.gradient_scale;
}

/* Small weights, and biases that switch each rectifier clearly on or off; no weight of the first
 * layer near 0, where it would turn the order of its channel around. */
static void keep_from_kinks(struct bench *bench)
{
    const struct network_plan *plan = &bench->plan;
    for (uint32_t t = 0; t < plan->tensor_count; t++) {
        float *values = bench->fixture.params + plan->tensors[t].span.offset;
        for (uint64_t i = 0; i < plan->tensors[t].span.count; i++) {
            if (plan->tensors[t].kind == TENSOR_BIAS) {
                values[i] = i % 3 == 2 ? -2 : 2;
            } else {
                values[i] *= 0.25f;
            }
            if (t == 0) {
                values[i] = copysignf(0.25f, values[i]) + values[i];
            }
        }
    }
}

static void gradients_of_ref_agree_with_finite_differences(void **state)
{
    (void)state;
    struct bench bench;
    struct shape input = {1, 8, 10};
    program_fixture_plan(kinkless_layers, KINKLESS_LAYER_COUNT, input, &bench.plan);
    compile(&bench, "ref", BATCH_SIZE, true);
    keep_from_kinks(&bench);
    struct program_result result;
    float *grads = gradients_of(&bench, &result);
    for (uint32_t t = 0; t < bench.plan.tensor_count; t++) {
        struct span span = bench.plan.tensors[t].span;
        double error = gradient_check(mean_loss, &bench, bench.fixture.params + span.offset,
                                      grads + span.offset, span.count, 0x1p-6f);
        print_message("tensor %u: relative error %.1e\n", t, error);
        assert_true(error < 1e-3);
    }
    free(grads);
    tear_down(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(backward_in_pieces_is_backward_at_once),
        cmocka_unit_test(gradients_are_there_once_they_were_awaited),
        cmocka_unit_test(a_step_leaves_nothing_behind),
        cmocka_unit_test(new_parameters_are_seen_by_the_next_step),
        cmocka_unit_test(padding_changes_nothing),
        cmocka_unit_test(gradients_are_proportional_to_their_scale),
        cmocka_unit_test(a_program_without_gradients_evaluates_without_dropout),
        cmocka_unit_test(a_program_describes_itself_in_one_line),
        cmocka_unit_test(a_batch_that_fits_no_memory_is_refused),
        cmocka_unit_test(every_backend_computes_what_ref_does),
        cmocka_unit_test(many_parameters_are_computed_as_ref_does),
        cmocka_unit_test(gradients_of_ref_agree_with_finite_differences),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
