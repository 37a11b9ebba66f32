/* The CUDA backend on the fake runtime: that it is there at all, and what only a fake can refuse.
 * What is shown is the logic of the host, not what a GPU computes: see stream.h. */
#include "tests/support/captured_log.h"
#include "tests/support/program_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on

#define MODE "RINGSIDE_FAKE_CUDA"

static const struct layer layers[] = {
    {OP_CONV2D, .channels = 6, .window = 3, .stride = 1, .padding = 1},
    {OP_RELU},
    {OP_LINEAR, .channels = 7},
};
#define LAYER_COUNT (sizeof(layers) / sizeof(layers[0]))

/* Otherwise the tests of all backends would leave it out, and pass. */
static void the_fake_is_what_programs_of_this_folder_load(void **state)
{
    (void)state;
    char why[256] = "there is no such backend", list[512] = "";
    for (const struct device_ops *const *ops = device_backends(); *ops != NULL; ops++) {
        if (strcmp((*ops)->name, "cuda") == 0 && (*ops)->is_available(why, sizeof(why))) {
            (*ops)->list(list, sizeof(list));
        }
    }
    if (strstr(list, "threads of the host in the place of a GPU") == NULL) {
        fail_msg("cuda is not the fake: %s%s", why, list);
    }
}

static void a_batch_that_does_not_fit_is_refused_with_one_that_does(void **state)
{
    (void)state;
    struct network_plan plan;
    struct program_fixture fixture;
    struct device *device;
    struct program *program = NULL;
    char mode[64];
    snprintf(mode, sizeof(mode), "%s", getenv(MODE) != NULL ? getenv(MODE) : "");
    assert_int_equal(setenv(MODE, "small", 1), 0);
    program_fixture_plan(layers, LAYER_COUNT, (struct shape){2, 9, 11}, &plan);
    program_fixture_init(&fixture, &plan, 4, 3);
    const struct program_options options = {
        .ops = plan.ops,
        .op_count = plan.op_count,
        .batch_size = 4096,
        .params = fixture.params,
        .grads = fixture.grads,
        .statistics = fixture.statistics,
    };
    assert_int_equal(device_open("cuda", &(struct device_options){.threads = 1}, &device),
                     STATUS_OK);
    captured_log_begin();
    assert_int_equal(device_compile(device, &options, &program), STATUS_NO_MEMORY);
    const char *said = captured_log_end();
    assert_non_null(strstr(said, "a batch of 4096 asks for"));
    assert_non_null(strstr(said, "images a batch would fit"));
    assert_null(program);
    device_close(device);
    program_fixture_finish(&fixture);
    assert_int_equal(setenv(MODE, mode, 1), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_fake_is_what_programs_of_this_folder_load),
        cmocka_unit_test(a_batch_that_does_not_fit_is_refused_with_one_that_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
