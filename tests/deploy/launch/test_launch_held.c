/* Tests of a coordinator that the kernel holds when the job is over. */
#include "common/base/signals.h"
#include "deploy/launch/launch_held.h"
#include "deploy/launch/launch_verdict.h"
#include "deploy/launch/restart.h"
#include "tests/support/common/captured_log.h"
#include "tests/support/common/sample_job.h"
#include "tests/support/common/temp_folder.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SUMMARY(outcome) "{\"outcome\": \"" outcome "\", \"reason\": \"a reason\"}"

/* A job of a coordinator alone, which was killed and is there: this process stands for it. */
static struct launcher launcher;
static struct host_link link_here;
static struct job job;
static struct launch_options options;
static struct launch launch;

static int set_up(void **state)
{
    char *folder = temp_folder_create();
    *state = folder;
    memset(&launcher, 0, sizeof(launcher));
    memset(&launch, 0, sizeof(launch));
    link_here = (struct host_link){.is_local = true};
    snprintf(link_here.name, sizeof(link_here.name), "here");
    launcher.crew = (struct crew){.links = &link_here, .count = 1};
    job = sample_job_resolved(SAMPLE_JOB("mode=ring", NULL));
    options = (struct launch_options){.job = &job, .folder = folder};
    launch.launcher = &launcher;
    launch.options = &options;
    launch.job = job;
    launch.members = (struct members){
        .crew = &launcher.crew, .list = calloc(1, sizeof(struct member)), .count = 1};
    assert_non_null(launch.members.list);
    launch.members.list[0] =
        (struct member){.is_started = true, .pid = (uint32_t)getpid(), .log_fd = -1};
    snprintf(launch.mirror.folder, sizeof(launch.mirror.folder), "/disk/mirror");
    captured_log_begin();
    return 0;
}

static int tear_down(void **state)
{
    members_finish(&launch.members);
    temp_folder_destroy(*state);
    return captured_log_drop(state);
}

static void one_that_has_recorded_the_end_leaves_the_folder_to_the_launcher(void **state)
{
    assert_true(restart_take_answer(&launch, "recorded"));
    launch_note_held(&launch);
    assert_false(launcher.is_folder_held);
    temp_folder_write(*state, "summary.json", SUMMARY("completed"), strlen(SUMMARY("completed")));
    assert_int_equal(launch_conclude(&launch, STATUS_OK), EXIT_COMPLETED);
    char wanted[160];
    snprintf(
        wanted, sizeof(wanted),
        "the coordinator (pid %d on here) has recorded how the job ended, but has not ended itself",
        (int)getpid());
    const char *log = captured_log_end(), *said = strstr(log, wanted);
    assert_non_null(said);
    assert_non_null(strstr(said, "the disk of --mirror /disk/mirror hangs"));
    assert_null(strstr(log, "was killed"));
}

static void one_that_has_recorded_a_failed_job_leaves_it_failed(void **state)
{
    assert_true(restart_take_answer(&launch, "recorded"));
    launch_note_held(&launch);
    temp_folder_write(*state, "summary.json", SUMMARY("failed"), strlen(SUMMARY("failed")));
    assert_int_equal(launch_conclude(&launch, STATUS_OK), EXIT_FAILED);
    assert_non_null(strstr(captured_log_end(), "the job failed: a reason"));
}

/* Whoever touches the folder might be held as well. */
static void one_that_has_recorded_nothing_keeps_the_folder(void **state)
{
    (void)state;
    launch_note_held(&launch);
    assert_true(launcher.is_folder_held);
    const char *log = captured_log_end();
    assert_non_null(strstr(log, "was killed, and has not ended: the kernel holds it"));
    assert_null(strstr(log, "has recorded"));
}

static void one_that_is_started_again_has_recorded_nothing(void **state)
{
    (void)state;
    assert_true(restart_take_answer(&launch, "recorded"));
    restart_begin_return(&launch, "it was killed");
    assert_false(launch.is_recorded);
    assert_true(restart_take_answer(&launch, "recorded"));
    restart_begin(&launch, "it was killed");
    assert_false(launch.is_recorded);
}

#define HELD_TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        HELD_TEST(one_that_has_recorded_the_end_leaves_the_folder_to_the_launcher),
        HELD_TEST(one_that_has_recorded_a_failed_job_leaves_it_failed),
        HELD_TEST(one_that_has_recorded_nothing_keeps_the_folder),
        HELD_TEST(one_that_is_started_again_has_recorded_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
