/* Tests of members' command lines: what is added is there, in order, and the list ends. */
#include "common/job/job_options.h"
#include "deploy/launch/member_command.h"
#include "tests/support/common/sample_job.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdio.h>
#include <string.h>

static void arguments_stand_in_the_order_in_which_they_were_added(void **state)
{
    (void)state;
    struct member_command command;
    assert_int_equal(member_command_create("/opt/ps", &command), STATUS_OK);
    member_command_add_option(&command, "--bind", "10.0.0.7");
    member_command_add_number(&command, "--port", UINT64_MAX);
    member_command_add(&command, "--insecure");
    static const char *const expected[] = {
        "/opt/ps", "--bind", "10.0.0.7", "--port", "18446744073709551615", "--insecure"};
    assert_int_equal(command.count, sizeof(expected) / sizeof(expected[0]));
    for (size_t i = 0; i < command.count; i++) {
        assert_string_equal(command.argv[i], expected[i]);
    }
    assert_null(command.argv[command.count]);
    member_command_destroy(&command);
}

/* The oracle is the parser that a member reads them with. */
static void the_options_of_a_job_give_the_job_again(void **state)
{
    (void)state;
    struct job job = SAMPLE_JOB("global-batch=384", "lr=0.0125"), again = SAMPLE_JOB(NULL);
    const struct option_set set = job_option_set(&again);
    struct member_command command;
    assert_int_equal(member_command_create("ps", &command), STATUS_OK);
    member_command_add_job(&command, &job);
    assert_int_equal(command.count, 1 + job_option_count);
    for (size_t i = 0; i < job_option_count; i++) {
        char error[OPTION_ERROR_BYTES], prefix[64];
        int size = snprintf(prefix, sizeof(prefix), "--%s=", job_options[i].name);
        assert_memory_equal(command.argv[1 + i], prefix, (size_t)size);
        assert_int_equal(options_set_text(&set, 1, job_options[i].name, command.argv[1 + i] + size,
                                          error, sizeof(error)),
                         STATUS_OK);
    }
    assert_int_equal(again.global_batch, 384);
    assert_true(again.lr == job.lr);
    member_command_destroy(&command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arguments_stand_in_the_order_in_which_they_were_added),
        cmocka_unit_test(the_options_of_a_job_give_the_job_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
