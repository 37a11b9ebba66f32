/* Tests of the line that says how a further process joins a job. */
#include "common/job/job_options.h"
#include "deploy/launch/join_line.h"
#include "tests/support/common/sample_job.h"
#include "tests/support/common/temp_folder.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ENDPOINT "tcp://10.0.0.1:4000"

/* A job that goes on without a lost worker, whose processes listen at addresses without keys. */
static struct launcher launcher;
static struct launcher_options launcher_options;
static struct host_options host_options;
static struct launch_options options;
static struct security security;
static struct launch launch;
static char line[JOIN_LINE_BYTES];

static const char *const program[] = {"python3", "my train.py", NULL};

static int set_up(void **state)
{
    (void)state;
    launcher_options = (struct launcher_options){0};
    host_options = (struct host_options){0};
    security = (struct security){.is_insecure = true};
    options = (struct launch_options){.security = &security};
    memset(&launcher, 0, sizeof(launcher));
    launcher.options = &launcher_options;
    launcher.host_options = &host_options;
    memset(&launch, 0, sizeof(launch));
    launch.job = SAMPLE_JOB("mode=ring", "workers=3");
    launch.job.on_loss = ON_LOSS_REDEAL;
    launch.launcher = &launcher;
    launch.options = &options;
    snprintf(launch.endpoint, sizeof(launch.endpoint), "%s", ENDPOINT);
    return 0;
}

static void expect_line(const char *expected)
{
    memset(line, 'x', sizeof(line));
    assert_true(join_line_write(&launch, line));
    assert_string_equal(line, expected);
}

/* What follows the path of this program. */
static void expect_command(const char *expected)
{
    char self[PATH_MAX], whole[JOIN_LINE_BYTES];
    ssize_t size = readlink("/proc/self/exe", self, sizeof(self) - 1);
    assert_true(size > 0);
    self[size] = '\0';
    snprintf(whole, sizeof(whole), "if a place is free, another worker can join: %s %s", self,
             expected);
    expect_line(whole);
}

static void be_private(void)
{
    security.is_insecure = false;
    launch.is_private = true;
    snprintf(launch.endpoint, sizeof(launch.endpoint), "ipc:///proc/4711/fd/13");
}

static void on_one_host_the_endpoint_is_all_that_it_takes(void **state)
{
    (void)state;
    be_private();
    snprintf(host_options.port_range, sizeof(host_options.port_range), "4000-4010");
    expect_command("join ipc:///proc/4711/fd/13");
}

static void a_worker_of_another_host_listens_everywhere(void **state)
{
    (void)state;
    expect_command("join " ENDPOINT " --insecure --bind 0.0.0.0");
    snprintf(host_options.port_range, sizeof(host_options.port_range), "4000-4010");
    expect_command("join " ENDPOINT " --insecure --bind 0.0.0.0 --port-range 4000-4010");
    snprintf(launch.endpoint, sizeof(launch.endpoint), "tcp://127.0.0.1:4000");
    expect_command("join tcp://127.0.0.1:4000 --insecure --port-range 4000-4010");
}

static void the_file_of_keys_is_named_by_its_path(void **state)
{
    (void)state;
    struct keys *keys = NULL;
    char *folder = temp_folder_create(), path[PATH_MAX], expected[JOIN_LINE_BYTES];
    assert_int_equal(keys_generate(&keys), STATUS_OK);
    security = (struct security){.keys = keys};
    snprintf(launcher_options.security.keys, sizeof(launcher_options.security.keys), "%s", folder);
    assert_non_null(realpath(folder, path));
    snprintf(expected, sizeof(expected), "join " ENDPOINT " --keys %s --bind 0.0.0.0", path);
    expect_command(expected);
    snprintf(launcher_options.security.keys, sizeof(launcher_options.security.keys), "-");
    expect_command("join " ENDPOINT " --keys FILE --bind 0.0.0.0"); // it came by standard input
    keys_destroy(keys);
    temp_folder_destroy(folder);
}

static void nobody_joins_who_cannot_have_the_keys(void **state)
{
    (void)state;
    security.is_insecure = false; // so the launcher has made some
    assert_false(join_line_write(&launch, line));
}

static void nobody_joins_a_job_that_a_loss_ends(void **state)
{
    (void)state;
    launch.job.on_loss = ON_LOSS_FAIL;
    assert_false(join_line_write(&launch, line));
    launch.job.on_loss = ON_LOSS_SHRINK;
    assert_true(join_line_write(&launch, line));
    launch.job.mode.kind = MODE_LOCAL;
    assert_false(join_line_write(&launch, line));
}

static void a_program_finds_the_job_by_variables(void **state)
{
    (void)state;
    options.program = program;
    launch.job.on_loss = ON_LOSS_COMMIT;
    snprintf(host_options.port_range, sizeof(host_options.port_range), "4000-4010");
    expect_line("if a place is free, another process can join: RINGSIDE_SERVER=" ENDPOINT
                " RINGSIDE_INSECURE=true RINGSIDE_BIND=0.0.0.0 RINGSIDE_PORT_RANGE=4000-4010 "
                "python3 'my train.py'");
    be_private();
    expect_line(
        "if a place is free, another process can join: RINGSIDE_SERVER=ipc:///proc/4711/fd/13 "
        "python3 'my train.py'");
}

static void a_long_command_line_is_left_to_the_user(void **state)
{
    (void)state;
    static char argument[JOIN_LINE_BYTES];
    memset(argument, 'a', sizeof(argument) - 1);
    const char *const longer[] = {"python3", argument, NULL};
    options.program = longer;
    launch.job.on_loss = ON_LOSS_COMMIT;
    be_private();
    expect_line(
        "if a place is free, another process can join: RINGSIDE_SERVER=ipc:///proc/4711/fd/13 "
        "PROGRAM");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(on_one_host_the_endpoint_is_all_that_it_takes, set_up),
        cmocka_unit_test_setup(a_worker_of_another_host_listens_everywhere, set_up),
        cmocka_unit_test_setup(the_file_of_keys_is_named_by_its_path, set_up),
        cmocka_unit_test_setup(nobody_joins_who_cannot_have_the_keys, set_up),
        cmocka_unit_test_setup(nobody_joins_a_job_that_a_loss_ends, set_up),
        cmocka_unit_test_setup(a_program_finds_the_job_by_variables, set_up),
        cmocka_unit_test_setup(a_long_command_line_is_left_to_the_user, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
