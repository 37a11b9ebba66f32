/* Tests of what a coordinator is told of members that have ended. */
#include "common/base/signals.h"
#include "common/job/job_options.h"
#include "deploy/launch/launch_ends.h"
#include "deploy/launch/restart.h"
#include "tests/support/common/choices.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WORKERS 3
#define KILLED  9 // as waitpid gives it

/* A job of a coordinator and its workers on one host, of which all run. */
static struct launcher launcher;
static struct host_link host;
static struct launch_options options;
static struct launch launch;
static int heard; // the other end of the link

static int set_up(void **state)
{
    (void)state;
    const struct option_set set = job_option_set(&launch.job);
    int ends[2];
    memset(&launcher, 0, sizeof(launcher));
    memset(&launch, 0, sizeof(launch));
    memset(&host, 0, sizeof(host));
    options_reset(&set);
    launch.job.mode = mode_of("ps-sync");
    launch.job.workers = WORKERS;
    launch.job.servers = 1;
    launch.job.on_loss = ON_LOSS_REDEAL;
    launch.job.min_workers = 1;
    options = (struct launch_options){.job = &launch.job};
    launcher.crew = (struct crew){.links = &host, .count = 1};
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
    heard = ends[0];
    host.state = HOST_LINK_UP;
    line_writer_init(&host.writer, ends[1]);
    launch.launcher = &launcher;
    launch.options = &options;
    launch.placement = (struct placement){.worker_count = WORKERS, .server_count = 1};
    launch.members = (struct members){.crew = &launcher.crew,
                                      .list = calloc(1 + WORKERS, sizeof(struct member)),
                                      .count = 1 + WORKERS};
    assert_non_null(launch.members.list);
    for (size_t i = 0; i <= WORKERS; i++) {
        struct member *member = &launch.members.list[i];
        *member = (struct member){.is_started = true, .log_fd = -1};
        snprintf(member->name, sizeof(member->name), "worker %zu", i - 1);
    }
    launch.has_begun = true;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    line_writer_finish(&host.writer);
    close(heard);
    members_finish(&launch.members);
    return 0;
}

static void kill_worker(uint32_t worker)
{
    launch.members.list[1 + worker].is_over = true;
    launch.members.list[1 + worker].result = KILLED;
}

/* Notes ends. What the coordinator is told of them, as lines of JSON. */
static const char *tell(void)
{
    static char text[4096];
    launch_note_ends(&launch);
    assert_int_equal(line_writer_flush(&host.writer), STATUS_OK);
    ssize_t size = read(heard, text, sizeof(text) - 1);
    text[size > 0 ? size : 0] = '\0';
    return text;
}

static void each_end_is_told_once(void **state)
{
    (void)state;
    kill_worker(1);
    assert_non_null(strstr(tell(), "\"killed worker 1 worker 1 was killed"));
    assert_string_equal(tell(), "");
}

/* So that a coordinator which hears of it late does not take it for the end of a later one. */
static void an_end_says_which_start_of_the_launcher_it_is_of(void **state)
{
    (void)state;
    launch.members.list[2].launch = 17;
    launch.members.list[3].launch = 18;
    kill_worker(1);
    assert_non_null(strstr(tell(), "\"killed worker 1 launch 17 worker 1 was killed"));
    assert_true(restart_take_answer(&launch, "renewed 1"));
    restart_begin_return(&launch, "it was killed");
    assert_non_null(strstr(tell(), "\"over worker 1 launch 17 worker 1 was lost"));
}

static void one_that_can_be_started_again_is_told_as_such(void **state)
{
    (void)state;
    options.restarts = 1;
    kill_worker(1);
    assert_non_null(strstr(tell(), "\"again worker 1 worker 1 was killed"));
    assert_true(restart_is_planned(&launch));
}

/* Its host was lost, and no other one has a free slot. */
static void one_that_no_host_has_a_slot_for_is_told_as_such(void **state)
{
    (void)state;
    static struct host_link two[2];
    static const struct security security;
    struct member *member = &launch.members.list[3];
    options.restarts = 1;
    options.security = &security;
    launch.is_private = true;
    memcpy(&two[0], &host, sizeof(host));
    two[1] = (struct host_link){.state = HOST_LINK_LOST, .name = "node2", .why = "it is gone"};
    launcher.crew = (struct crew){.links = two, .count = 2};
    launcher.hosts = (struct hosts){.list = {{"a", 2, false}, {"b", 1, false}}, .count = 2};
    launch.placement.host_of_worker[2] = 1;
    launch.placement.local_rank[1] = 1;
    member->host = 1;
    member->is_over = member->is_lost = true;
    launch_note_ends(&launch);
    memcpy(&host, &two[0], sizeof(host));
    launcher.crew = (struct crew){.links = &host, .count = 1};
    launch.members.list[3].host = 0;
    assert_non_null(strstr(tell(), "\"killed worker 2 worker 2 was lost with node2: it is gone; it "
                                   "is not started again, as no other host has a free slot\""));
    assert_true(member->is_unplaced); // which was logged
    assert_false(restart_is_planned(&launch));
}

/* The job had gone on without worker 0 before, and may still count on worker 2. */
static void a_coordinator_that_comes_back_hears_of_all_that_do_not_run(void **state)
{
    (void)state;
    kill_worker(0);
    tell();
    assert_true(restart_take_answer(&launch, "renewed 1"));
    kill_worker(2);
    assert_non_null(strstr(tell(), "\"killed worker 2"));
    restart_begin_return(&launch, "it was killed");
    const char *told = tell();
    assert_non_null(strstr(told, "\"over worker 0 worker 0 was lost before the coordinator"));
    assert_non_null(strstr(told, "\"lost worker 2 worker 2 was killed"));
    assert_null(strstr(told, "worker 1"));
}

/* Worker 2 ended when the next generation, which counts on it, had begun: the coordinator had not
 * taken that line. */
static void one_that_ended_behind_what_the_coordinator_had_heard_may_be_counted_on(void **state)
{
    (void)state;
    kill_worker(0);
    tell();
    kill_worker(2);
    tell();
    assert_true(restart_take_answer(&launch, "renewed 1"));
    restart_begin_return(&launch, "it was killed");
    const char *told = tell();
    assert_non_null(strstr(told, "\"over worker 0"));
    assert_non_null(strstr(told, "\"lost worker 2"));
    assert_true(restart_take_answer(&launch, "renewed 1")); // the new one counts from 1, too
    assert_false(launch.members.list[3].is_settled);
    assert_true(restart_take_answer(&launch, "renewed 2"));
    assert_true(launch.members.list[3].is_settled);
}

static void once_it_trains_a_killed_member_is_told_as_ever(void **state)
{
    (void)state;
    restart_begin_return(&launch, "it was killed");
    assert_true(restart_take_answer(&launch, "training"));
    kill_worker(1);
    assert_non_null(strstr(tell(), "\"killed worker 1"));
}

/* All workers of a job that has not begun are killed at once. */
static void no_more_can_be_started_again_than_restarts_are_left(void **state)
{
    (void)state;
    launch.has_begun = false;
    options.restarts = 2;
    for (uint32_t i = 0; i < WORKERS; i++) {
        kill_worker(i);
    }
    const char *told = tell();
    assert_non_null(strstr(told, "\"again worker 0"));
    assert_non_null(strstr(told, "\"again worker 1"));
    assert_non_null(strstr(told, "\"killed worker 2"));
    assert_true(restart_take_answer(&launch, "await worker 0"));
    told = tell(); // of those that are not planned, once more
    assert_non_null(strstr(told, "\"again worker 1"));
    assert_non_null(strstr(told, "\"killed worker 2"));
    assert_true(restart_take_answer(&launch, "await worker 1"));
    assert_true(restart_take_answer(&launch, "await worker 2")); // one restart too many
    assert_true(launch.members.list[1].restart_ms != 0 && launch.members.list[2].restart_ms != 0);
    assert_true(launch.members.list[3].restart_ms == 0);
}

/* As by SIGTERM to one worker, which then ends by itself. */
static void one_that_was_asked_to_end_before_the_start_can_be_started_again(void **state)
{
    (void)state;
    launch.has_begun = false;
    options.restarts = 1;
    launch.members.list[1].is_over = true;
    launch.members.list[1].result = EXIT_INTERRUPTED << 8;
    assert_non_null(strstr(tell(), "\"again worker 0 worker 0 ended with exit code 130"));
    assert_true(restart_take_answer(&launch, "await worker 0"));
    assert_true(launch.members.list[1].restart_ms != 0 && launch.cause[0] == '\0');
}

/* What its own end means, only it knows. */
static void a_program_of_its_own_that_was_asked_to_end_is_not_started_again(void **state)
{
    (void)state;
    static const char *const program[] = {"train", NULL};
    launch.has_begun = false;
    options.restarts = 1;
    options.program = program;
    launch.members.list[1].is_over = true;
    launch.members.list[1].result = EXIT_INTERRUPTED << 8;
    assert_non_null(strstr(tell(), "\"ended worker 0"));
}

/* The coordinator answers for none: the job trains. */
static void what_was_offered_in_vain_is_left_for_others(void **state)
{
    (void)state;
    launch.has_begun = false;
    options.restarts = 1;
    launch.placement.server_count = 2;
    launch.placement.worker_count = 2;
    kill_worker(0); // now a server
    assert_non_null(strstr(tell(), "\"again worker 0"));
    assert_true(restart_take_answer(&launch, "training"));
    kill_worker(1);
    assert_non_null(strstr(tell(), "\"again worker 1"));
    assert_true(launch.members.list[2].restart_ms != 0);
}

/* One that is started again takes its place anew. */
static void ends_are_forgotten_but_for_those_of_planned_restarts(void **state)
{
    (void)state;
    for (int with_planned = 0; with_planned < 2; with_planned++) {
        kill_worker(0);
        kill_worker(1);
        launch.members.list[1].restart_ms = 1;
        tell();
        launch_forget_ends(&launch, with_planned != 0);
        const char *told = tell();
        assert_int_equal(strstr(told, "worker 0") != NULL, with_planned);
        assert_non_null(strstr(told, "worker 1"));
    }
}

static void fail_worker(uint32_t worker)
{
    launch.members.list[1 + worker].is_over = true;
    launch.members.list[1 + worker].result = 7 << 8;
}

static void set_program(void)
{
    static const char *const program[] = {"train", NULL};
    options.program = program;
    options.restarts = 2;
    launch.job.on_loss = ON_LOSS_COMMIT;
}

/* The coordinator knows whether the others need it. */
static void a_program_that_fails_when_it_is_started_again_may_be_given_up_alone(void **state)
{
    (void)state;
    set_program();
    launch.members.list[2].is_again = true;
    launch.members.list[2].launch = 17;
    fail_worker(1);
    assert_non_null(
        strstr(tell(), "\"newcomer worker 1 launch 17 worker 1 ended with exit code 7"));
    assert_string_equal(launch.cause, "");
    assert_int_equal(launch.deadline_ms, 0);
    assert_false(restart_is_planned(&launch)); // it would fail again
    fail_worker(2);
    assert_non_null(strstr(tell(), "\"ended worker 2 worker 2 ended with exit code 7"));
    assert_true(launch.deadline_ms != 0);
}

/* Before the job begins its failure is that of all, and once it ends, nobody goes on. */
static void a_program_that_fails_before_or_after_the_job_is_told_as_ever(void **state)
{
    (void)state;
    set_program();
    launch.has_begun = false;
    launch.members.list[2].is_again = launch.members.list[3].is_again = true;
    fail_worker(1);
    assert_non_null(strstr(tell(), "\"ended worker 1"));
    launch_forget_ends(&launch, true);
    launch.members.list[2].is_noted = launch.has_begun = true;
    assert_true(restart_take_answer(&launch, "ending"));
    fail_worker(2);
    assert_non_null(strstr(tell(), "\"ended worker 2"));
}

/* All that are left have ended. */
static void a_job_that_ends_with_such_a_failure_is_not_started_again(void **state)
{
    (void)state;
    set_program();
    launch.members.list[2].is_again = true;
    fail_worker(1);
    tell();
    struct member *coordinator = &launch.members.list[0];
    coordinator->is_over = launch.members.list[1].is_over = launch.members.list[3].is_over = true;
    coordinator->result = EXIT_LOST << 8;
    assert_false(restart_may_follow(&launch));
    assert_true(restart_take_answer(&launch, "renewed 1")); // another loss came behind it
    assert_true(restart_may_follow(&launch));
}

#define ENDS_TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ENDS_TEST(each_end_is_told_once),
        ENDS_TEST(an_end_says_which_start_of_the_launcher_it_is_of),
        ENDS_TEST(one_that_can_be_started_again_is_told_as_such),
        ENDS_TEST(one_that_no_host_has_a_slot_for_is_told_as_such),
        ENDS_TEST(a_coordinator_that_comes_back_hears_of_all_that_do_not_run),
        ENDS_TEST(one_that_ended_behind_what_the_coordinator_had_heard_may_be_counted_on),
        ENDS_TEST(once_it_trains_a_killed_member_is_told_as_ever),
        ENDS_TEST(no_more_can_be_started_again_than_restarts_are_left),
        ENDS_TEST(one_that_was_asked_to_end_before_the_start_can_be_started_again),
        ENDS_TEST(a_program_of_its_own_that_was_asked_to_end_is_not_started_again),
        ENDS_TEST(a_program_that_fails_when_it_is_started_again_may_be_given_up_alone),
        ENDS_TEST(a_program_that_fails_before_or_after_the_job_is_told_as_ever),
        ENDS_TEST(a_job_that_ends_with_such_a_failure_is_not_started_again),
        ENDS_TEST(what_was_offered_in_vain_is_left_for_others),
        ENDS_TEST(ends_are_forgotten_but_for_those_of_planned_restarts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
