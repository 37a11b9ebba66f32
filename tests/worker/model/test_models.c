/* The table of networks. */
#include "worker/model/models.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on

static void every_name_of_the_options_is_found(void **state)
{
    (void)state;
    for (const struct option_choice *choice = names_models; choice->name != NULL; choice++) {
        const struct network *network = models_find(choice->name);
        assert_non_null(network);
        assert_string_equal(network->name, choice->name);
    }
}

static void other_names_are_not(void **state)
{
    (void)state;
    static const char *const names[] = {"", "lenet", "LeNet5", "cnn ", "resnet"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        assert_null(models_find(names[i]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_name_of_the_options_is_found),
        cmocka_unit_test(other_names_are_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
