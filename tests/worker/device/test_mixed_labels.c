/* What every backend promises of samples with two labels: loss and gradients are the means of those
 * of either label, by the shares. */
#include "tests/support/model/program_fixture.h"
#include "tests/support/model/tested_backends.h"
#include "worker/device/device.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on

#define TOLERANCE  1e-5
#define BATCH_SIZE 4
#define CLASSES    7
#define SHARE      0.75f

static const struct layer layers[] = {
    {OP_CONV2D, .channels = 5, .window = 3, .stride = 1, .padding = 1},
    {OP_RELU},
    {OP_LINEAR, .channels = CLASSES},
};

struct bench {
    struct network_plan plan;
    struct program_fixture fixture;
    struct device *device;
    struct program *program;
};

static void set_up(struct bench *bench, const char *backend)
{
    const struct device_options device = {.threads = 1, .replays_launches = true};
    program_fixture_plan(layers, sizeof(layers) / sizeof(layers[0]), (struct shape){2, 6, 5},
                         &bench->plan);
    program_fixture_init(&bench->fixture, &bench->plan, BATCH_SIZE, 3);
    assert_int_equal(device_open(backend, &device, &bench->device), STATUS_OK);
    const struct program_options options = {
        .ops = bench->plan.ops,
        .op_count = bench->plan.op_count,
        .batch_size = BATCH_SIZE,
        .params = bench->fixture.params,
        .grads = bench->fixture.grads,
        .statistics = bench->fixture.statistics,
    };
    assert_int_equal(device_compile(bench->device, &options, &bench->program), STATUS_OK);
}

static void tear_down(struct bench *bench)
{
    program_destroy(bench->program);
    device_close(bench->device);
    program_fixture_finish(&bench->fixture);
}

/* The caller frees the gradients. */
static float *run(struct bench *bench, const struct mixed_label *mixed, double *ret_loss)
{
    struct program_result result;
    bench->fixture.input.mixed = mixed;
    assert_int_equal(program_forward(bench->program, &bench->fixture.input, &result), STATUS_OK);
    assert_int_equal(program_backward(bench->program, bench->plan.op_count - 1, 0), STATUS_OK);
    assert_int_equal(program_await(bench->program, 0), STATUS_OK);
    *ret_loss = result.loss_sum;
    float *grads = malloc(bench->plan.value_count * sizeof(float) + 1); // for the analyser
    assert_non_null(grads);
    memcpy(grads, bench->fixture.grads, bench->plan.value_count * sizeof(float));
    return grads;
}

static void check_backend(const char *backend)
{
    struct bench bench;
    set_up(&bench, backend);
    struct mixed_label mixed[BATCH_SIZE];
    double first_loss, second_loss, mixed_loss, again_loss;
    size_t count = bench.plan.value_count;
    for (uint32_t n = 0; n < BATCH_SIZE; n++) {
        mixed[n] =
            (struct mixed_label){.other = (bench.fixture.labels[n] + n) % CLASSES, .share = SHARE};
    }
    float *first = run(&bench, NULL, &first_loss);
    float *both = run(&bench, mixed, &mixed_loss);
    float *again = run(&bench, NULL, &again_loss);
    assert_true(first_loss == again_loss);
    assert_memory_equal(first, again, count * sizeof(float));
    for (uint32_t n = 0; n < BATCH_SIZE; n++) {
        bench.fixture.labels[n] = mixed[n].other;
    }
    float *second = run(&bench, NULL, &second_loss);
    double expected_loss = (double)SHARE * first_loss + (1 - (double)SHARE) * second_loss;
    for (size_t i = 0; i < count; i++) {
        first[i] = SHARE * first[i] + (1 - SHARE) * second[i];
    }
    assert_true(fabs(mixed_loss / expected_loss - 1) < TOLERANCE);
    assert_true(program_fixture_relative_error(both, first, count) < TOLERANCE);
    free(first);
    free(both);
    free(again);
    free(second);
    tear_down(&bench);
}

static void two_labels_count_by_their_shares_on_every_backend(void **state)
{
    (void)state;
    for (const struct device_ops *const *ops = tested_backends(); *ops != NULL; ops++) {
        check_backend((*ops)->name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_labels_count_by_their_shares_on_every_backend),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
