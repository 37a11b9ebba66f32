/* ResNet-20: its parameters, and the images that it takes. */
#include "worker/model/models.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on

static uint64_t published(const struct network *network, uint32_t size, uint32_t classes)
{
    static struct network_plan plan;
    uint32_t bad_layer;
    assert_int_equal(
        network_make_plan(network, (struct shape){3, size, size}, classes, &plan, &bad_layer),
        STATUS_OK);
    return network_published_count(network, &plan);
}

static void it_has_the_269722_parameters_of_the_paper(void **state)
{
    (void)state;
    assert_int_equal(published(&model_resnet20, 32, 10), 269722);
}

static void its_parameters_do_not_depend_on_the_size_of_images(void **state)
{
    (void)state;
    assert_int_equal(published(&model_resnet20, 64, 10), 269722);
    assert_int_equal(published(&model_resnet20, 1, 10), 269722);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_has_the_269722_parameters_of_the_paper),
        cmocka_unit_test(its_parameters_do_not_depend_on_the_size_of_images),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
