/* Convolutions whose normalisation takes its statistics from them, where a backend has that,
 * against ref: several steps, padded batches, sums over workers, evaluations. */
#include "tests/support/model/program_fixture.h"
#include "tests/support/model/tested_backends.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on

#define TOLERANCE 2e-2
#define CLASSES   5
#define BATCH     6
#define STEPS     4 // of which CUDA graphs replay the last ones

static uint32_t conv(struct layers *layers, uint32_t input, uint32_t channels, uint32_t window)
{
    const struct layer layer = {OP_CONV2D,   .channels = channels,  .window = window,
                                .stride = 1, .padding = window / 2, .has_no_bias = true};
    return layers_add(layers, input, layer);
}

static uint32_t norm(struct layers *layers, uint32_t input)
{
    return layers_add(layers, input, (struct layer){OP_BATCH_NORM, .epsilon = 1e-3f});
}

/* Nothing that has a tie, which rounding to 8 bits would decide otherwise than ref. */
static void plan_layers(struct network_plan *ret_plan)
{
    static struct layers layers;
    const struct layer strided = {OP_CONV2D,   .channels = 24, .window = 3,
                                  .stride = 2, .padding = 1,   .has_no_bias = true};
    const struct layer biased = {OP_CONV2D, .channels = 8, .window = 1, .stride = 1};
    layers.count = 0;
    uint32_t x = norm(&layers, conv(&layers, DEVICE_INPUT_PIXELS, 21, 3));
    x = norm(&layers, conv(&layers, x, 16, 1));
    uint32_t y = norm(&layers, conv(&layers, x, 16, 3));
    y = norm(&layers, conv(&layers, y, 16, 3)); // alike, and what an add is fused with
    x = layers_add(&layers, y, (struct layer){OP_ADD, .other = x});
    x = norm(&layers, layers_add(&layers, x, strided));
    x = norm(&layers, layers_add(&layers, x, biased)); // not from the convolution: it has a bias
    x = conv(&layers, x, 8, 3);                        // nor from this: two read it
    x = layers_add(&layers, norm(&layers, x), (struct layer){OP_ADD, .other = x});
    x = conv(&layers, x, 32, 3); // a mean of what is normalised would have no gradient
    x = layers_add(&layers, x, (struct layer){OP_GLOBAL_POOL});
    layers_add(&layers, x, (struct layer){OP_LINEAR, .channels = CLASSES});
    program_fixture_plan_layers(&layers, (struct shape){3, 10, 12}, CLASSES, ret_plan);
}

static enum status add_an_equal_worker(void *context, double *values, uint32_t count)
{
    (void)context;
    for (uint32_t i = 0; i < count; i++) {
        values[i] *= 2;
    }
    return STATUS_OK;
}

static const struct course {
    const char *name;
    uint32_t count; // samples that are not padding
    bool sums_over_workers;
    bool ends_padded; // the last step has one sample less
    bool replays;
} courses[] = {
    {"full batches", BATCH, false, false, true},
    {"launch by launch", BATCH, false, false, false},
    {"padded batches", BATCH - 2, false, false, true},
    {"a padded batch at the end", BATCH, false, true, true},
    {"sums over workers", BATCH, true, false, true},
    {"sums over workers of padded batches", BATCH - 1, true, false, true},
};

struct run {
    struct program_fixture fixture;
    struct program_result trained, evaluated;
};

static void open_program(const char *backend, const struct course *course,
                         const struct program_fixture *fixture, struct device **ret_device,
                         struct program **ret_program)
{
    const struct device_options device = {
        .threads = 1, .allows_nondeterministic = true, .replays_launches = course->replays};
    const struct program_options options = {
        .ops = fixture->plan->ops,
        .op_count = fixture->plan->op_count,
        .batch_size = BATCH,
        .params = fixture->params,
        .grads = fixture->grads,
        .statistics = fixture->statistics,
        .precision = strcmp(backend, "ref") == 0 ? PRECISION_FP32 : PRECISION_BF16,
    };
    assert_int_equal(device_open(backend, &device, ret_device), STATUS_OK);
    assert_int_equal(device_compile(*ret_device, &options, ret_program), STATUS_OK);
}

static void run_course(const char *backend, const struct course *course,
                       const struct network_plan *plan, struct run *run)
{
    struct device *device;
    struct program *program;
    struct program_input *input = &run->fixture.input;
    program_fixture_init(&run->fixture, plan, BATCH, 11);
    input->sum_over_workers = course->sums_over_workers ? add_an_equal_worker : NULL;
    open_program(backend, course, &run->fixture, &device, &program);
    for (uint32_t step = 0; step < STEPS; step++) {
        bool is_padded = course->ends_padded && step == STEPS - 1;
        input->count = course->count - (is_padded ? 1 : 0);
        assert_int_equal(program_forward(program, input, &run->trained), STATUS_OK);
        assert_int_equal(program_backward(program, plan->op_count - 1, 0), STATUS_OK);
        assert_int_equal(program_await(program, 0), STATUS_OK);
    }
    input->is_training = false;
    assert_int_equal(program_forward(program, input, &run->evaluated), STATUS_OK);
    assert_int_equal(program_fetch_statistics(program), STATUS_OK);
    program_destroy(program);
    device_close(device);
}

static double distance(double a, double b)
{
    return fabs(a - b) / fabs(b);
}

static void check_course(const char *backend, const struct course *course)
{
    static struct network_plan plan;
    static struct run subject, reference;
    plan_layers(&plan);
    run_course(backend, course, &plan, &subject);
    run_course("ref", course, &plan, &reference);
    double trained = distance(subject.trained.loss_sum, reference.trained.loss_sum);
    double evaluated = distance(subject.evaluated.loss_sum, reference.evaluated.loss_sum);
    double statistics = program_fixture_relative_error(
        subject.fixture.statistics, reference.fixture.statistics, plan.statistic_count);
    double grads = program_fixture_relative_error(subject.fixture.grads, reference.fixture.grads,
                                                  plan.value_count);
    print_message("%s, %s: loss %.1e and %.1e, statistics %.1e, gradients %.1e\n", backend,
                  course->name, trained, evaluated, statistics, grads);
    assert_true(trained < TOLERANCE && evaluated < TOLERANCE);
    assert_true(statistics < TOLERANCE && grads < TOLERANCE);
    program_fixture_finish(&subject.fixture);
    program_fixture_finish(&reference.fixture);
}

static void statistics_of_convolutions_are_within_the_rounding_of_ref(void **state)
{
    (void)state;
    for (const struct device_ops *const *ops = tested_backends(); *ops != NULL; ops++) {
        if (!program_fixture_has_bf16(*ops)) {
            continue;
        }
        for (size_t i = 0; i < sizeof(courses) / sizeof(courses[0]); i++) {
            check_course((*ops)->name, &courses[i]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(statistics_of_convolutions_are_within_the_rounding_of_ref),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
