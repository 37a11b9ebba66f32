/* The ResNets with pre-activation: their parameters, and the images that they take. */
#include "tests/support/model/program_fixture.h"
#include "worker/model/models.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on

static void parameters_are_those_that_keras_counts(void **state)
{
    (void)state;
    assert_int_equal(program_fixture_published(&model_resnet50v2, 224, 1000), 25613800);
    assert_int_equal(program_fixture_published(&model_resnet50v2, 32, 10), 23585290);
    assert_int_equal(program_fixture_published(&model_resnet152v2, 224, 1000), 60380648);
}

static void stages_end_with_the_rows_that_keras_has(void **state)
{
    (void)state;
    static struct network_plan plan;
    uint32_t bad_layer;
    assert_int_equal(
        network_make_plan(&model_resnet50v2, (struct shape){3, 224, 224}, 1000, &plan, &bad_layer),
        STATUS_OK);
    static const uint32_t expected[] = {56, 56, 28, 28, 28, 28, 14, 14, 14, 14, 14, 14, 7, 7, 7, 7};
    uint32_t sum = 0;
    for (uint32_t i = 0; i < plan.op_count; i++) {
        if (plan.ops[i].kind == OP_ADD) {
            assert_int_equal(plan.ops[i].y.rows, expected[sum++]);
        }
    }
    assert_int_equal(sum, 16);
}

static void the_smallest_image_has_one_pixel(void **state)
{
    (void)state;
    assert_int_equal(program_fixture_published(&model_resnet50v2, 1, 10), 23585290);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parameters_are_those_that_keras_counts),
        cmocka_unit_test(stages_end_with_the_rows_that_keras_has),
        cmocka_unit_test(the_smallest_image_has_one_pixel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
