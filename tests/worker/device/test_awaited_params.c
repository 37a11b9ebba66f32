/* Forward passes that begin before all parameters are there, of every model on each backend: those
 * that were not awaited are not-a-number. */
#include "tests/support/model/program_fixture.h"
#include "tests/support/model/tested_backends.h"
#include "worker/model/models.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on

#define BATCH_SIZE 2
#define VALUES_MAX 2000000 // of a model that plain loops are quick with

/* Parameters that come when they are asked for. */
struct arrivals {
    float *params; // (count) those of the program
    const float *true_params;
    uint64_t count, asked_count, calls;
    uint64_t refused_call; // which call fails, from 1
};

static enum status bring(void *context, uint64_t offset, uint64_t count)
{
    struct arrivals *arrivals = context;
    assert_true(offset < arrivals->count);
    if (++arrivals->calls == arrivals->refused_call) {
        return STATUS_UNREACHABLE;
    }
    count = count < arrivals->count - offset ? count : arrivals->count - offset;
    for (uint64_t i = offset; i < offset + count; i++) {
        arrivals->asked_count += isnan(arrivals->params[i]) ? 1 : 0;
        arrivals->params[i] = arrivals->true_params[i];
    }
    return STATUS_OK;
}

/* Runs a training forward twice: with all parameters, and with none of them at first. */
static void check_program(struct program *program, struct program_fixture *fixture, bool is_ordered)
{
    uint64_t count = fixture->plan->value_count;
    float *copy = malloc(count * sizeof(float));
    assert_non_null(copy);
    memcpy(copy, fixture->params, count * sizeof(float));
    struct program_result expected, got;
    assert_int_equal(program_forward(program, &fixture->input, &expected), STATUS_OK);

    struct arrivals arrivals = {.params = fixture->params, .true_params = copy, .count = count};
    fixture->input.await_params = bring;
    fixture->input.context = &arrivals;
    program_fixture_poison(fixture->params, count);
    assert_int_equal(program_forward(program, &fixture->input, &got), STATUS_OK);
    assert_true(memcmp(&got.loss_sum, &expected.loss_sum, sizeof(double)) == 0);
    assert_int_equal(arrivals.asked_count, count); // each, and once
    assert_true(!is_ordered || arrivals.calls > 2);

    program_fixture_poison(fixture->params, count);
    arrivals.refused_call = arrivals.calls + (is_ordered ? 3 : 1);
    assert_int_equal(program_forward(program, &fixture->input, &got), STATUS_UNREACHABLE);
    memcpy(fixture->params, copy, count * sizeof(float));
    free(copy);
}

static void check_model(const struct device_ops *backend, const struct network *network)
{
    static struct network_plan plan;
    uint32_t bad_layer;
    assert_int_equal(network_make_plan(network, (struct shape){3, 32, 32}, 10, &plan, &bad_layer),
                     STATUS_OK);
    if (plan.value_count > VALUES_MAX) {
        return;
    }
    struct program_fixture fixture;
    program_fixture_init(&fixture, &plan, BATCH_SIZE, 3);
    struct device *device;
    struct program *program;
    const struct device_options device_options = {.threads = 1};
    const struct program_options options = {
        .ops = plan.ops,
        .op_count = plan.op_count,
        .batch_size = BATCH_SIZE,
        .params = fixture.params,
        .grads = fixture.grads,
        .statistics = fixture.statistics,
    };
    assert_int_equal(device_open(backend->name, &device_options, &device), STATUS_OK);
    assert_int_equal(device_compile(device, &options, &program), STATUS_OK);
    check_program(program, &fixture, program->ops->awaits_params);
    program_destroy(program);
    device_close(device);
    program_fixture_finish(&fixture);
}

static void a_forward_pass_reads_no_parameter_that_it_has_not_awaited(void **state)
{
    (void)state;
#define X(identifier, name, summary) &model_##identifier,
    static const struct network *const networks[] = {MODEL_MAP(X)};
#undef X
    for (const struct device_ops *const *backend = tested_backends(); *backend != NULL; backend++) {
        for (size_t i = 0; i < sizeof(networks) / sizeof(networks[0]); i++) {
            check_model(*backend, networks[i]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_forward_pass_reads_no_parameter_that_it_has_not_awaited),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
