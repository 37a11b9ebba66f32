/* Tests of how a job ends of which no process was started. */
#include "deploy/launch/launch.h"
#include "tests/support/common/captured_log.h"
#include "tests/support/common/sample_job.h"
#include "tests/support/common/temp_folder.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <jansson.h>

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static struct launcher launcher;

static int set_up(void **state)
{
    static const struct hosts nobody = {.count = 0};
    static const struct host_link_options links = {.ssh = NULL};
    (void)signal(SIGHUP, SIG_DFL); // whatever the tests run under
    launch_block_signals();
    memset(&launcher, 0, sizeof(launcher));
    *state = temp_folder_create();
    return crew_open(&launcher.crew, &nobody, &links) == STATUS_OK ? 0 : -1;
}

static int tear_down(void **state)
{
    crew_close(&launcher.crew);
    temp_folder_destroy(*state);
    return 0;
}

/* Why the run in the folder has failed; the caller frees the tree. */
static const char *reason_of(const char *folder, json_t **ret_tree)
{
    char path[4200];
    snprintf(path, sizeof(path), "%s/summary.json", folder);
    json_t *summary = json_load_file(path, 0, NULL);
    *ret_tree = summary;
    assert_non_null(summary);
    assert_string_equal(json_string_value(json_object_get(summary, "outcome")), "failed");
    return json_string_value(json_object_get(summary, "reason"));
}

/* Its folder is there by then, and nobody has looked for signals since the hosts were tried. */
static void one_that_is_hung_up_twice_before_its_first_process_has_a_summary(void **state)
{
    static const char why[] = "interrupted by SIGHUP: the terminal of ringside was closed";
    const struct job job = sample_job_resolved(SAMPLE_JOB("mode=ring", NULL));
    const struct launch_options options = {.job = &job, .folder = *state};
    json_t *summary;
    assert_int_equal(kill(getpid(), SIGHUP), 0);
    assert_int_equal(kill(getpid(), SIGHUP), 0);
    captured_log_begin();
    enum exit_code code = launch_job(&launcher, &options);
    const char *log = captured_log_end();
    assert_int_equal(code, EXIT_INTERRUPTED);
    assert_non_null(strstr(log, why));
    assert_string_equal(reason_of(*state, &summary), why);
    json_decref(summary);
}

static void one_that_has_no_place_has_a_summary(void **state)
{
    launcher.hosts = (struct hosts){.list = {{"localhost", 0, false}}, .count = 1};
    const struct job job = sample_job_resolved(SAMPLE_JOB("mode=ring", NULL));
    const struct launch_options options = {.job = &job, .folder = *state};
    json_t *summary;
    captured_log_begin();
    enum exit_code code = launch_job(&launcher, &options);
    (void)captured_log_end();
    assert_int_equal(code, EXIT_FAILED);
    assert_non_null(strstr(reason_of(*state, &summary), "the hosts have 0 slots"));
    json_decref(summary);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            one_that_is_hung_up_twice_before_its_first_process_has_a_summary, set_up, tear_down),
        cmocka_unit_test_setup_teardown(one_that_has_no_place_has_a_summary, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
