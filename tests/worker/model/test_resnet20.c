/* ResNet-20: its parameters, and the images that it takes. */
#include "tests/support/model/program_fixture.h"
#include "worker/model/models.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on

static void it_has_the_269722_parameters_of_the_paper(void **state)
{
    (void)state;
    assert_int_equal(program_fixture_published(&model_resnet20, 32, 10), 269722);
}

static void its_parameters_do_not_depend_on_the_size_of_images(void **state)
{
    (void)state;
    assert_int_equal(program_fixture_published(&model_resnet20, 64, 10), 269722);
    assert_int_equal(program_fixture_published(&model_resnet20, 1, 10), 269722);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_has_the_269722_parameters_of_the_paper),
        cmocka_unit_test(its_parameters_do_not_depend_on_the_size_of_images),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
