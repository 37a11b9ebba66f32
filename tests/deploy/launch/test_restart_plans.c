/* Tests of what becomes of planned restarts when the coordinator takes one. */
#include "common/base/clock.h"
#include "common/job/job_options.h"
#include "deploy/launch/restart.h"
#include "deploy/launch/restart_plans.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A ring of a coordinator and three workers, of which two were killed and are planned. */
static struct launcher launcher;
static struct host_link host;
static struct launch_options options;
static struct launch launch;

static void begin(uint32_t restarts)
{
    const struct option_set set = job_option_set(&launch.job);
    memset(&launcher, 0, sizeof(launcher));
    memset(&launch, 0, sizeof(launch));
    options_reset(&set);
    launch.job.workers = 3;
    launch.job.min_workers = 1;
    options = (struct launch_options){.job = &launch.job, .restarts = restarts};
    launcher.hosts = (struct hosts){.list = {{"a", 3, true}}, .count = 1};
    launcher.crew = (struct crew){.links = &host, .count = 1};
    host.state = HOST_LINK_UP;
    launch.launcher = &launcher;
    launch.options = &options;
    launch.has_begun = true;
    launch.placement = (struct placement){
        .worker_count = 3, .server_count = 1, .local_rank = {0, 1, 2}, .local_size = {3}};
    launch.members = (struct members){.list = calloc(4, sizeof(struct member)), .count = 4};
    assert_non_null(launch.members.list);
    for (size_t i = 0; i < 4; i++) {
        launch.members.list[i] = (struct member){.is_started = true, .log_fd = -1};
    }
    for (size_t i = 1; i < 3; i++) {
        struct member *member = &launch.members.list[i];
        member->is_over = member->is_noted = true;
        member->result = 9;
        restart_plan_worker(&launch, member);
    }
}

static uint32_t count_planned(void)
{
    uint32_t count = 0;
    for (size_t i = 1; i < 4; i++) {
        count += launch.members.list[i].restart_ms > 0;
    }
    return count;
}

static void the_coordinator_comes_first_where_restarts_do_not_suffice(void **state)
{
    (void)state;
    for (uint32_t restarts = 1; restarts <= 3; restarts++) {
        begin(restarts);
        assert_int_equal(count_planned(), restarts < 2 ? restarts : 2);
        restart_begin_return(&launch, "it was killed");
        assert_int_equal(count_planned(), restarts - 1);
        assert_int_equal(launch.restarts, 1);
        launch.members.list[0].is_over = false; // it is there again, and is told of both
        for (size_t i = 1; i < 3; i++) {
            assert_false(launch.members.list[i].is_noted);
        }
        members_finish(&launch.members);
    }
}

/* It has waited for its place already, and --restarts does not count it. */
static void a_worker_that_joins_for_a_fault_is_started_whatever_the_count(void **state)
{
    (void)state;
    begin(1);
    launch.members.list[1].is_replacement = true;
    launch.replacements = 1;
    restart_begin_return(&launch, "it was killed");
    assert_int_equal(count_planned(), 1);
    assert_int_equal(launch.replacements, 1);
    members_finish(&launch.members);
}

/* The coordinator was killed with the first two workers, is there again, and waits for both. */
static void begin_return_with_two(void)
{
    begin(9);
    restart_begin_return(&launch, "it was killed");
    launch.members.list[0].launch = 20;
    for (size_t i = 1; i < 3; i++) {
        struct member *member = &launch.members.list[i];
        snprintf(member->name, sizeof(member->name), "worker %zu", i - 1);
        member->launch = 10 + (uint32_t)i;
        assert_true(restart_find_place(&launch, member));
        restart_plan_worker(&launch, member);
    }
    assert_true(restart_take_answer(&launch, "await worker 0"));
    assert_true(restart_take_answer(&launch, "await worker 1"));
}

static void those_lost_with_the_coordinator_are_started_at_once_when_they_are_awaited(void **state)
{
    (void)state;
    begin_return_with_two();
    for (size_t i = 1; i < 3; i++) {
        uint64_t restart_ms = launch.members.list[i].restart_ms;
        assert_true(restart_ms > 0 && restart_ms <= clock_now_ms());
    }
    members_finish(&launch.members);
}

static void so_are_those_lost_with_it_before_the_job_begins(void **state)
{
    (void)state;
    begin(9);
    struct member *member = &launch.members.list[1];
    member->restart_ms = 0;
    snprintf(member->name, sizeof(member->name), "worker 0");
    member->launch = 10;
    launch.has_begun = false;
    restart_begin_return(&launch, "it was killed");
    launch.members.list[0].launch = 20;
    assert_true(restart_take_answer(&launch, "await worker 0"));
    assert_true(member->restart_ms > 0 && member->restart_ms <= clock_now_ms());
    members_finish(&launch.members);
}

static void what_was_lost_with_the_coordinator_is_one_loss(void **state)
{
    (void)state;
    char when[RESTART_WHEN_BYTES];
    begin_return_with_two();
    for (size_t i = 1; i < 3; i++) {
        restart_plans_note_member(&launch, &launch.members.list[i]);
    }
    assert_int_equal(restart_delay_ms(&launch, when), 500); // as after the coordinator alone
    members_finish(&launch.members);
}

static void one_that_dies_again_while_members_come_back_has_a_longer_pause_each_time(void **state)
{
    (void)state;
    begin_return_with_two();
    struct member *member = &launch.members.list[1];
    launch.members.list[2].restart_ms = 0; // it runs
    uint64_t least_ms = 500;
    for (uint32_t start = 30; start < 36; start++) {
        member->launch = start;
        member->restart_ms = 0;
        uint64_t now_ms = clock_now_ms();
        restart_plan_worker(&launch, member);
        assert_true(restart_take_answer(&launch, "await worker 0"));
        assert_true(member->restart_ms >= now_ms + least_ms);
        restart_plans_note_member(&launch, member);
        least_ms *= 2;
    }
    members_finish(&launch.members);
}

static void one_that_is_lost_later_is_a_loss_of_its_own(void **state)
{
    (void)state;
    begin_return_with_two();
    assert_true(restart_take_answer(&launch, "training")); // all are back
    struct member *member = &launch.members.list[3];
    member->launch = 13;
    member->is_over = true;
    member->result = 9;
    assert_false(restart_plans_are_one_loss(&launch, member));
    members_finish(&launch.members);
}

static void a_plan_does_not_follow_itself(void **state)
{
    (void)state;
    begin(9);
    struct member *member = &launch.members.list[1];
    uint64_t restart_ms = member->restart_ms;
    assert_int_equal(restart_plans_before(&launch, member), 1); // the other one
    restart_plan_worker(&launch, member);                       // told to another coordinator
    assert_true(member->restart_ms == restart_ms);
    members_finish(&launch.members);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_coordinator_comes_first_where_restarts_do_not_suffice),
        cmocka_unit_test(a_worker_that_joins_for_a_fault_is_started_whatever_the_count),
        cmocka_unit_test(those_lost_with_the_coordinator_are_started_at_once_when_they_are_awaited),
        cmocka_unit_test(so_are_those_lost_with_it_before_the_job_begins),
        cmocka_unit_test(what_was_lost_with_the_coordinator_is_one_loss),
        cmocka_unit_test(one_that_dies_again_while_members_come_back_has_a_longer_pause_each_time),
        cmocka_unit_test(one_that_is_lost_later_is_a_loss_of_its_own),
        cmocka_unit_test(a_plan_does_not_follow_itself),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
