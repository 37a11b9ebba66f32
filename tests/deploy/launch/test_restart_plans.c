/* Tests of what becomes of planned restarts when the coordinator takes one. */
#include "common/job/job_options.h"
#include "deploy/launch/restart.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_coordinator_comes_first_where_restarts_do_not_suffice),
        cmocka_unit_test(a_worker_that_joins_for_a_fault_is_started_whatever_the_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
