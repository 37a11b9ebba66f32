/* The CNN of Keras's example: its parameters, and the images that it takes. */
#include "worker/model/models.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on

static enum status plan_of(struct shape input, uint32_t class_count, struct network_plan *ret_plan,
                           uint32_t *ret_bad_layer)
{
    return network_make_plan(&model_cnn, input, class_count, ret_plan, ret_bad_layer);
}

static void it_has_the_1250858_parameters_that_keras_counts(void **state)
{
    (void)state;
    struct network_plan plan;
    uint32_t bad_layer;
    assert_int_equal(plan_of((struct shape){3, 32, 32}, 10, &plan, &bad_layer), STATUS_OK);
    assert_int_equal(plan.value_count, 1250858);
}

static void it_takes_images_of_other_datasets(void **state)
{
    (void)state;
    struct network_plan plan;
    uint32_t bad_layer;
    assert_int_equal(plan_of((struct shape){1, 28, 28}, 10, &plan, &bad_layer), STATUS_OK);
    assert_int_equal(plan_of((struct shape){3, 32, 32}, 100, &plan, &bad_layer), STATUS_OK);
    assert_int_equal(plan.ops[plan.op_count - 1].y.channels, 100);
}

static void images_too_small_are_refused_at_the_layer_that_is_left_without(void **state)
{
    (void)state;
    struct network_plan plan;
    uint32_t bad_layer = 0;
    assert_int_equal(plan_of((struct shape){3, 10, 10}, 10, &plan, &bad_layer), STATUS_OK);
    assert_int_equal(plan_of((struct shape){3, 9, 32}, 10, &plan, &bad_layer), STATUS_INVALID);
    assert_int_equal(bad_layer, 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_has_the_1250858_parameters_that_keras_counts),
        cmocka_unit_test(it_takes_images_of_other_datasets),
        cmocka_unit_test(images_too_small_are_refused_at_the_layer_that_is_left_without),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
