/* Runs one program on two backends. */
#include "tests/support/model/program_compare.h"

#include "tests/support/model/program_fixture.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct run {
    const char *backend;
    uint32_t threads;
    enum conv_algorithm conv;
    enum precision precision;
    struct program_fixture fixture;
    struct program_result result;
    char description[256];
};

/* Statuses of a test's own set-up: anything but OK ends it. */
static void must(enum status status)
{
    assert(status == STATUS_OK);
    (void)status;
}

static void run_program(struct run *run)
{
    struct program_fixture *fixture = &run->fixture;
    struct device *device;
    must(device_open(run->backend,
                     &(struct device_options){.threads = run->threads, .replays_launches = true},
                     &device));
    const struct program_options options = {
        .ops = fixture->plan->ops,
        .op_count = fixture->plan->op_count,
        .batch_size = fixture->batch_size,
        .params = fixture->params,
        .grads = fixture->input.is_training ? fixture->grads : NULL,
        .statistics = fixture->statistics,
        .conv = run->conv,
        .precision = run->precision,
    };
    struct program *program;
    must(device_compile(device, &options, &program));
    device_describe(device, program, run->description, sizeof(run->description));
    must(program_forward(program, &fixture->input, &run->result));
    if (fixture->input.is_training) {
        must(program_backward(program, fixture->plan->op_count - 1, 0));
        must(program_await(program, 0));
        must(program_fetch_statistics(program));
    }
    program_destroy(program);
    device_close(device);
}

static void init_run(struct run *run, const struct network_plan *plan,
                     const struct program_compare_options *options)
{
    run->threads = options->threads == 0 ? 1 : options->threads;
    program_fixture_init(&run->fixture, plan, options->batch_size, options->seed);
    run->fixture.input.is_training = !options->is_evaluation;
    if (options->count > 0) {
        run->fixture.input.count = options->count;
    }
}

static double norm_of(const float *values, uint64_t count)
{
    double sum = 0;
    for (uint64_t i = 0; i < count; i++) {
        sum += (double)values[i] * (double)values[i];
    }
    return sqrt(sum);
}

/* Errors are relative to a tensor's own norm, but to no less than a hundredth of the largest: a
 * bias in front of a normalisation has a gradient of zero, of which rounding leaves something else.
 */
static void compare_grads(const struct network_plan *plan, const float *subject,
                          const float *reference, struct program_difference *ret_difference)
{
    double largest = 0;
    for (uint32_t t = 0; t < plan->tensor_count; t++) {
        struct span span = plan->tensors[t].span;
        largest = fmax(largest, norm_of(reference + span.offset, span.count));
    }
    for (uint32_t t = 0; t < plan->tensor_count; t++) {
        struct span span = plan->tensors[t].span;
        double error = program_fixture_relative_error(subject + span.offset,
                                                      reference + span.offset, span.count);
        double norm = norm_of(reference + span.offset, span.count);
        if (norm < largest / 100) {
            error *= (norm > 0 ? norm : 1) / (largest / 100);
        }
        ret_difference->tensors[t] = error;
        if (error > ret_difference->grads) {
            ret_difference->grads = error;
            ret_difference->worst_tensor = t;
        }
    }
}

void program_compare(const struct network_plan *plan, const struct program_compare_options *options,
                     struct program_difference *ret_difference)
{
    struct run subject = {
        .backend = options->subject, .conv = options->conv, .precision = options->precision};
    struct run reference = {.backend = options->reference, .conv = CONV_AUTO};
    init_run(&subject, plan, options);
    init_run(&reference, plan, options);
    run_program(&subject);
    run_program(&reference);

    memset(ret_difference, 0, sizeof(*ret_difference));
    memcpy(ret_difference->description, subject.description, sizeof(subject.description));
    ret_difference->loss =
        fabs(subject.result.loss_sum - reference.result.loss_sum) / fabs(reference.result.loss_sum);
    ret_difference->correct =
        (int64_t)subject.result.correct_count - (int64_t)reference.result.correct_count;
    ret_difference->statistics = program_fixture_relative_error(
        subject.fixture.statistics, reference.fixture.statistics, plan->statistic_count);
    if (!options->is_evaluation) {
        compare_grads(plan, subject.fixture.grads, reference.fixture.grads, ret_difference);
    }
    program_fixture_finish(&subject.fixture);
    program_fixture_finish(&reference.fixture);
}
