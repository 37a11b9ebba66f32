/* Shapes and parameter counts of layers, and layers that do not fit. */
#include "worker/model/layer.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on

struct fitting {
    struct layer layer;
    struct shape x, y;
    uint64_t weights, biases;
};

static const struct fitting fittings[] = {
    {{OP_CONV2D, .channels = 6, .window = 5, .stride = 1, .padding = 2},
     {1, 28, 28},
     {6, 28, 28},
     150,
     6},
    {{OP_CONV2D, .channels = 16, .window = 5, .stride = 1}, {6, 14, 14}, {16, 10, 10}, 2400, 16},
    {{OP_CONV2D, .channels = 2, .window = 3, .stride = 2, .padding = 1},
     {3, 8, 7},
     {2, 4, 4},
     54,
     2},
    {{OP_CONV2D, .channels = 2, .window = 5, .stride = 1, .padding = 2},
     {1, 1, 2},
     {2, 1, 2},
     50,
     2},
    {{OP_MAX_POOL, .window = 2, .stride = 2}, {64, 13, 13}, {64, 6, 6}, 0, 0},
    {{OP_MAX_POOL, .window = 3, .stride = 1}, {1, 3, 4}, {1, 1, 2}, 0, 0},
    {{OP_LINEAR, .channels = 120}, {16, 5, 5}, {120, 1, 1}, 48000, 120},
    {{OP_LINEAR, .channels = LAYER_CLASSES}, {84, 1, 1}, {10, 1, 1}, 840, 10},
    {{OP_RELU}, {3, 4, 5}, {3, 4, 5}, 0, 0},
    {{OP_DROPOUT, .rate = 0.5f}, {3, 4, 5}, {3, 4, 5}, 0, 0},
    {{OP_SOFTMAX_LOSS}, {10, 1, 1}, {10, 1, 1}, 0, 0},
};

static void results_have_the_shape_and_parameters_of_the_textbook(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(fittings) / sizeof(fittings[0]); i++) {
        const struct fitting *fitting = &fittings[i];
        struct op op;
        assert_int_equal(layer_make_op(&fitting->layer, fitting->x, 10, &op), STATUS_OK);
        assert_memory_equal(&op.x, &fitting->x, sizeof(op.x));
        assert_memory_equal(&op.y, &fitting->y, sizeof(op.y));
        assert_int_equal(op.kind, fitting->layer.kind);
        assert_int_equal(layer_weight_count(&op), fitting->weights);
        assert_int_equal(layer_bias_count(&op), fitting->biases);
    }
}

static void a_window_larger_than_its_input_is_refused_and_writes_nothing(void **state)
{
    (void)state;
    static const struct layer layer = {OP_CONV2D, .channels = 1, .window = 5, .stride = 1,
                                       .padding = 1};
    static const struct shape shapes[] = {{1, 2, 3}, {1, 3, 2}, {1, 1, 100}};
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        struct op op = {.window = 77};
        assert_int_equal(layer_make_op(&layer, shapes[i], 10, &op), STATUS_INVALID);
        assert_int_equal(op.window, 77);
    }
}

static void a_result_too_large_to_count_is_refused(void **state)
{
    (void)state;
    static const struct layer conv = {OP_CONV2D, .channels = 4, .window = 1, .stride = 1};
    static const struct layer relu = {OP_RELU};
    struct shape huge = {1, 1 << 15, 1 << 15};
    struct shape overflowing = {UINT32_MAX, UINT32_MAX, UINT32_MAX};
    struct op op;
    assert_int_equal(layer_make_op(&relu, huge, 10, &op), STATUS_OK);
    assert_int_equal(layer_make_op(&conv, huge, 10, &op), STATUS_INVALID);
    assert_int_equal(layer_make_op(&relu, overflowing, 10, &op), STATUS_INVALID);
}

static void fans_count_all_taps_of_the_window(void **state)
{
    (void)state;
    struct op op;
    assert_int_equal(layer_make_op(&fittings[1].layer, fittings[1].x, 10, &op), STATUS_OK);
    assert_int_equal(layer_fan_in(&op), 150);
    assert_int_equal(layer_fan_out(&op), 400);
    assert_int_equal(layer_make_op(&fittings[6].layer, fittings[6].x, 10, &op), STATUS_OK);
    assert_int_equal(layer_fan_in(&op), 400);
    assert_int_equal(layer_fan_out(&op), 120);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_have_the_shape_and_parameters_of_the_textbook),
        cmocka_unit_test(a_window_larger_than_its_input_is_refused_and_writes_nothing),
        cmocka_unit_test(a_result_too_large_to_count_is_refused),
        cmocka_unit_test(fans_count_all_taps_of_the_window),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
