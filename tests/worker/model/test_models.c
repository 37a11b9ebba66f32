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

/* --classes, or what the data have. */
static void every_model_has_as_many_outputs_as_there_are_classes(void **state)
{
    (void)state;
    static const uint32_t counts[] = {2, 10, 100, 1000};
    static struct network_plan plan;
    for (const struct option_choice *choice = names_models; choice->name != NULL; choice++) {
        const struct network *network = models_find(choice->name);
        const struct shape input = {3, 32, 32};
        uint64_t values = 0;
        assert_non_null(network);
        for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
            uint32_t bad_layer;
            assert_int_equal(network_make_plan(network, input, counts[i], &plan, &bad_layer),
                             STATUS_OK);
            assert_int_equal(plan.ops[plan.op_count - 1].y.channels, counts[i]);
            assert_true(plan.value_count > values); // the last layer has more weights
            values = plan.value_count;
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_name_of_the_options_is_found),
        cmocka_unit_test(other_names_are_not),
        cmocka_unit_test(every_model_has_as_many_outputs_as_there_are_classes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
