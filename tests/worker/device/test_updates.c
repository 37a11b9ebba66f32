/* Updates of parameters by a device, against optimizer_apply: equal bits. On every backend that
 * makes any, which is cuda, on a GPU or on its fake runtime. */
#include "common/base/random.h"
#include "common/optimizer/optimizer.h"
#include "common/optimizer/optimizer_formulas.h"
#include "tests/support/common/choices.h"
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

static const struct layer layers[] = {
    {OP_CONV2D, .channels = 6, .window = 3, .stride = 1, .padding = 1},
    {OP_RELU},
    {OP_LINEAR, .channels = 7},
};
#define LAYER_COUNT (sizeof(layers) / sizeof(layers[0]))

#define STEPS 5
#define RATE  0.01

static const char *const names[] = {"sgd",   "momentum", "nesterov", "adam",
                                    "adamw", "adagrad",  "adadelta", "rmsprop"};

static const struct optimizer_settings settings = {
    .momentum = 0.9, .beta1 = 0.9, .beta2 = 0.999, .weight_decay = 0.01};

/* A program that updates its parameters, and what they are to be. */
struct pair {
    struct network_plan plan;
    struct program_fixture fixture;
    struct device *device;
    struct program *program;
    struct optimizer *held, *reference;
    float *params; // (value_count), by the reference
};

static void open_pair_of(struct pair *pair, const char *name, enum precision precision)
{
    program_fixture_plan(layers, LAYER_COUNT, (struct shape){2, 9, 11}, &pair->plan);
    program_fixture_init(&pair->fixture, &pair->plan, 4, 3);
    const struct program_options options = {
        .ops = pair->plan.ops,
        .op_count = pair->plan.op_count,
        .batch_size = 4,
        .params = pair->fixture.params,
        .grads = pair->fixture.grads,
        .statistics = pair->fixture.statistics,
        .precision = precision,
    };
    const struct device_options device = {.threads = 1, .replays_launches = true};
    uint64_t count = pair->plan.value_count;
    assert_int_equal(device_open("cuda", &device, &pair->device), STATUS_OK);
    assert_int_equal(device_compile(pair->device, &options, &pair->program), STATUS_OK);
    enum optimizer_kind kind = (enum optimizer_kind)choice_of(names_optimizers, name);
    assert_int_equal(optimizer_create(kind, &settings, count, &pair->held), STATUS_OK);
    assert_int_equal(optimizer_create(kind, &settings, count, &pair->reference), STATUS_OK);
    float *states[OPTIMIZER_STATES_MAX] = {NULL};
    for (uint32_t i = 0; i < optimizer_state_count(pair->held); i++) {
        states[i] = optimizer_state(pair->held, i);
    }
    assert_true(program_may_update(pair->program));
    assert_int_equal(program_hold(pair->program, states, optimizer_state_count(pair->held)),
                     STATUS_OK);
    pair->params = malloc(count * sizeof(float));
    assert_non_null(pair->params);
    memcpy(pair->params, pair->fixture.params, count * sizeof(float));
}

static void open_pair(struct pair *pair, const char *name)
{
    open_pair_of(pair, name, PRECISION_FP32);
}

static void close_pair(struct pair *pair)
{
    program_destroy(pair->program);
    device_close(pair->device);
    optimizer_destroy(pair->held);
    optimizer_destroy(pair->reference);
    program_fixture_finish(&pair->fixture);
    free(pair->params);
}

static void forward(struct pair *pair)
{
    struct program_result result;
    assert_int_equal(program_forward(pair->program, &pair->fixture.input, &result), STATUS_OK);
}

/* Values over many magnitudes, zeros and denormals among them. */
static void draw_gradients(struct pair *pair, uint64_t seed)
{
    struct random_sequence sequence = {seed};
    for (uint64_t i = 0; i < pair->plan.value_count; i++) {
        int exponent = (int)random_below(&sequence, 48) - 40;
        float value = random_unit_float((uint32_t)random_next(&sequence)) - 0.5f;
        pair->fixture.grads[i] = i % 37 == 0 ? 1e-41f * (float)(i % 2) : ldexpf(value, exponent);
    }
}

/* In two spans, the second first, as buckets go. */
static void update(struct pair *pair, uint64_t number)
{
    uint64_t count = pair->plan.value_count, half = count / 3;
    struct optimizer_update update;
    optimizer_plan_update(pair->held, (struct span){0, count}, number, RATE, &update);
    assert_int_equal(program_apply(pair->program, &update, half, count - half), STATUS_OK);
    assert_int_equal(program_apply(pair->program, &update, 0, half), STATUS_OK);
}

static void check_same_bits(const struct pair *pair, const char *name)
{
    size_t bytes = pair->plan.value_count * sizeof(float);
    if (memcmp(pair->fixture.params, pair->params, bytes) != 0) {
        fail_msg("%s: parameters differ", name);
    }
    for (uint32_t i = 0; i < optimizer_state_count(pair->held); i++) {
        if (memcmp(optimizer_state(pair->held, i), optimizer_state(pair->reference, i), bytes) !=
            0) {
            fail_msg("%s: state %u differs", name, i);
        }
    }
}

/* Skips the test where no device makes updates. */
static void need_device(void)
{
    for (const struct device_ops *const *ops = tested_backends(); *ops != NULL; ops++) {
        if (strcmp((*ops)->name, "cuda") == 0) {
            return;
        }
    }
    print_message("only cuda makes updates\n");
    skip();
}

static void mean_gradients_update_parameters_as_on_the_host(void **state)
{
    (void)state;
    need_device();
    for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++) {
        struct pair pair;
        open_pair(&pair, names[k]);
        const struct span all = {0, pair.plan.value_count};
        for (uint64_t step = 1; step <= STEPS; step++) {
            forward(&pair);
            assert_int_equal(program_backward(pair.program, pair.plan.op_count - 1, 0), STATUS_OK);
            assert_int_equal(program_await(pair.program, 0), STATUS_OK);
            draw_gradients(&pair, 100 * k + step); // what an exchange makes of them
            optimizer_apply(pair.reference, all, pair.params, pair.fixture.grads, step, RATE);
            update(&pair, step);
            if (step == 2) { // somebody reads them, and training goes on
                assert_int_equal(program_fetch(pair.program), STATUS_OK);
                check_same_bits(&pair, names[k]);
            }
        }
        assert_int_equal(program_fetch(pair.program), STATUS_OK);
        check_same_bits(&pair, names[k]);
        close_pair(&pair);
    }
}

/* Gradients that never leave the device, against a program that brings them to the host. */
static void gradients_that_are_kept_update_parameters_as_on_the_host(void **state)
{
    (void)state;
    need_device();
    for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++) {
        struct pair pair, other;
        open_pair(&pair, names[k]);
        open_pair(&other, names[k]);
        const struct span all = {0, pair.plan.value_count};
        const float *grads = pair.fixture.grads;
        pair.fixture.input.keeps_gradients = true;
        for (uint64_t step = 1; step <= STEPS; step++) {
            forward(&pair);
            assert_int_equal(program_backward(pair.program, pair.plan.op_count - 1, 0), STATUS_OK);
            update(&pair, step);
            forward(&other);
            assert_int_equal(program_backward(other.program, other.plan.op_count - 1, 0),
                             STATUS_OK);
            assert_int_equal(program_await(other.program, 0), STATUS_OK);
            optimizer_apply(pair.reference, all, other.fixture.params, other.fixture.grads, step,
                            RATE);
        }
        assert_int_equal(program_fetch(pair.program), STATUS_OK);
        memcpy(pair.params, other.fixture.params, all.count * sizeof(float));
        check_same_bits(&pair, names[k]);
        assert_true(isnan(grads[0]) && isnan(grads[all.count - 1])); // nobody brought them
        close_pair(&other);
        close_pair(&pair);
    }
}

/* As between phases: the host's vectors change while they are those that count. */
static void what_the_host_changes_after_a_fetch_is_gone_on_with(void **state)
{
    (void)state;
    need_device();
    struct pair pair;
    open_pair(&pair, "adam");
    const struct span all = {0, pair.plan.value_count};
    for (uint64_t step = 1; step <= 4; step++) {
        forward(&pair);
        draw_gradients(&pair, step);
        optimizer_apply(pair.reference, all, pair.params, pair.fixture.grads, step, RATE);
        if (step == 2) { // this one by the host
            assert_int_equal(program_fetch(pair.program), STATUS_OK);
            optimizer_apply(pair.held, all, pair.fixture.params, pair.fixture.grads, step, RATE);
        } else {
            update(&pair, step);
        }
    }
    assert_int_equal(program_fetch(pair.program), STATUS_OK);
    check_same_bits(&pair, "adam");
    close_pair(&pair);
}

/* The libraries have a copy of the weights, in a type and an order of their own. */
static void check_evaluation(const char *name, enum precision precision)
{
    struct pair pair;
    struct program_result before, after, again;
    open_pair_of(&pair, name, precision);
    pair.fixture.input.is_training = false;
    assert_int_equal(program_forward(pair.program, &pair.fixture.input, &before), STATUS_OK);
    draw_gradients(&pair, 1);
    update(&pair, 1);
    assert_int_equal(program_forward(pair.program, &pair.fixture.input, &after), STATUS_OK);
    assert_true(before.loss_sum != after.loss_sum);
    assert_int_equal(program_fetch(pair.program), STATUS_OK);
    assert_int_equal(program_forward(pair.program, &pair.fixture.input, &again), STATUS_OK);
    assert_true(again.loss_sum == after.loss_sum);
    close_pair(&pair);
}

static void an_evaluation_sees_updates_that_the_host_has_not(void **state)
{
    (void)state;
    need_device();
    for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++) {
        check_evaluation(names[k], PRECISION_FP32);
        check_evaluation(names[k], PRECISION_BF16);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mean_gradients_update_parameters_as_on_the_host),
        cmocka_unit_test(gradients_that_are_kept_update_parameters_as_on_the_host),
        cmocka_unit_test(what_the_host_changes_after_a_fetch_is_gone_on_with),
        cmocka_unit_test(an_evaluation_sees_updates_that_the_host_has_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
