/* Operations of networks, against sums by hand. */
#include "bench/programs/work.h"
#include "worker/model/models.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on

static void lenet5_takes_as_many_products_as_its_layers_have(void **state)
{
    (void)state;
    static struct network_plan plan;
    uint32_t bad_layer;
    assert_int_equal(
        network_make_plan(models_find("lenet5"), (struct shape){1, 28, 28}, 10, &plan, &bad_layer),
        STATUS_OK);
    const double first = 28.0 * 28 * 6 * 25;
    const double others = 10.0 * 10 * 16 * 6 * 25 + 400 * 120 + 120 * 84 + 84 * 10;
    struct work work = work_of(plan.ops, plan.op_count, 4);
    assert_true(work.operations == 2 * (2 * first + 3 * others)); // pixels have no gradient
}

static void bytes_are_those_of_tensors_that_must_pass_through_memory(void **state)
{
    (void)state;
    static const struct op ops[] = {
        {.kind = OP_CONV2D,
         .input = DEVICE_INPUT_PIXELS,
         .x = {3, 8, 8},
         .y = {5, 8, 8},
         .window = 3,
         .stride = 1,
         .padding = 1},
        {.kind = OP_RELU, .input = 0, .x = {5, 8, 8}, .y = {5, 8, 8}},
        {.kind = OP_LINEAR, .input = 1, .x = {5, 8, 8}, .y = {7, 1, 1}},
    };
    const double x = 3 * 64, y = 5 * 64, z = 7;
    struct work work = work_of(ops, 3, 2);
    assert_true(work.bytes == 2 * ((x + y) + (y + x) + (y + z) + (z + 2 * y)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lenet5_takes_as_many_products_as_its_layers_have),
        cmocka_unit_test(bytes_are_those_of_tensors_that_must_pass_through_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
