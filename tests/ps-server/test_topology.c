/* Tests of what a START says: which algorithm, and whose places. */
#include "ps-server/topology.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdio.h>

static struct job job_of(const char *all_reduce, const char *transport, uint32_t workers)
{
    struct job job = {.workers = workers, .mode = "ring", .switches = "none"};
    snprintf(job.all_reduce, sizeof(job.all_reduce), "%s", all_reduce);
    snprintf(job.transport, sizeof(job.transport), "%s", transport);
    return job;
}

/* Members on the hosts of these numbers. */
static void gather(struct membership *membership, const struct job *job, const uint64_t *hosts)
{
    assert_int_equal(membership_init(membership, job->workers, job->servers), STATUS_OK);
    for (uint32_t i = 0; i < job->workers; i++) {
        membership->workers[i].host_id = hosts != NULL ? hosts[i] : 1;
        snprintf(membership->workers[i].place, sizeof(membership->workers[i].place), "worker-%u",
                 i);
    }
    for (uint32_t i = 0; i < job->servers; i++) {
        snprintf(membership->servers[i].place, sizeof(membership->servers[i].place), "server-%u",
                 i);
    }
}

static enum all_reduce chosen(const struct job *job, const uint64_t *hosts)
{
    struct membership membership;
    gather(&membership, job, hosts);
    enum all_reduce algorithm = topology_choose(job, &membership);
    membership_finish(&membership);
    return algorithm;
}

static void workers_of_one_host_that_may_share_memory_go_direct(void **state)
{
    (void)state;
    const uint64_t one[] = {7, 7, 7}, two[] = {7, 7, 8};
    const struct job automatic = job_of("auto", "auto", 3), shm = job_of("auto", "shm", 3);
    const struct job tcp = job_of("auto", "tcp", 3), ipc = job_of("auto", "ipc", 3);
    assert_int_equal(chosen(&automatic, one), ALL_REDUCE_DIRECT);
    assert_int_equal(chosen(&shm, one), ALL_REDUCE_DIRECT);
    assert_int_equal(chosen(&automatic, two), ALL_REDUCE_RING);
    assert_int_equal(chosen(&tcp, one), ALL_REDUCE_RING);
    assert_int_equal(chosen(&ipc, one), ALL_REDUCE_RING);
}

static void what_was_asked_for_is_chosen(void **state)
{
    (void)state;
    const uint64_t one[] = {7, 7}, two[] = {7, 8};
    const struct job ring = job_of("ring", "auto", 2), direct = job_of("direct", "auto", 2);
    assert_int_equal(chosen(&ring, one), ALL_REDUCE_RING);
    assert_int_equal(chosen(&direct, two), ALL_REDUCE_DIRECT); // they will find out
}

static void alone_or_too_many_they_take_the_ring(void **state)
{
    (void)state;
    const struct job alone = job_of("auto", "auto", 1);
    const struct job many = job_of("auto", "auto", ALL_REDUCE_DIRECT_MAX + 1);
    const struct job most = job_of("auto", "auto", ALL_REDUCE_DIRECT_MAX);
    assert_int_equal(chosen(&alone, NULL), ALL_REDUCE_RING);
    assert_int_equal(chosen(&many, NULL), ALL_REDUCE_RING);
    assert_int_equal(chosen(&most, NULL), ALL_REDUCE_DIRECT);
}

static void a_ring_hears_of_the_next_and_direct_of_all(void **state)
{
    (void)state;
    struct job job = job_of("auto", "auto", 3);
    job.servers = 2;
    struct membership membership;
    gather(&membership, &job, NULL);
    char text[200];
    topology_places(&job, &membership, ALL_REDUCE_RING, 2, text, sizeof(text));
    assert_string_equal(text, "server-0\nserver-1\nworker-0\n");
    topology_places(&job, &membership, ALL_REDUCE_DIRECT, 2, text, sizeof(text));
    assert_string_equal(text, "server-0\nserver-1\nworker-0\nworker-1\nworker-2\n");
    // Half a list would be worse than none.
    topology_places(&job, &membership, ALL_REDUCE_DIRECT, 2, text, 30);
    assert_string_equal(text, "");
    snprintf(job.mode, sizeof(job.mode), "ps-sync");
    topology_places(&job, &membership, ALL_REDUCE_RING, 2, text, sizeof(text));
    assert_string_equal(text, "server-0\nserver-1\n");
    membership_finish(&membership);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(workers_of_one_host_that_may_share_memory_go_direct),
        cmocka_unit_test(what_was_asked_for_is_chosen),
        cmocka_unit_test(alone_or_too_many_they_take_the_ring),
        cmocka_unit_test(a_ring_hears_of_the_next_and_direct_of_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
