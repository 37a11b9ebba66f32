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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layers_are_named_as_backward_computes_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
