/* The CUDA backend on the fake runtime: that it is there at all, and what only a fake can refuse.
 * What is shown is the logic of the host, not what a GPU computes: see stream.h. */
#include "common/optimizer/optimizer_formulas.h"
#include "tests/support/common/captured_log.h"
#include "tests/support/model/program_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on

#define MODE "FAKE_CUDA"

static const struct layer layers[] = {
    {OP_CONV2D, .channels = 6, .window = 3, .stride = 1, .padding = 1},
    {OP_RELU},
    {OP_LINEAR, .channels = 7},
};
#define LAYER_COUNT (sizeof(layers) / sizeof(layers[0]))

/* Otherwise the tests of all backends would leave it out, and pass. */
static void the_fake_is_what_programs_of_this_folder_load(void **state)
{
    (void)state;
    char why[256] = "there is no such backend", list[512] = "";
    for (const struct device_ops *const *ops = device_backends(); *ops != NULL; ops++) {
        if (strcmp((*ops)->name, "cuda") == 0 && (*ops)->is_available(why, sizeof(why))) {
            (*ops)->list(list, sizeof(list));
        }
    }
    if (strstr(list, "threads of the host in the place of a GPU") == NULL) {
        fail_msg("cuda is not the fake: %s%s", why, list);
    }
}

/* A program that is ready to be compiled, and the mode to go back to. */
struct bench {
    struct network_plan plan;
    struct program_fixture fixture;
    struct program_options options;
    struct device *device;
    char mode[64];
};

static void set_up(struct bench *bench, struct shape input, uint32_t batch_size)
{
    const char *mode = getenv(MODE);
    snprintf(bench->mode, sizeof(bench->mode), "%s", mode != NULL ? mode : "");
    program_fixture_plan(layers, LAYER_COUNT, input, &bench->plan);
    program_fixture_init(&bench->fixture, &bench->plan, 4, 3);
    bench->options = (struct program_options){
        .ops = bench->plan.ops,
        .op_count = bench->plan.op_count,
        .batch_size = batch_size,
        .params = bench->fixture.params,
        .grads = bench->fixture.grads,
        .statistics = bench->fixture.statistics,
    };
    const struct device_options device = {.threads = 1};
    assert_int_equal(device_open("cuda", &device, &bench->device), STATUS_OK);
}

static void tear_down(struct bench *bench)
{
    device_close(bench->device);
    program_fixture_finish(&bench->fixture);
    assert_int_equal(setenv(MODE, bench->mode, 1), 0);
}

static void a_batch_that_does_not_fit_is_refused_with_one_that_does(void **state)
{
    (void)state;
    struct bench bench;
    struct program *program = NULL;
    set_up(&bench, (struct shape){2, 9, 11}, 4096);
    assert_int_equal(setenv(MODE, "small", 1), 0);
    captured_log_begin();
    assert_int_equal(device_compile(bench.device, &bench.options, &program), STATUS_NO_MEMORY);
    const char *said = captured_log_end();
    assert_non_null(strstr(said, "a batch of 4096 asks for"));
    assert_non_null(strstr(said, "images a batch would fit"));
    assert_null(program);
    tear_down(&bench);
}

static void states_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    struct bench bench;
    struct program *program = NULL;
    float *states[2] = {NULL, NULL}; // nobody comes to read them
    set_up(&bench, (struct shape){2, 90, 110}, 1);
    assert_true(bench.plan.value_count * sizeof(float) > 1 << 20);
    assert_int_equal(device_compile(bench.device, &bench.options, &program), STATUS_OK);
    assert_int_equal(setenv(MODE, "small", 1), 0);
    captured_log_begin();
    assert_int_equal(program_hold(program, states, 2), STATUS_NO_MEMORY);
    assert_non_null(strstr(captured_log_end(), "no memory for the optimizer's states"));
    program_destroy(program);
    tear_down(&bench);
}

/* A step on a device whose stream fails at a launch; returns what is said. Valid until the next. */
static const char *run_faulty_step(uint32_t launch, bool checks)
{
    struct bench bench;
    struct program *program = NULL;
    struct program_result result;
    char mode[32];
    set_up(&bench, (struct shape){2, 9, 11}, 4);
    device_close(bench.device);
    snprintf(mode, sizeof(mode), "faulty=%u", launch);
    assert_int_equal(setenv(MODE, mode, 1), 0);
    const struct device_options device = {
        .threads = 1, .replays_launches = true, .checks_operations = checks};
    assert_int_equal(device_open("cuda", &device, &bench.device), STATUS_OK);
    assert_int_equal(device_compile(bench.device, &bench.options, &program), STATUS_OK);
    bench.fixture.input.is_training = true;
    captured_log_begin();
    enum status status = program_forward(program, &bench.fixture.input, &result);
    if (status == STATUS_OK) {
        status = program_backward(program, bench.plan.op_count - 1, 0);
    }
    const char *said = captured_log_end();
    assert_int_equal(status, STATUS_DEVICE);
    program_destroy(program);
    tear_down(&bench);
    return said;
}

static void a_fault_is_reported_with_the_operation_that_caused_it(void **state)
{
    (void)state;
    static const struct {
        uint32_t launch;
        const char *said;
    } rows[] = {
        // pixels, weights; the convolution; the product and its bias; the loss
        {3, "the forward pass of operation 0 failed on the GPU (conv2d, 2x9x11 to 6x9x11, a batch "
            "of 4): an illegal memory access was encountered"},
        {4, "the forward pass of operation 2 failed on the GPU (linear, 6x9x11 to 7x1x1"},
        {6, "the forward pass of operation 3 failed on the GPU (softmax_loss"},
        {8, "the backward pass of operation 2 failed on the GPU (linear"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *said = run_faulty_step(rows[i].launch, true);
        if (strstr(said, rows[i].said) == NULL) {
            fail_msg("launch %u: %s", rows[i].launch, said);
        }
    }
    assert_null(strstr(run_faulty_step(3, false), "operation 0"));
}

/* A launch takes a microsecond here. */
static void operations_are_timed_on_the_device(void **state)
{
    (void)state;
    struct bench bench;
    struct program *program = NULL;
    struct program_result result;
    struct op_time times[4];
    set_up(&bench, (struct shape){2, 9, 11}, 4);
    assert_int_equal(device_compile(bench.device, &bench.options, &program), STATUS_OK);
    assert_int_equal(program_read_times(program, times), STATUS_UNSUPPORTED);
    program_destroy(program);
    device_close(bench.device);
    const struct device_options device = {
        .threads = 1, .replays_launches = true, .times_operations = true};
    assert_int_equal(device_open("cuda", &device, &bench.device), STATUS_OK);
    assert_int_equal(device_compile(bench.device, &bench.options, &program), STATUS_OK);
    bench.fixture.input.is_training = true;
    for (int step = 0; step < 4; step++) { // also where a graph would be replayed
        assert_int_equal(program_forward(program, &bench.fixture.input, &result), STATUS_OK);
        assert_int_equal(program_backward(program, bench.plan.op_count - 1, 0), STATUS_OK);
        assert_int_equal(program_await(program, 0), STATUS_OK);
        assert_int_equal(program_read_times(program, times), STATUS_OK);
        // the convolution, with its relu; the product and the bias; the loss
        assert_true(times[0].forward_us == 1 && times[1].forward_us == 0);
        assert_true(times[2].forward_us == 2 && times[3].forward_us == 1);
        assert_true(times[0].backward_us > 0 && times[1].backward_us == 0);
        assert_true(times[2].backward_us > times[3].backward_us);
    }
    program_destroy(program);
    tear_down(&bench);
}

static void forward(struct bench *bench, struct program *program, bool is_training)
{
    struct program_result result;
    bench->fixture.input.is_training = is_training;
    assert_int_equal(program_forward(program, &bench->fixture.input, &result), STATUS_OK);
}

/* By whoever has it: a program locks its vectors, a batcher its batches. */
static void memory_is_locked_until_it_is_given_back(void **state)
{
    (void)state;
    struct bench bench;
    static float memory[1000];
    set_up(&bench, (struct shape){2, 9, 11}, 4);
    bool has_pages = strstr(bench.mode, "pageable") == NULL;
    for (int i = 0; i < 3; i++) {
        assert_true(device_lock_memory(bench.device, memory, sizeof(memory)) == has_pages);
        assert_false(device_lock_memory(bench.device, memory, sizeof(memory)));
        if (has_pages) {
            device_unlock_memory(bench.device, memory);
        }
    }
    tear_down(&bench);
}

/* A byte takes a nanosecond here, and what copies wait for takes far longer. */
static void copies_of_parameters_and_gradients_are_timed(void **state)
{
    (void)state;
    struct bench bench;
    struct program *program = NULL;
    set_up(&bench, (struct shape){2, 9, 11}, 4);
    uint64_t bytes = bench.plan.value_count * sizeof(float);
    uint32_t last = bench.plan.op_count - 1;
    assert_int_equal(device_compile(bench.device, &bench.options, &program), STATUS_OK);
    for (uint32_t step = 0; step < 3; step++) {
        forward(&bench, program, true);
        assert_int_equal(program_take_copy_ns(program), bytes); // parameters, up
        assert_int_equal(program_backward(program, last, 2), STATUS_OK);
        assert_int_equal(program_backward(program, 1, 0), STATUS_OK);
        assert_int_equal(program_await(program, 2), STATUS_OK);
        assert_int_equal(program_await(program, 0), STATUS_OK);
        assert_int_equal(program_take_copy_ns(program), bytes); // gradients, down
        forward(&bench, program, false);
        assert_int_equal(program_take_copy_ns(program), 0); // those of evaluations do not count
    }
    program_destroy(program);
    tear_down(&bench);
}

/* They come back from an exchange, a bucket at a time, and parameters stay on the device. */
static void copies_of_mean_gradients_are_timed(void **state)
{
    (void)state;
    struct bench bench;
    struct program *program = NULL;
    static const struct optimizer_update update = {.formula = OPTIMIZER_FORMULA_SGD,
                                                   .coefficients = {.minus_rate = -0.5f}};
    set_up(&bench, (struct shape){2, 9, 11}, 4);
    uint64_t count = bench.plan.value_count, bytes = count * sizeof(float);
    assert_int_equal(device_compile(bench.device, &bench.options, &program), STATUS_OK);
    assert_int_equal(program_hold(program, NULL, 0), STATUS_OK);
    forward(&bench, program, true);
    assert_int_equal(program_take_copy_ns(program), bytes);
    for (uint32_t step = 0; step < 3; step++) {
        assert_int_equal(program_backward(program, bench.plan.op_count - 1, 0), STATUS_OK);
        assert_int_equal(program_await(program, 0), STATUS_OK);
        assert_int_equal(program_take_copy_ns(program), bytes); // down
        assert_int_equal(program_apply(program, &update, 100, count - 100), STATUS_OK);
        assert_int_equal(program_apply(program, &update, 0, 100), STATUS_OK);
        forward(&bench, program, false); // which is the first to wait for them
        assert_int_equal(program_take_copy_ns(program), bytes); // up
        forward(&bench, program, true);
        assert_int_equal(program_take_copy_ns(program), 0);
    }
    program_destroy(program);
    tear_down(&bench);
}

#define UNTOUCHED 12345.0f

/* Whether gradients of the first operation have come to the host, in the place of what was there.
 */
static bool has_first_gradients(const struct bench *bench)
{
    const struct op *op = &bench->plan.ops[0];
    return bench->options.grads[op->weight] != UNTOUCHED;
}

/* A device that does no more than is waited for shows who waits for whom. */
static void open_lazy(struct bench *bench, struct program **ret_program)
{
    set_up(bench, (struct shape){2, 9, 11}, 4);
    device_close(bench->device);
    assert_int_equal(setenv(MODE, "lazy", 1), 0);
    const struct device_options device = {.threads = 1};
    assert_int_equal(device_open("cuda", &device, &bench->device), STATUS_OK);
    assert_int_equal(device_compile(bench->device, &bench->options, ret_program), STATUS_OK);
    assert_int_equal(program_hold(*ret_program, NULL, 0), STATUS_OK);
    forward(bench, *ret_program, true);
    bench->options.grads[bench->plan.ops[0].weight] = UNTOUCHED;
}

/* Those of the bucket before it, while the next one's come down. */
static void mean_gradients_go_up_beside_gradients_that_come_down(void **state)
{
    (void)state;
    struct bench bench;
    struct program *program = NULL;
    static const struct optimizer_update update = {.formula = OPTIMIZER_FORMULA_SGD,
                                                   .coefficients = {.minus_rate = -0.5f}};
    open_lazy(&bench, &program);
    uint64_t offset = bench.plan.ops[2].weight;
    assert_int_equal(program_backward(program, 2, 2), STATUS_OK);
    assert_int_equal(program_await(program, 2), STATUS_OK);
    assert_int_equal(program_backward(program, 1, 0), STATUS_OK);
    assert_int_equal(program_apply(program, &update, offset, bench.plan.value_count - offset),
                     STATUS_OK);
    assert_int_equal(program_fetch(program), STATUS_OK);
    assert_false(has_first_gradients(&bench));
    assert_int_equal(program_await(program, 0), STATUS_OK);
    assert_true(has_first_gradients(&bench));
    program_destroy(program);
    tear_down(&bench);
}

static void parameters_go_up_beside_gradients_that_come_down(void **state)
{
    (void)state;
    struct bench bench;
    struct program *program = NULL;
    open_lazy(&bench, &program);
    assert_int_equal(program_backward(program, bench.plan.op_count - 1, 0), STATUS_OK);
    forward(&bench, program, false);
    assert_false(has_first_gradients(&bench));
    assert_int_equal(program_await(program, 0), STATUS_OK);
    assert_true(has_first_gradients(&bench));
    program_destroy(program);
    tear_down(&bench);
}

/* How many convolutions of a program say that they have statistics. */
static uint32_t count_statistics(const struct program_options *options, bool may_differ)
{
    const struct device_options open = {.threads = 1, .allows_nondeterministic = may_differ};
    struct device *device;
    struct program *program;
    char described[4096];
    uint32_t count = 0;
    assert_int_equal(device_open("cuda", &open, &device), STATUS_OK);
    assert_int_equal(device_compile(device, options, &program), STATUS_OK);
    device_describe(device, program, described, sizeof(described));
    for (const char *at = described; (at = strstr(at, "with statistics loops")) != NULL; at++) {
        count++;
    }
    program_destroy(program);
    device_close(device);
    return count;
}

static void convolutions_have_statistics_in_bfloat16_where_bits_may_differ(void **state)
{
    (void)state;
    static const struct layer list[] = {
        {OP_CONV2D, .channels = 6, .window = 3, .stride = 1, .padding = 1, .has_no_bias = true},
        {OP_BATCH_NORM, .epsilon = 1e-3f},
        {OP_CONV2D, .channels = 6, .window = 3, .stride = 1, .padding = 1, .has_no_bias = true},
        {OP_BATCH_NORM, .epsilon = 1e-3f},
        {OP_RELU},
        {OP_CONV2D, .channels = 5, .window = 1, .stride = 1}, // has a bias
        {OP_BATCH_NORM, .epsilon = 1e-3f},
        {OP_CONV2D, .channels = 5, .window = 1, .stride = 1, .has_no_bias = true}, // then no norm
        {OP_RELU},
        {OP_LINEAR, .channels = 7},
    };
    static struct network_plan plan;
    struct program_fixture fixture;
    program_fixture_plan(list, sizeof(list) / sizeof(list[0]), (struct shape){3, 6, 6}, &plan);
    program_fixture_init(&fixture, &plan, 4, 3);
    struct program_options options = {
        .ops = plan.ops,
        .op_count = plan.op_count,
        .batch_size = 4,
        .params = fixture.params,
        .grads = fixture.grads,
        .statistics = fixture.statistics,
        .precision = PRECISION_BF16,
    };
    assert_int_equal(count_statistics(&options, true), 2);
    assert_int_equal(count_statistics(&options, false), 0);
    options.precision = PRECISION_TF32;
    assert_int_equal(count_statistics(&options, true), 0);
    options.precision = PRECISION_BF16;
    options.grads = NULL; // evaluates only
    assert_int_equal(count_statistics(&options, true), 0);
    program_fixture_finish(&fixture);
}

static void a_gpu_that_is_too_old_for_the_kernels_is_refused(void **state)
{
    (void)state;
    struct bench bench;
    struct device *device = NULL;
    struct vector_device *vectors = NULL;
    char why[256] = "";
    const struct device_options options = {.threads = 1};
    set_up(&bench, (struct shape){2, 9, 11}, 4);
    assert_int_equal(setenv(MODE, "old", 1), 0);
    for (const struct device_ops *const *ops = device_backends(); *ops != NULL; ops++) {
        if (strcmp((*ops)->name, "cuda") == 0) {
            assert_false((*ops)->is_available(why, sizeof(why)));
        }
    }
    assert_non_null(strstr(why, "its compute capability is 7.5"));
    captured_log_begin();
    assert_int_equal(device_open("cuda", &options, &device), STATUS_UNSUPPORTED);
    assert_non_null(strstr(captured_log_end(), "kernels are built for 8.0 and later"));
    captured_log_begin();
    assert_int_equal(device_open_vectors("cuda", &options, &vectors), STATUS_UNSUPPORTED);
    assert_non_null(strstr(captured_log_end(), "kernels are built for 8.0 and later"));
    tear_down(&bench);
}

/* A training step, without looking at statistics; returns the loss. */
static double train(struct program *program, struct program_fixture *fixture)
{
    struct program_result result;
    fixture->input.is_training = true;
    assert_int_equal(program_forward(program, &fixture->input, &result), STATUS_OK);
    assert_int_equal(program_backward(program, fixture->plan->op_count - 1, 0), STATUS_OK);
    assert_int_equal(program_await(program, 0), STATUS_OK);
    return result.loss_sum;
}

static double evaluate(struct program *program, struct program_fixture *fixture)
{
    struct program_result result;
    fixture->input.is_training = false;
    assert_int_equal(program_forward(program, &fixture->input, &result), STATUS_OK);
    return result.loss_sum;
}

static void statistics_stay_on_the_device_until_they_are_fetched(void **state)
{
    (void)state;
    static const struct layer norm[] = {{OP_BATCH_NORM, .epsilon = 1e-3f},
                                        {OP_LINEAR, .channels = 7}};
    static struct network_plan plan;
    struct program_fixture fixture;
    struct device *device;
    struct program *program;
    const struct device_options open = {.threads = 1, .replays_launches = true};
    program_fixture_plan(norm, 2, (struct shape){3, 8, 8}, &plan);
    program_fixture_init(&fixture, &plan, 4, 3);
    const size_t bytes = plan.statistic_count * sizeof(float);
    float *statistics = fixture.statistics, first[64];
    assert_true(bytes > 0 && bytes <= sizeof(first));
    memcpy(first, statistics, bytes);
    const struct program_options options = {.ops = plan.ops,
                                            .op_count = plan.op_count,
                                            .batch_size = 4,
                                            .params = fixture.params,
                                            .grads = fixture.grads,
                                            .statistics = statistics};
    assert_int_equal(device_open("cuda", &open, &device), STATUS_OK);
    assert_int_equal(device_compile(device, &options, &program), STATUS_OK);
    for (uint32_t step = 0; step < 3; step++) {
        (void)train(program, &fixture);
        assert_memory_equal(statistics, first, bytes);
    }
    const double loss = evaluate(program, &fixture); // with those that training has moved
    assert_int_equal(program_fetch_statistics(program), STATUS_OK);
    assert_memory_not_equal(statistics, first, bytes);
    assert_true(evaluate(program, &fixture) == loss); // now with the host's
    memcpy(statistics, first, bytes);
    assert_true(evaluate(program, &fixture) != loss); // which may be changed
    program_destroy(program);
    device_close(device);
    program_fixture_finish(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_fake_is_what_programs_of_this_folder_load),
        cmocka_unit_test(a_batch_that_does_not_fit_is_refused_with_one_that_does),
        cmocka_unit_test(states_that_do_not_fit_are_refused),
        cmocka_unit_test(a_gpu_that_is_too_old_for_the_kernels_is_refused),
        cmocka_unit_test(statistics_stay_on_the_device_until_they_are_fetched),
        cmocka_unit_test(a_fault_is_reported_with_the_operation_that_caused_it),
        cmocka_unit_test(operations_are_timed_on_the_device),
        cmocka_unit_test(memory_is_locked_until_it_is_given_back),
        cmocka_unit_test(copies_of_parameters_and_gradients_are_timed),
        cmocka_unit_test(copies_of_mean_gradients_are_timed),
        cmocka_unit_test(mean_gradients_go_up_beside_gradients_that_come_down),
        cmocka_unit_test(parameters_go_up_beside_gradients_that_come_down),
        cmocka_unit_test(convolutions_have_statistics_in_bfloat16_where_bits_may_differ),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
