/* VGG-16: its parameters, and the images that it takes. */
#include "tests/support/model/program_fixture.h"
#include "worker/model/models.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on

static void it_has_the_138357544_parameters_that_keras_counts(void **state)
{
    (void)state;
    assert_int_equal(program_fixture_published(&model_vgg16, 224, 1000), 138357544);
}

static void images_below_32_pixels_are_refused_at_the_pooling_that_is_left_without(void **state)
{
    (void)state;
    static struct network_plan plan;
    uint32_t bad_layer;
    assert_true(program_fixture_published(&model_vgg16, 32, 10) > 0);
    assert_int_equal(
        network_make_plan(&model_vgg16, (struct shape){3, 31, 31}, 10, &plan, &bad_layer),
        STATUS_INVALID);
    assert_int_equal(plan.layers.list[bad_layer].kind, OP_MAX_POOL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_has_the_138357544_parameters_that_keras_counts),
        cmocka_unit_test(images_below_32_pixels_are_refused_at_the_pooling_that_is_left_without),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
