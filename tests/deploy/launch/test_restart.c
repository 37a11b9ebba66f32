/* Tests of what is started again after a loss. */
#include "common/base/clock.h"
#include "common/base/signals.h"
#include "common/job/job_options.h"
#include "deploy/launch/restart.h"
#include "tests/support/common/choices.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXITED(code) ((code) << 8) // as waitpid gives it

/* A job of a coordinator and three workers on two hosts with two slots each, of which all run. */
static struct launcher launcher;
static struct host_link links[2];
static struct launch_options options;
static struct launch launch;

static int set_up(void **state)
{
    (void)state;
    const struct option_set set = job_option_set(&launch.job);
    memset(&launcher, 0, sizeof(launcher));
    memset(&launch, 0, sizeof(launch));
    memset(links, 0, sizeof(links));
    options_reset(&set);
    launch.job.mode = mode_of("ps-sync");
    launch.job.workers = 3;
    launch.job.servers = 1;
    options = (struct launch_options){.job = &launch.job, .restarts = 2};
    launcher.hosts = (struct hosts){.list = {{"a", 2, false}, {"b", 2, false}}, .count = 2};
    launcher.crew = (struct crew){.links = links, .count = 2};
    links[0].state = links[1].state = HOST_LINK_UP;
    launch.launcher = &launcher;
    launch.options = &options;
    launch.placement = (struct placement){.worker_count = 3,
                                          .server_count = 1,
                                          .host_of_worker = {0, 0, 1},
                                          .local_rank = {0, 1, 0},
                                          .local_size = {2, 1}};
    launch.members = (struct members){.list = calloc(4, sizeof(struct member)), .count = 4};
    assert_non_null(launch.members.list);
    for (size_t i = 0; i < 4; i++) {
        launch.members.list[i] = (struct member){.is_started = true, .log_fd = -1};
    }
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    members_finish(&launch.members);
    return 0;
}

static void end(size_t index, int result)
{
    launch.members.list[index].is_over = true;
    launch.members.list[index].result = result;
}

static void end_workers(int result)
{
    for (size_t i = 1; i < 4; i++) {
        end(i, result);
    }
}

static void a_job_whose_coordinator_is_killed_is_started_again(void **state)
{
    (void)state;
    end_workers(EXITED(EXIT_FAILED)); // whatever they make of it
    end(0, 9);
    assert_true(restart_may_follow(&launch));
    launch.members.list[0].result = EXITED(EXIT_FAILED);
    assert_false(restart_may_follow(&launch)); // such as a disk that is full
    launch.members.list[0].is_lost = true;
    assert_true(restart_may_follow(&launch));
}

static void a_coordinator_that_has_lost_somebody_says_so(void **state)
{
    (void)state;
    end_workers(EXITED(EXIT_LOST));
    end(2, 9);
    end(0, EXITED(EXIT_LOST));
    assert_true(restart_may_follow(&launch));
    launch.members.list[2].result = EXITED(EXIT_FAILED); // of its own: it would do so again
    assert_false(restart_may_follow(&launch));
}

static void nobody_of_the_attempt_before_may_be_left(void **state)
{
    (void)state;
    end_workers(EXITED(EXIT_LOST));
    end(0, 9);
    launch.members.list[3].is_over = false;
    assert_false(restart_may_follow(&launch));
}

static void an_interrupted_job_is_not_started_again(void **state)
{
    (void)state;
    end_workers(EXITED(EXIT_LOST));
    end(0, 9);
    launch.interrupts = 1;
    assert_false(restart_may_follow(&launch));
}

static void restarts_are_counted_and_those_that_follow_quickly_have_longer_pauses(void **state)
{
    (void)state;
    char when[RESTART_WHEN_BYTES];
    const uint64_t pauses_ms[] = {0, 500, 1000, 2000, 4000, 8000, 16000, 32000, 32000, 32000};
    for (uint32_t i = 0; i < sizeof(pauses_ms) / sizeof(pauses_ms[0]); i++) {
        end_workers(EXITED(EXIT_LOST));
        end(0, 9);
        assert_int_equal(restart_may_follow(&launch), i < 2);
        assert_int_equal(restart_delay_ms(&launch, when), pauses_ms[i]);
        assert_string_equal(when, i == 0 ? "at once" : i == 1 ? "in 0.5 s" : when);
        restart_begin_return(&launch, "it was killed");
        assert_int_equal(launch.restarts, i + 1);
    }
    launch.restarted_ms -= 61000; // all went well for a while
    assert_int_equal(restart_delay_ms(&launch, when), 0);
    restart_begin(&launch, "it was killed");
    assert_int_equal(restart_delay_ms(&launch, when), 500);
}

static void the_next_attempt_knows_why_and_meets_no_fault_twice(void **state)
{
    (void)state;
    snprintf(launch.job.faults, sizeof(launch.job.faults), "%s",
             "shard=0,step=5,kill;rank=1,step=9,kill");
    snprintf(launch.folder, sizeof(launch.folder), "/tmp/there");
    end_workers(EXITED(EXIT_LOST));
    end(0, 9);
    restart_begin(&launch, "it was killed");
    assert_string_equal(launch.restart_reason, "it was killed");
    assert_string_equal(launch.job.faults, "rank=1,step=9,kill");
    assert_string_equal(launch.folder, "/tmp/there"); // it has the checkpoints
    assert_int_equal(launch.attempts, 1);
    assert_int_equal(launch.restarts, 1);
}

static void a_ring_gets_its_coordinator_back(void **state)
{
    (void)state;
    launch.job.mode = mode_of("ring");
    launch.job.servers = 0;
    launch.job.outlast = 60;
    snprintf(launch.job.model, sizeof(launch.job.model), "lenet5");
    snprintf(launch.endpoint, sizeof(launch.endpoint), "tcp://10.0.0.1:5555");
    assert_false(restart_may_return(&launch)); // it runs
    end(0, 9);
    assert_true(restart_may_return(&launch));
    restart_begin_return(&launch, "it was killed");
    assert_int_equal(launch.restarts, 1);
    assert_int_equal(launch.returns, 1);
    assert_int_equal(launch.attempts, 0);
    assert_string_equal(launch.restart_reason, "it was killed");
    launch.members.list[0].result = EXITED(EXIT_FAILED); // it would fail again
    assert_false(restart_may_return(&launch));
    launch.members.list[0].result = 9;
    launch.members.list[0].is_lost = true; // nobody listens where it was
    assert_false(restart_may_return(&launch));
    launch.members.list[0].is_lost = false;
    launch.restarts = 2;
    assert_false(restart_may_return(&launch));
    launch.restarts = 1;
    end_workers(EXITED(EXIT_LOST));
    assert_false(restart_may_return(&launch));
}

static void a_return_in_vain_counts_like_any_other(void **state)
{
    (void)state;
    launch.restarts = 1;
    launch.returns = 1;
    options.restarts = 1;
    end_workers(EXITED(EXIT_LOST)); // before they trained
    end(0, EXITED(EXIT_LOST));
    assert_false(restart_may_follow(&launch));
    options.restarts = 2;
    assert_true(restart_may_follow(&launch));
    restart_begin(&launch, "nobody trained");
    assert_int_equal(launch.restarts, 2);
    assert_int_equal(launch.returns, 0);
}

static void members_of_servers_get_their_coordinator_back_without_its_fault(void **state)
{
    (void)state;
    launch.job.outlast = 60;
    snprintf(launch.job.faults, sizeof(launch.job.faults), "%s",
             "shard=0,step=5,kill;rank=1,step=9,kill");
    snprintf(launch.endpoint, sizeof(launch.endpoint), "tcp://10.0.0.1:5555");
    end(0, 9);
    assert_true(restart_may_return(&launch));
    restart_begin_return(&launch, "it was killed");
    assert_string_equal(launch.job.faults, "rank=1,step=9,kill");
    launch.job.outlast = 0;
    launch.restarts = 0;
    assert_false(restart_may_return(&launch));
}

static void a_coordinator_that_stands_still_for_too_long_is_killed(void **state)
{
    (void)state;
    struct member *coordinator = &launch.members.list[0];
    launch.job.outlast = 60;
    launch.job.lost_after = 5;
    assert_true(restart_end_silent(&launch) == UINT64_MAX);
    coordinator->stopped = SIGSTOP;
    coordinator->stopped_ms = clock_now_ms();
    assert_int_equal(restart_end_silent(&launch), coordinator->stopped_ms + 11000);
    options.restarts = 0; // nobody would take its place
    assert_true(restart_end_silent(&launch) == UINT64_MAX);
    options.restarts = 2;
    launch.job.outlast = 0; // nobody waits
    assert_true(restart_end_silent(&launch) == UINT64_MAX);
    launch.job.outlast = 60;
    coordinator->stopped_ms -= 12000;
    links[0].state = HOST_LINK_LOST; // which takes no commands
    launch.members.crew = &launcher.crew;
    assert_true(restart_end_silent(&launch) == UINT64_MAX);
    assert_int_equal(coordinator->stopped, 0);
}

/* Its signs of life come by the link to its host. */
static void a_coordinator_that_hangs_is_killed_when_others_have_missed_it(void **state)
{
    (void)state;
    struct member *coordinator = &launch.members.list[0];
    char reason[200];
    uint64_t now_ms = clock_now_ms();
    launch.job.outlast = 60;
    launch.members.crew = &launcher.crew;
    links[0].is_local = true;
    coordinator->patience_ms = 7000; // as it says itself: its host is crowded
    coordinator->alive_ms = now_ms;
    assert_int_equal(restart_end_silent(&launch), now_ms + 8000);
    options.restarts = 0; // nobody would take its place
    assert_true(restart_end_silent(&launch) == UINT64_MAX);
    options.restarts = 2;
    coordinator->alive_ms = now_ms - 9000;
    links[0].is_local = false;
    links[0].heard_ms = now_ms - 8500; // it is the network that is silent
    assert_true(restart_end_silent(&launch) > now_ms);
    assert_true(coordinator->alive_ms > 0);
    links[0].heard_ms = now_ms - 500;
    links[0].state = HOST_LINK_LOST; // which takes no commands
    assert_true(restart_end_silent(&launch) == UINT64_MAX);
    assert_int_equal(coordinator->alive_ms, 0);
    restart_explain_end(&launch, reason, sizeof(reason));
    assert_string_equal(reason,
                        "the coordinator has given no sign of life for 8.5 s, and was killed");
    restart_begin_return(&launch, reason);
    assert_string_equal(launch.why_ended, "");
}

static void a_launcher_that_was_stopped_itself_has_heard_nothing_meanwhile(void **state)
{
    (void)state;
    struct member *coordinator = &launch.members.list[0];
    launch.job.outlast = 60;
    launch.job.lost_after = 5;
    links[0].is_local = true;
    coordinator->alive_ms = clock_now_ms() - 30000;
    launch.attention.looked_ms = clock_now_ms() - 29000;
    assert_true(restart_end_silent(&launch) < UINT64_MAX);
    assert_true(coordinator->alive_ms > 0);
}

static void a_folder_is_lost_with_its_host(void **state)
{
    (void)state;
    snprintf(launch.folder, sizeof(launch.folder), "/tmp/there");
    end_workers(EXITED(EXIT_LOST));
    end(0, 0);
    launch.members.list[0].is_lost = true;
    restart_begin(&launch, "it was lost with b");
    assert_string_equal(launch.folder, "");
}

static void a_worker_comes_back_where_it_was(void **state)
{
    (void)state;
    end(2, 9);
    restart_plan_worker(&launch, &launch.members.list[2]);
    assert_true(restart_is_planned(&launch));
    assert_int_equal(launch.placement.host_of_worker[1], 0);
}

static void a_worker_of_a_lost_host_gets_a_free_slot(void **state)
{
    (void)state;
    struct member *worker = &launch.members.list[2]; // of the first host
    end(2, 0);
    worker->is_lost = true;
    links[0].state = HOST_LINK_LOST;
    restart_plan_worker(&launch, worker);
    assert_true(restart_is_planned(&launch));
    assert_int_equal(launch.placement.host_of_worker[1], 1);
    assert_int_equal(launch.placement.local_rank[1], 1);
    assert_int_equal(launch.placement.local_size[1], 2);
    struct member *other = &launch.members.list[1]; // there is no slot for it
    end(1, 0);
    other->is_lost = true;
    restart_plan_worker(&launch, other);
    assert_int_equal(other->restart_ms, 0);
}

static void no_worker_is_started_for_a_job_that_fails(void **state)
{
    (void)state;
    launch.job.min_workers = 3;
    end(2, 9);
    restart_plan_worker(&launch, &launch.members.list[2]);
    assert_false(restart_is_planned(&launch));
}

static void a_worker_that_has_failed_would_do_so_again(void **state)
{
    (void)state;
    end(2, EXITED(EXIT_FAILED));
    restart_plan_worker(&launch, &launch.members.list[2]);
    assert_false(restart_is_planned(&launch));
    launch.members.list[2].result = EXITED(EXIT_LOST); // the coordinator, say
    restart_plan_worker(&launch, &launch.members.list[2]);
    assert_true(restart_is_planned(&launch));
}

static void planned_workers_count(void **state)
{
    (void)state;
    uint64_t before_ms = clock_now_ms();
    for (size_t i = 1; i < 4; i++) {
        end(i, 9);
        restart_plan_worker(&launch, &launch.members.list[i]);
    }
    assert_int_equal(launch.members.list[3].restart_ms, 0);
    uint64_t first_ms = launch.members.list[1].restart_ms; // by then the coordinator knows
    assert_true(first_ms >= before_ms + 500 && launch.members.list[2].restart_ms >= first_ms + 500);
}

/* The coordinator has been told that a member was killed, which would end the job. */
static struct member *lose(size_t index, const char *name)
{
    struct member *member = &launch.members.list[index];
    snprintf(member->name, sizeof(member->name), "%s", name);
    end(index, 9);
    member->is_noted = launch.is_certain = true;
    snprintf(launch.cause, sizeof(launch.cause), "%s was killed", name);
    launch.deadline_ms = 1;
    return member;
}

static void who_is_awaited_is_started_again_and_the_job_is_as_before(void **state)
{
    (void)state;
    struct member *lost = lose(2, "worker 1"), *other = &launch.members.list[3];
    assert_true(restart_find_place(&launch, lost));
    end(3, EXITED(EXIT_FAILED));
    other->is_noted = true; // as what follows from the loss
    assert_false(restart_take_answer(&launch, "ipc://somewhere"));
    assert_true(restart_take_answer(&launch, "await worker 7") && !restart_is_planned(&launch));
    assert_true(restart_take_answer(&launch, "await worker 1"));
    assert_true(lost->restart_ms > 0 && lost->is_noted);
    assert_false(launch.is_certain || launch.cause[0] != '\0' || other->is_noted);
    assert_int_equal(launch.deadline_ms, 0);
}

/* Answers may come before the launcher looks at anything else. */
static void each_of_all_workers_is_awaited_once_and_none_when_the_job_ends(void **state)
{
    (void)state;
    options.restarts = 3;
    struct member *first = lose(1, "worker 0"), *second = lose(2, "worker 1"),
                  *third = lose(3, "worker 2");
    assert_true(restart_take_answer(&launch, "await worker 0"));
    assert_true(restart_take_answer(&launch, "await worker 1"));
    assert_true(restart_find_place(&launch, third));
    assert_true(restart_take_answer(&launch, "await worker 2"));
    // Whoever is looked at again would be one more than may be started.
    assert_true(first->is_noted && second->is_noted && third->is_noted);
    assert_true(restart_take_answer(&launch, "ending"));
    assert_false(restart_is_planned(&launch) || restart_find_place(&launch, first));
}

/* The one before may have been killed before it heard of the server. */
static void before_the_start_a_server_is_lost_with_the_coordinator(void **state)
{
    (void)state;
    launch.job.outlast = 60;
    launch.placement.server_count = launch.placement.worker_count = 2;
    snprintf(launch.endpoint, sizeof(launch.endpoint), "tcp://10.0.0.1:5555");
    struct member *server = lose(1, "server 1");
    end(0, 9);
    assert_true(restart_may_return(&launch)); // though it ends the job if nobody answers
    options.restarts = 1;                     // does not suffice for both, but for the whole job
    assert_false(restart_may_return(&launch));
    options.restarts = 2;
    restart_begin_return(&launch, "it was killed");
    assert_false(server->is_noted || launch.is_certain || launch.cause[0] != '\0');
    launch.members.list[0].is_over = false; // it is there again
    assert_true(restart_find_place(&launch, server));
    server->is_noted = true;
    assert_true(restart_take_answer(&launch, "training") && launch.has_begun);
    assert_true(restart_take_answer(&launch, "renewed 0") && server->is_settled);
}

static void what_the_others_do_depends_on_whether_the_job_has_begun(void **state)
{
    (void)state;
    launch.job.mode = mode_of("ring");
    launch.job.servers = 0;
    launch.job.outlast = 60;
    snprintf(launch.job.model, sizeof(launch.job.model), "external:mine");
    snprintf(launch.endpoint, sizeof(launch.endpoint), "tcp://10.0.0.1:5555");
    end(0, 9);
    assert_string_equal(restart_others_do(&launch), "the others, which have not begun, join it");
    assert_false(restart_may_return(&launch)); // a program has nothing to go on from
    assert_true(restart_take_answer(&launch, "training"));
    assert_true(restart_may_return(&launch));
    assert_string_equal(restart_others_do(&launch), "training goes on");
    restart_begin(&launch, "it was killed"); // the whole job
    assert_false(launch.has_begun);
}

static void a_server_is_awaited_as_a_worker_is(void **state)
{
    (void)state;
    launch.placement.server_count = 2; // and two workers
    launch.placement.worker_count = 2;
    struct member *lost = lose(1, "server 1");
    assert_true(restart_find_place(&launch, lost));
    assert_true(restart_take_answer(&launch, "await server 1"));
    assert_true(lost->restart_ms > 0);
    lost->restart_ms = 0;
    lost->is_lost = true; // with its host, and its shard has no other place
    assert_false(restart_find_place(&launch, lost));
}

static void nobody_is_replaced_beyond_the_count_or_after_the_coordinator(void **state)
{
    (void)state;
    struct member *lost = lose(2, "worker 1");
    launch.restarts = 2;
    assert_false(restart_find_place(&launch, lost));
    launch.restarts = 0;
    launch.interrupts = 1;
    assert_false(restart_find_place(&launch, lost));
    assert_true(restart_take_answer(&launch, "await worker 1") && !restart_is_planned(&launch));
    launch.interrupts = 0;
    end(0, 9);
    assert_false(restart_find_place(&launch, lost));
}

#define RESTART_TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        RESTART_TEST(a_job_whose_coordinator_is_killed_is_started_again),
        RESTART_TEST(a_coordinator_that_has_lost_somebody_says_so),
        RESTART_TEST(nobody_of_the_attempt_before_may_be_left),
        RESTART_TEST(a_ring_gets_its_coordinator_back),
        RESTART_TEST(a_return_in_vain_counts_like_any_other),
        RESTART_TEST(before_the_start_a_server_is_lost_with_the_coordinator),
        RESTART_TEST(what_the_others_do_depends_on_whether_the_job_has_begun),
        RESTART_TEST(members_of_servers_get_their_coordinator_back_without_its_fault),
        RESTART_TEST(an_interrupted_job_is_not_started_again),
        RESTART_TEST(restarts_are_counted_and_those_that_follow_quickly_have_longer_pauses),
        RESTART_TEST(the_next_attempt_knows_why_and_meets_no_fault_twice),
        RESTART_TEST(a_coordinator_that_stands_still_for_too_long_is_killed),
        RESTART_TEST(a_coordinator_that_hangs_is_killed_when_others_have_missed_it),
        RESTART_TEST(a_launcher_that_was_stopped_itself_has_heard_nothing_meanwhile),
        RESTART_TEST(a_folder_is_lost_with_its_host),
        RESTART_TEST(a_worker_comes_back_where_it_was),
        RESTART_TEST(a_worker_of_a_lost_host_gets_a_free_slot),
        RESTART_TEST(no_worker_is_started_for_a_job_that_fails),
        RESTART_TEST(a_worker_that_has_failed_would_do_so_again),
        RESTART_TEST(planned_workers_count),
        RESTART_TEST(who_is_awaited_is_started_again_and_the_job_is_as_before),
        RESTART_TEST(each_of_all_workers_is_awaited_once_and_none_when_the_job_ends),
        RESTART_TEST(a_server_is_awaited_as_a_worker_is),
        RESTART_TEST(nobody_is_replaced_beyond_the_count_or_after_the_coordinator),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
