/* Tests of who runs where, and who connects to whom. */
#include "common/job/job_options.h"
#include "deploy/hosts/placement.h"
#include "tests/support/common/choices.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdio.h>
#include <string.h>

static struct hosts hosts;
static struct placement placement;
static char error[OPTION_ERROR_BYTES];

static struct job *make_job(const char *mode, uint32_t workers, uint32_t servers)
{
    static struct job job;
    const struct option_set set = job_option_set(&job);
    options_reset(&set);
    job.mode = mode_of(mode);
    job.workers = workers;
    job.servers = servers;
    return &job;
}

static void place(const char *list, const struct job *job, size_t coordinator)
{
    hosts.count = 0;
    assert_int_equal(hosts_parse(&hosts, list, error), STATUS_OK);
    assert_int_equal(placement_make(&hosts, job, coordinator, &placement, error), STATUS_OK);
}

static void ranks_are_dealt_host_by_host(void **state)
{
    (void)state;
    static const size_t host_of[] = {0, 0, 1, 1, 1, 2};
    static const uint32_t local[] = {0, 1, 0, 1, 2, 0};
    place("a:2,b:3,c:2", make_job("ring", 6, 0), 0);
    for (uint32_t i = 0; i < 6; i++) {
        assert_int_equal(placement.host_of_worker[i], host_of[i]);
        assert_int_equal(placement.local_rank[i], local[i]);
    }
    assert_int_equal(placement.local_size[1], 3);
    assert_int_equal(placement.local_size[2], 1);
    assert_int_equal(placement.server_count, 1);
    assert_true(placement_uses(&placement, 2));
    place("a:6,b", make_job("ring", 6, 0), 0);
    assert_false(placement_uses(&placement, 1));
}

static void servers_are_where_they_would_be_with_the_coordinator(void **state)
{
    (void)state;
    struct job *job = make_job("ps-sync", 3, 3);
    job->coordinator_role = COORDINATOR_APART;
    place("a:2,b:2,c:2", job, 1);
    assert_int_equal(placement.server_count, 4);
    static const size_t expected[] = {1, 1, 2, 0};
    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(placement.host_of_server[i], expected[i]);
    }
}

static void hosts_that_are_away_take_nobody(void **state)
{
    (void)state;
    const struct job *job = make_job("ps-sync", 3, 3);
    place("a:2,b:2,c:2", job, 1);
    hosts.list[1].is_away = true;
    assert_int_equal(hosts_slots(&hosts), 4);
    assert_int_equal(placement_make(&hosts, job, 1, &placement, error), STATUS_OK);
    assert_int_equal(placement.host_of_worker[2], 2);
    assert_int_equal(placement.local_rank[2], 0);
    assert_int_equal(placement.host_of_server[0], 2);
    assert_int_equal(placement.host_of_server[1], 0);
    assert_int_equal(placement.host_of_server[2], 2);
    hosts.list[2].is_away = true;
    assert_int_equal(placement_make(&hosts, job, 1, &placement, error), STATUS_INVALID);
}

static void servers_go_round_the_hosts_from_the_coordinator_on(void **state)
{
    (void)state;
    static const size_t host_of[] = {1, 2, 0, 1};
    place("a,b,c", make_job("ps-sync", 3, 4), 1);
    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(placement.host_of_server[i], host_of[i]);
    }
}

static void more_workers_than_slots_are_refused_with_both_numbers(void **state)
{
    (void)state;
    hosts.count = 0;
    assert_int_equal(hosts_parse(&hosts, "a:2,b", error), STATUS_OK);
    assert_int_equal(placement_make(&hosts, make_job("ring", 4, 0), 0, &placement, error),
                     STATUS_INVALID);
    assert_non_null(strstr(error, "4 workers"));
    assert_non_null(strstr(error, "3 slots"));
}

static void check_pairs(const struct job *job, const char *expected)
{
    char pairs[64] = "";
    size_t used = 0;
    for (size_t from = 0; from < hosts.count; from++) {
        for (size_t to = 0; to < hosts.count; to++) {
            if (placement_connects(&placement, job, from, to)) {
                used += (size_t)snprintf(pairs + used, sizeof(pairs) - used, "%s%s%s",
                                         used > 0 ? " " : "", hosts.list[from].name,
                                         hosts.list[to].name);
            }
        }
    }
    assert_string_equal(pairs, expected);
}

static void everybody_connects_to_the_coordinator_and_to_whom_the_mode_says(void **state)
{
    (void)state;
    struct job *job = make_job("ps-sync", 3, 2);
    place("a,b,c,d", job, 0);
    check_pairs(job, "ab ba ca cb");
    job = make_job("ring", 4, 0);
    place("a,b,c,d", job, 0);
    check_pairs(job, "ab ac ad ba bc bd ca cb cd da db dc"); // small buckets go directly
    job->all_reduce = ALL_REDUCE_CHOICE_RING;
    check_pairs(job, "ab ba bc ca cd da");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_are_dealt_host_by_host),
        cmocka_unit_test(servers_are_where_they_would_be_with_the_coordinator),
        cmocka_unit_test(hosts_that_are_away_take_nobody),
        cmocka_unit_test(servers_go_round_the_hosts_from_the_coordinator_on),
        cmocka_unit_test(more_workers_than_slots_are_refused_with_both_numbers),
        cmocka_unit_test(everybody_connects_to_the_coordinator_and_to_whom_the_mode_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
