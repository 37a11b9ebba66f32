/* Tests of forward in two halves: backward is queued before the result is waited for, and all is as
 * if forward had been waited for at once. */
#include "tests/support/model/program_fixture.h"
#include "tests/support/model/tested_backends.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define BATCH_SIZE 3
#define STEPS      4

static const struct layer layers[] = {
    {OP_CONV2D, .channels = 8, .window = 3, .stride = 1, .has_no_bias = true},
    {OP_BATCH_NORM, .epsilon = 1e-3f},
    {OP_RELU},
    {OP_DROPOUT, .rate = 0.25f},
    {OP_LINEAR, .channels = 7},
};

/* A run of some steps, and what each ended with. */
struct run {
    struct program_fixture fixture;
    struct device *device;
    struct program *program;
    struct program_result results[STEPS];
    float *grads[STEPS];
};

static void step(struct run *run, bool in_halves, uint32_t last_op, uint32_t index)
{
    struct program_result *result = &run->results[index];
    if (in_halves) {
        assert_int_equal(program_begin_forward(run->program, &run->fixture.input), STATUS_OK);
    } else {
        assert_int_equal(program_forward(run->program, &run->fixture.input, result), STATUS_OK);
    }
    assert_int_equal(program_backward(run->program, last_op, 2), STATUS_OK);
    assert_int_equal(program_backward(run->program, 1, 0), STATUS_OK);
    if (in_halves) {
        assert_int_equal(program_await_result(run->program, result), STATUS_OK);
    }
    assert_int_equal(program_await(run->program, 2), STATUS_OK);
    assert_int_equal(program_await(run->program, 0), STATUS_OK);
}

static void run_steps(struct run *run, const char *backend, const struct network_plan *plan,
                      bool in_halves)
{
    const struct device_options device = {.threads = 1, .replays_launches = true};
    size_t bytes = plan->value_count * sizeof(float);
    program_fixture_init(&run->fixture, plan, BATCH_SIZE, 5);
    assert_int_equal(device_open(backend, &device, &run->device), STATUS_OK);
    const struct program_options options = {
        .ops = plan->ops,
        .op_count = plan->op_count,
        .batch_size = BATCH_SIZE,
        .params = run->fixture.params,
        .grads = run->fixture.grads,
        .statistics = run->fixture.statistics,
    };
    assert_int_equal(device_compile(run->device, &options, &run->program), STATUS_OK);
    for (uint32_t i = 0; i < STEPS; i++) {
        program_fixture_poison(run->fixture.grads, plan->value_count);
        step(run, in_halves, plan->op_count - 1, i);
        run->grads[i] = malloc(bytes + 1); // the analyser sees no parameters
        assert_non_null(run->grads[i]);
        memcpy(run->grads[i], run->fixture.grads, bytes);
    }
    assert_int_equal(program_fetch_statistics(run->program), STATUS_OK);
}

static void finish(struct run *run)
{
    for (uint32_t i = 0; i < STEPS; i++) {
        free(run->grads[i]);
    }
    program_destroy(run->program);
    device_close(run->device);
    program_fixture_finish(&run->fixture);
}

static void check_backend(const char *backend)
{
    static struct network_plan plan;
    static struct run whole, halves;
    program_fixture_plan(layers, sizeof(layers) / sizeof(layers[0]), (struct shape){2, 8, 9},
                         &plan);
    run_steps(&whole, backend, &plan, false);
    run_steps(&halves, backend, &plan, true);
    for (uint32_t i = 0; i < STEPS; i++) {
        assert_true(isfinite(whole.results[i].loss_sum));
        assert_true(halves.results[i].loss_sum == whole.results[i].loss_sum);
        assert_int_equal(halves.results[i].correct_count, whole.results[i].correct_count);
        assert_memory_equal(halves.grads[i], whole.grads[i], plan.value_count * sizeof(float));
    }
    assert_memory_equal(halves.fixture.statistics, whole.fixture.statistics,
                        plan.statistic_count * sizeof(float));
    finish(&whole);
    finish(&halves);
}

static void forward_in_halves_is_forward_at_once(void **state)
{
    (void)state;
    for (const struct device_ops *const *ops = tested_backends(); *ops != NULL; ops++) {
        check_backend((*ops)->name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forward_in_halves_is_forward_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
