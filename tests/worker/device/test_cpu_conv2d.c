/* Convolutions of the oneDNN backend: what is said of them, and copies of their own. */
#include "tests/support/common/captured_log.h"
#include "tests/support/model/program_compare.h"
#include "tests/support/model/program_fixture.h"

#include <string.h>

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on

#define BATCH 2

static struct layer convolution(uint32_t window)
{
    return (struct layer){
        .kind = OP_CONV2D, .channels = 32, .window = window, .stride = 1, .padding = window / 2};
}

/* Compiles two convolutions. The text that describes the program, and what was logged, until the
 * next call. */
static void compile(uint32_t window, enum conv_algorithm conv, bool is_trained,
                    const char **ret_text, const char **ret_log)
{
    static char text[512];
    const struct layer layers[] = {
        convolution(window), convolution(window), {.kind = OP_LINEAR, .channels = 4}};
    const struct device_options device_options = {.threads = 1};
    struct network_plan plan;
    struct program_fixture fixture;
    struct device *device;
    struct program *program;
    program_fixture_plan(layers, 3, (struct shape){3, 8, 8}, &plan);
    program_fixture_init(&fixture, &plan, BATCH, 1);
    assert_int_equal(device_open("cpu", &device_options, &device), STATUS_OK);
    const struct program_options options = {
        .ops = plan.ops,
        .op_count = plan.op_count,
        .batch_size = BATCH,
        .params = fixture.params,
        .grads = is_trained ? fixture.grads : NULL,
        .conv = conv,
    };
    captured_log_begin();
    enum status status = device_compile(device, &options, &program);
    *ret_log = captured_log_end();
    assert_int_equal(status, STATUS_OK);
    device_describe(device, program, text, sizeof(text));
    *ret_text = text;
    program_destroy(program);
    device_close(device);
    program_fixture_finish(&fixture);
}

static void the_version_of_the_library_is_told(void **state)
{
    (void)state;
    const char *text, *log;
    compile(3, CONV_AUTO, true, &text, &log);
    bool is_known = strncmp(text, "oneDNN 2.", 9) == 0 || strncmp(text, "oneDNN 3.", 9) == 0;
    if (!is_known) {
        fail_msg("the program describes itself as: %s", text);
    }
}

static void winograd_that_was_asked_for_is_used_or_missed_aloud(void **state)
{
    (void)state;
    const char *text, *log;
    compile(3, CONV_WINOGRAD, true, &text, &log);
    bool is_used = strstr(text, "winograd") != NULL;
    bool is_missed = strstr(log, "Winograd was asked for") != NULL;
    print_message("%s\n%s\n", text, log);
    assert_true(is_used != is_missed);
}

static void winograd_of_windows_that_it_is_not_for_is_missed_once(void **state)
{
    (void)state;
    const char *text, *log;
    compile(5, CONV_WINOGRAD, true, &text, &log);
    assert_null(strstr(text, "winograd"));
    assert_non_null(strstr(log, "Winograd was asked for"));
    compile(5, CONV_WINOGRAD, false, &text, &log);
    assert_string_equal(log, "");
}

static void nobody_misses_winograd_who_has_not_asked_for_it(void **state)
{
    (void)state;
    const char *text, *log;
    compile(5, CONV_AUTO, true, &text, &log);
    assert_string_equal(log, "");
    compile(3, CONV_DIRECT, true, &text, &log);
    assert_string_equal(log, "");
    assert_null(strstr(text, "winograd"));
}

static void gradients_of_weights_in_long_rows_are_those_of_ref(void **state)
{
    (void)state;
    static const uint32_t inputs[] = {1008, 1024, 2048}; // rows of 4 and 8 KiB come in tiles
    for (size_t i = 0; i < sizeof(inputs) / sizeof(inputs[0]); i++) {
        struct layer wide = convolution(1);
        wide.channels = inputs[i];
        const struct layer layers[] = {wide, convolution(1), {.kind = OP_LINEAR, .channels = 4}};
        struct network_plan plan;
        struct program_difference difference;
        const struct program_compare_options options = {
            .subject = "cpu", .reference = "ref", .threads = 2, .batch_size = 3, .seed = 5};
        program_fixture_plan(layers, 3, (struct shape){3, 4, 4}, &plan);
        program_compare(&plan, &options, &difference);
        assert_true(difference.grads < 1e-5);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_version_of_the_library_is_told),
        cmocka_unit_test(winograd_that_was_asked_for_is_used_or_missed_aloud),
        cmocka_unit_test(winograd_of_windows_that_it_is_not_for_is_missed_once),
        cmocka_unit_test(nobody_misses_winograd_who_has_not_asked_for_it),
        cmocka_unit_test(gradients_of_weights_in_long_rows_are_those_of_ref),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
