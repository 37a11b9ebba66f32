/* Tests of --conv: a backend follows the choice of an algorithm, or refuses it. */
#include "tests/support/common/captured_log.h"
#include "tests/support/model/program_fixture.h"
#include "tests/support/model/tested_backends.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <string.h>

#define BATCH_SIZE 2

static const struct layer layers[] = {
    {OP_CONV2D, .channels = 4, .window = 3, .stride = 1},
    {OP_LINEAR, .channels = 5},
};

static void check_choice(const struct device_ops *ops, enum conv_algorithm conv)
{
    static struct network_plan plan;
    struct program_fixture fixture;
    struct device *device;
    struct program *program = NULL;
    const struct device_options device_options = {.threads = 1};
    program_fixture_plan(layers, 2, (struct shape){3, 8, 8}, &plan);
    program_fixture_init(&fixture, &plan, BATCH_SIZE, 3);
    assert_int_equal(device_open(ops->name, &device_options, &device), STATUS_OK);
    const struct program_options options = {
        .ops = plan.ops,
        .op_count = plan.op_count,
        .batch_size = BATCH_SIZE,
        .params = fixture.params,
        .statistics = fixture.statistics,
        .conv = conv,
    };
    captured_log_begin();
    enum status status = device_compile(device, &options, &program);
    const char *said = captured_log_end();
    if (conv == CONV_AUTO || ops->has_conv_choice) {
        assert_int_equal(status, STATUS_OK);
    } else {
        assert_int_equal(status, STATUS_UNSUPPORTED);
        assert_null(program);
        assert_non_null(strstr(said, ops->name));
        assert_non_null(strstr(said, "--conv auto"));
    }
    program_destroy(program);
    device_close(device);
    program_fixture_finish(&fixture);
}

static void an_algorithm_of_convolutions_is_followed_or_refused(void **state)
{
    (void)state;
    for (const struct device_ops *const *ops = tested_backends(); *ops != NULL; ops++) {
        for (int conv = CONV_AUTO; conv <= CONV_WINOGRAD; conv++) {
            check_choice(*ops, (enum conv_algorithm)conv);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_algorithm_of_convolutions_is_followed_or_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
