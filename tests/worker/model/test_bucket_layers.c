/* Tests of the names of layers. */
#include "worker/model/bucket_layers.h"
#include "worker/model/models.h"
#include "worker/model/network.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdlib.h>

static void layers_are_named_as_backward_computes_them(void **state)
{
    (void)state;
    struct network_plan *plan = calloc(1, sizeof(*plan));
    uint32_t bad, second = 0, fourth = 0, layers = 0;
    char text[64];
    assert_non_null(plan);
    const struct network *lenet5 = models_find("lenet5");
    assert_int_equal(network_make_plan(lenet5, (struct shape){1, 28, 28}, 10, plan, &bad), 0);
    for (uint32_t i = 0; i < plan->op_count; i++) {
        enum op_kind kind = plan->ops[i].kind;
        layers += kind == OP_CONV2D || kind == OP_LINEAR;
        second = layers == 2 && second == 0 ? i : second;
        fourth = layers == 4 && fourth == 0 ? i : fourth;
    }
    bucket_layers_write(plan->ops, 0, plan->op_count, text, sizeof(text));
    assert_string_equal(text, "linear 5 to conv2d 1");
    bucket_layers_write(plan->ops, fourth, plan->op_count, text, sizeof(text));
    assert_string_equal(text, "linear 5, linear 4");
    bucket_layers_write(plan->ops, second, fourth, text, sizeof(text));
    assert_string_equal(text, "linear 3, conv2d 2");
    bucket_layers_write(plan->ops, 0, 1, text, sizeof(text));
    assert_string_equal(text, "conv2d 1");
    bucket_layers_write(plan->ops, second, second, text, sizeof(text)); // a part of a layer
    assert_string_equal(text, "");
    bucket_layers_write(plan->ops, 0, plan->op_count, text, 9); // is cut
    assert_string_equal(text, "linear 5");
    free(plan);
}

static void operations_without_parameters_belong_to_a_layer(void **state)
{
    (void)state;
    static const struct op ops[] = {
        {.kind = OP_PAD},          {.kind = OP_CONV2D, .x = {1, 8, 8}, .y = {2, 8, 8}, .window = 3},
        {.kind = OP_RELU},         {.kind = OP_BATCH_NORM, .x = {2, 8, 8}, .y = {2, 8, 8}},
        {.kind = OP_ADD},          {.kind = OP_LINEAR, .x = {2, 8, 8}, .y = {10, 1, 1}},
        {.kind = OP_SOFTMAX_LOSS},
    };
    static const char *const names[] = {"conv2d 1",     "conv2d 1", "conv2d 1", "batch_norm 2",
                                        "batch_norm 2", "linear 3", "linear 3"};
    const uint32_t count = sizeof(ops) / sizeof(ops[0]);
    char text[64];
    for (uint32_t i = 0; i < count; i++) {
        bucket_layers_name(ops, count, i, text, sizeof(text));
        assert_string_equal(text, names[i]);
    }
    bucket_layers_name(ops, 1, 0, text, sizeof(text));
    assert_string_equal(text, ""); // there are no layers
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layers_are_named_as_backward_computes_them),
        cmocka_unit_test(operations_without_parameters_belong_to_a_layer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
