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
    struct job job = {.workers = workers, .mode = "ring", .switches = "none", .compress = "none"};
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

static struct topology begun(const struct job *job, const uint64_t *hosts, bool *ret_needs_trial)
{
    struct membership membership;
    struct topology topology;
    gather(&membership, job, hosts);
    topology_begin(job, &membership, &topology, ret_needs_trial);
    membership_finish(&membership);
    return topology;
}

static void expect(const struct job *job, const uint64_t *hosts, enum all_reduce algorithm,
                   bool needs_trial)
{
    bool needs;
    assert_int_equal(begun(job, hosts, &needs).all_reduce, algorithm);
    assert_int_equal(needs, needs_trial);
}

static void workers_of_one_host_that_may_share_memory_try_to(void **state)
{
    (void)state;
    const uint64_t one[] = {7, 7, 7}, two[] = {7, 7, 8};
    const struct job automatic = job_of("auto", "auto", 3), shm = job_of("auto", "shm", 3);
    const struct job tcp = job_of("auto", "tcp", 3), ipc = job_of("auto", "ipc", 3);
    expect(&automatic, one, ALL_REDUCE_SHARED, true);
    expect(&shm, one, ALL_REDUCE_SHARED, true);
    expect(&automatic, two, ALL_REDUCE_DIRECT, true);
    expect(&tcp, one, ALL_REDUCE_DIRECT, true);
    expect(&ipc, one, ALL_REDUCE_DIRECT, true);
}

static void what_was_asked_for_is_done(void **state)
{
    (void)state;
    const uint64_t one[] = {7, 7}, two[] = {7, 8};
    const struct job ring = job_of("ring", "auto", 2), direct = job_of("direct", "auto", 2);
    expect(&ring, one, ALL_REDUCE_RING, false);
    expect(&direct, one, ALL_REDUCE_SHARED, true);
    expect(&direct, two, ALL_REDUCE_DIRECT, false);
    bool needs_trial;
    assert_true(begun(&direct, two, &needs_trial).direct_floats_max == UINT64_MAX);
}

static struct message found(enum status refusal, uint64_t latency_ns, uint64_t bandwidth)
{
    return (struct message){
        .kind = MESSAGE_TRIED, .reason = refusal, .latency_ns = latency_ns, .bandwidth = bandwidth};
}

static void what_is_compressed_is_sent_also_on_one_host(void **state)
{
    (void)state;
    const uint64_t one[] = {7, 7};
    const char *const transports[] = {"auto", "shm"};
    for (size_t i = 0; i < 2; i++) {
        struct job job = job_of("auto", transports[i], 2);
        snprintf(job.compress, sizeof(job.compress), "int8");
        bool needs_trial;
        struct topology topology = begun(&job, one, &needs_trial);
        const struct message can = found(STATUS_OK, 1000, 4000000000);
        assert_int_equal(topology.all_reduce, ALL_REDUCE_DIRECT);
        assert_true(needs_trial);
        topology_note(&topology, 0, &can);
        assert_int_equal(topology_decide(&job, &topology), STATUS_OK);
        assert_int_equal(topology.all_reduce, ALL_REDUCE_DIRECT);
    }
}

static void alone_or_too_many_they_take_the_ring(void **state)
{
    (void)state;
    const struct job alone = job_of("auto", "auto", 1);
    const struct job many = job_of("auto", "tcp", ALL_REDUCE_DIRECT_MAX + 1);
    const struct job most = job_of("auto", "tcp", ALL_REDUCE_DIRECT_MAX);
    const struct job asked = job_of("direct", "tcp", ALL_REDUCE_DIRECT_MAX + 1);
    const struct job near_many = job_of("auto", "auto", ALL_REDUCE_SHARED_MAX + 1);
    const struct job near_most = job_of("auto", "auto", ALL_REDUCE_SHARED_MAX);
    expect(&alone, NULL, ALL_REDUCE_RING, false);
    expect(&many, NULL, ALL_REDUCE_RING, false);
    expect(&most, NULL, ALL_REDUCE_DIRECT, true);
    expect(&asked, NULL, ALL_REDUCE_DIRECT, false);
    expect(&near_many, NULL, ALL_REDUCE_RING, false);
    expect(&near_most, NULL, ALL_REDUCE_SHARED, true);
}

/* The slowest link counts: the ring waits for it in every round. */
static void small_buckets_go_direct_by_the_slowest_link(void **state)
{
    (void)state;
    const uint64_t two[] = {7, 8};
    const struct job job = job_of("auto", "auto", 2);
    bool needs_trial;
    struct topology topology = begun(&job, two, &needs_trial);
    const struct message near = found(STATUS_OK, 1000, 4000000000);
    const struct message far = found(STATUS_OK, 200000, 100000000);
    topology_note(&topology, 0, &near);
    topology_note(&topology, 0, &far);
    topology_note(&topology, 0, &near);
    assert_int_equal(topology_decide(&job, &topology), STATUS_OK);
    assert_int_equal(topology.all_reduce, ALL_REDUCE_DIRECT);
    // Ten times two times 200 us at 100 MB/s.
    assert_int_equal(topology.direct_floats_max, 400000 / sizeof(float));
    char text[128];
    topology_describe(&topology, text, sizeof(text));
    assert_string_equal(text, "direct up to 0.38 MiB, ring above (200 us, 100 MB/s)");
}

static void memory_is_shared_by_all_or_by_nobody(void **state)
{
    (void)state;
    const uint64_t one[] = {7, 7};
    const char *const transports[] = {"auto", "shm"};
    for (size_t i = 0; i < 2; i++) {
        const struct job job = job_of("auto", transports[i], 2);
        bool needs_trial;
        struct topology good = begun(&job, one, &needs_trial), bad = good;
        const struct message can = found(STATUS_OK, 1000, 4000000000);
        const struct message cannot = found(STATUS_UNREACHABLE, 1000, 4000000000);
        topology_note(&good, 0, &can);
        topology_note(&good, 1, &can);
        assert_int_equal(topology_decide(&job, &good), STATUS_OK);
        assert_int_equal(good.all_reduce, ALL_REDUCE_SHARED);
        topology_note(&bad, 0, &cannot);
        topology_note(&bad, 1, &can);
        assert_int_equal(topology_decide(&job, &bad), i == 0 ? STATUS_OK : STATUS_UNREACHABLE);
        assert_true(bad.all_reduce == (i == 0 ? ALL_REDUCE_DIRECT : ALL_REDUCE_SHARED));
    }
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
        cmocka_unit_test(workers_of_one_host_that_may_share_memory_try_to),
        cmocka_unit_test(what_was_asked_for_is_done),
        cmocka_unit_test(what_is_compressed_is_sent_also_on_one_host),
        cmocka_unit_test(small_buckets_go_direct_by_the_slowest_link),
        cmocka_unit_test(memory_is_shared_by_all_or_by_nobody),
        cmocka_unit_test(alone_or_too_many_they_take_the_ring),
        cmocka_unit_test(a_ring_hears_of_the_next_and_direct_of_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
