/* Plans: operations, tensors, first parameters and digests. */
#include "worker/model/network.h"

#include <math.h>
#include <string.h>

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on

#define CLASSES    4
#define VALUES_MAX 10000

static const struct layer layers[] = {
    {OP_CONV2D, .channels = 3, .window = 3, .stride = 1},
    {OP_DROPOUT, .rate = 0.5f},
    {OP_LINEAR, .channels = 70},
    {OP_RELU},
    {OP_DROPOUT, .rate = 0.25f},
    {OP_LINEAR, .channels = LAYER_CLASSES},
};

#define LAYER_COUNT (sizeof(layers) / sizeof(layers[0]))

static void build(struct layers *ret_layers)
{
    layers_append(ret_layers, layers, LAYER_COUNT);
}

static const struct network network = {.name = "small", .build = build};

static const struct shape input = {2, 8, 9};

static void make_plan(const struct network *of, struct network_plan *ret_plan)
{
    uint32_t bad_layer;
    assert_int_equal(network_make_plan(of, input, CLASSES, ret_plan, &bad_layer), STATUS_OK);
    assert_in_range(ret_plan->value_count, 1, VALUES_MAX);
}

static void operations_are_a_chain_from_the_pixels_to_the_loss(void **state)
{
    (void)state;
    struct network_plan plan;
    make_plan(&network, &plan);
    assert_int_equal(plan.op_count, LAYER_COUNT + 1);
    assert_int_equal(plan.ops[0].input, DEVICE_INPUT_PIXELS);
    assert_memory_equal(&plan.ops[0].x, &input, sizeof(input));
    for (uint32_t i = 1; i < plan.op_count; i++) {
        assert_int_equal(plan.ops[i].input, i - 1);
        assert_memory_equal(&plan.ops[i].x, &plan.ops[i - 1].y, sizeof(struct shape));
    }
    assert_int_equal(plan.ops[plan.op_count - 1].kind, OP_SOFTMAX_LOSS);
    assert_int_equal(plan.ops[plan.op_count - 1].y.channels, CLASSES);
}

static void tensors_lie_in_the_order_of_the_layers_without_gaps(void **state)
{
    (void)state;
    struct network_plan plan;
    make_plan(&network, &plan);
    static const uint64_t counts[] = {54, 3, 8820, 70, 280, 4};
    static const uint32_t ops[] = {0, 0, 2, 2, 5, 5};
    assert_int_equal(plan.tensor_count, 6);
    uint64_t offset = 0;
    for (uint32_t t = 0; t < 6; t++) {
        const struct network_tensor *tensor = &plan.tensors[t];
        const struct op *op = &plan.ops[tensor->op];
        assert_int_equal(tensor->op, ops[t]);
        assert_int_equal(tensor->kind, t % 2 == 0 ? TENSOR_WEIGHT : TENSOR_BIAS);
        assert_int_equal(tensor->span.offset, offset);
        assert_int_equal(tensor->span.count, counts[t]);
        assert_int_equal(t % 2 == 1 ? op->bias : op->weight, offset);
        offset += counts[t];
    }
    assert_int_equal(plan.value_count, offset);
}

static void dropout_layers_have_streams_of_their_own(void **state)
{
    (void)state;
    struct network_plan plan;
    make_plan(&network, &plan);
    assert_int_equal(plan.ops[1].stream, 0);
    assert_int_equal(plan.ops[4].stream, 1);
}

static void a_layer_that_does_not_fit_is_named(void **state)
{
    (void)state;
    static const struct layer deep[] = {
        {OP_MAX_POOL, .window = 2, .stride = 2},
        {OP_CONV2D, .channels = 3, .window = 5, .stride = 1},
        {OP_LINEAR, .channels = LAYER_CLASSES},
    };
    struct network_plan plan = {.op_count = 0};
    layers_append(&plan.layers, deep, 3);
    uint32_t bad_layer = 0;
    assert_int_equal(network_plan_layers(&plan, input, CLASSES, &bad_layer), STATUS_INVALID);
    assert_int_equal(bad_layer, 1);
}

static void a_tensor_too_large_to_draw_is_refused(void **state)
{
    (void)state;
    static const struct layer wide[] = {{OP_LINEAR, .channels = LAYER_CLASSES}};
    struct network_plan plan = {.op_count = 0};
    layers_append(&plan.layers, wide, 1);
    uint32_t bad_layer;
    assert_int_equal(network_plan_layers(&plan, (struct shape){1, 1 << 15, 1 << 14}, 8, &bad_layer),
                     STATUS_INVALID);
}

/* The mean of n uniform values has a standard deviation of limit / sqrt(3 n). */
static void check_weights(const float *values, uint64_t count, double limit)
{
    double sum = 0;
    double largest = 0;
    for (uint64_t i = 0; i < count; i++) {
        sum += (double)values[i];
        largest = fmax(largest, fabs((double)values[i]));
    }
    assert_true(largest <= limit * (1 + 1e-6));
    assert_true(largest > limit * 0.9);
    assert_true(fabs(sum / (double)count) < 4 * limit / sqrt(3 * (double)count));
}

static void first_weights_are_uniform_within_glorots_limit(void **state)
{
    (void)state;
    static const double fans[] = {18 + 27, 126 + 70, 70 + CLASSES};
    struct network_plan plan;
    make_plan(&network, &plan);
    static float params[VALUES_MAX];
    network_init_params(&plan, 1, params);
    for (size_t i = 0; i < sizeof(fans) / sizeof(fans[0]); i++) {
        struct span span = plan.tensors[2 * i].span;
        check_weights(params + span.offset, span.count, sqrt(6 / fans[i]));
    }
}

static void first_biases_are_zero(void **state)
{
    (void)state;
    struct network_plan plan;
    make_plan(&network, &plan);
    static float params[VALUES_MAX];
    for (uint64_t i = 0; i < plan.value_count; i++) {
        params[i] = 1;
    }
    network_init_params(&plan, 1, params);
    for (uint32_t t = 1; t < plan.tensor_count; t += 2) {
        for (uint64_t i = 0; i < plan.tensors[t].span.count; i++) {
            assert_true(params[plan.tensors[t].span.offset + i] == 0);
        }
    }
}

static void first_parameters_depend_on_the_seed_alone(void **state)
{
    (void)state;
    struct network_plan plan;
    make_plan(&network, &plan);
    size_t bytes = plan.value_count * sizeof(float);
    static float a[VALUES_MAX];
    static float b[VALUES_MAX];
    network_init_params(&plan, 1, a);
    network_init_params(&plan, 1, b);
    assert_memory_equal(a, b, bytes);
    network_init_params(&plan, 2, b);
    assert_true(memcmp(a, b, bytes) != 0);
}

static void everything_that_workers_must_agree_on_changes_the_digest(void **state)
{
    (void)state;
    uint32_t bad_layer;
    struct network_plan plan;
    make_plan(&network, &plan);
    uint64_t digest = network_digest(&network, &plan);
    assert_true(digest == network_digest(&network, &plan));

    struct network renamed = network;
    renamed.name = "smaller";
    assert_true(digest != network_digest(&renamed, &plan));

    assert_int_equal(network_make_plan(&network, input, CLASSES + 1, &plan, &bad_layer), STATUS_OK);
    assert_true(digest != network_digest(&network, &plan));

    // The same number of parameters from a turned image.
    assert_int_equal(
        network_make_plan(&network, (struct shape){2, 9, 8}, CLASSES, &plan, &bad_layer),
        STATUS_OK);
    assert_true(digest != network_digest(&network, &plan));

    plan.layers.list[2].channels = 71;
    assert_int_equal(network_plan_layers(&plan, input, CLASSES, &bad_layer), STATUS_OK);
    assert_true(digest != network_digest(&network, &plan));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operations_are_a_chain_from_the_pixels_to_the_loss),
        cmocka_unit_test(tensors_lie_in_the_order_of_the_layers_without_gaps),
        cmocka_unit_test(dropout_layers_have_streams_of_their_own),
        cmocka_unit_test(a_layer_that_does_not_fit_is_named),
        cmocka_unit_test(a_tensor_too_large_to_draw_is_refused),
        cmocka_unit_test(first_weights_are_uniform_within_glorots_limit),
        cmocka_unit_test(first_biases_are_zero),
        cmocka_unit_test(first_parameters_depend_on_the_seed_alone),
        cmocka_unit_test(everything_that_workers_must_agree_on_changes_the_digest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
