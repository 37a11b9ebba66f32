/* Tests of what a START says: which algorithm, and whose places. */
#include "ps-server/coordinator/topology.h"
#include "tests/support/common/choices.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdio.h>

static const struct layout small = {1000, 1, {{0, 1000}}, 1};
static const struct layout larger = {100000, 1, {{0, 100000}}, 1};

static struct job job_of(const char *all_reduce, const char *transport, uint32_t workers)
{
    struct job job = {
        .workers = workers, .mode.kind = MODE_RING, .switches = "none", .bucket_mb = 1};
    job.all_reduce = choice_of(all_reduce_choices, all_reduce);
    job.transport = choice_of(transport_choices, transport);
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
    struct topology topology = {0};
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

/* Whoever is where, and without finding out anything. */
static void where_nccl_is_asked_for_no_worker_hears_of_another(void **state)
{
    (void)state;
    const uint64_t one[] = {7, 7, 7}, two[] = {7, 7, 8};
    struct job job = job_of("nccl", "auto", 3);
    expect(&job, one, ALL_REDUCE_NCCL, false);
    expect(&job, two, ALL_REDUCE_NCCL, false);
    struct membership membership;
    char text[256] = "as it was";
    gather(&membership, &job, one);
    topology_places(&job, &membership, ALL_REDUCE_NCCL, 1, text, sizeof(text));
    assert_string_equal(text, "");
    membership_finish(&membership);
    job = job_of("nccl", "auto", 1);
    expect(&job, one, ALL_REDUCE_RING, false); // nothing is added up
}

static void what_rank_0_says_of_nccl_is_kept_and_told(void **state)
{
    (void)state;
    const struct job job = job_of("nccl", "auto", 3);
    struct wire_nccl said = {
        .version = 22707, .has_id = true, .id = {3}, .has_gpu = true, .gpu = {9}};
    const struct wire_nccl other = {.version = 22707, .has_gpu = true, .gpu = {8}};
    struct membership membership;
    struct topology topology = {0};
    char text[128];
    bool needs_trial;
    gather(&membership, &job, NULL);
    topology_note_nccl(&topology, 1, &other);
    topology_note_nccl(&topology, 0, &said);
    topology_note_nccl(&topology, 2, &other);
    topology_begin(&job, &membership, &topology, &needs_trial);
    assert_true(topology.nccl.has_id && !topology.nccl.has_gpu);
    assert_memory_equal(topology.nccl.id, said.id, sizeof(said.id));
    topology_describe(&topology, text, sizeof(text));
    assert_string_equal(text, "nccl 2.27.7");
    membership_finish(&membership);
}

static void workers_of_one_host_that_may_share_memory_try_to(void **state)
{
    (void)state;
    const uint64_t one[] = {7, 7, 7}, two[] = {7, 7, 8};
    const struct job automatic = job_of("auto", "auto", 3), shm = job_of("auto", "shm", 3);
    const struct job tcp = job_of("auto", "tcp", 3), ipc = job_of("auto", "ipc", 3);
    expect(&automatic, one, ALL_REDUCE_SHARED, true);
    expect(&shm, one, ALL_REDUCE_SHARED, true);
    // Until it is known what messages take.
    expect(&automatic, two, ALL_REDUCE_RING, true);
    expect(&tcp, one, ALL_REDUCE_RING, true);
    expect(&ipc, one, ALL_REDUCE_RING, true);
}

static void what_was_asked_for_is_done(void **state)
{
    (void)state;
    const uint64_t one[] = {7, 7}, two[] = {7, 8};
    const struct job ring = job_of("ring", "auto", 2), direct = job_of("direct", "auto", 2);
    const struct job halving = job_of("halving-doubling", "auto", 2);
    expect(&ring, one, ALL_REDUCE_RING, false);
    expect(&direct, one, ALL_REDUCE_SHARED, true);
    expect(&direct, two, ALL_REDUCE_DIRECT, false);
    expect(&halving, one, ALL_REDUCE_HALVING, false);
    expect(&halving, two, ALL_REDUCE_HALVING, false);
    bool needs_trial;
    char text[128];
    struct topology topology = begun(&direct, two, &needs_trial);
    assert_int_equal(all_reduce_of_bucket(&topology.limits, UINT64_MAX), ALL_REDUCE_DIRECT);
    topology_describe(&topology, text, sizeof(text));
    assert_string_equal(text, "direct");
    topology = begun(&halving, two, &needs_trial);
    assert_int_equal(all_reduce_of_bucket(&topology.limits, UINT64_MAX), ALL_REDUCE_HALVING);
    topology_describe(&topology, text, sizeof(text));
    assert_string_equal(text, "halving-doubling");
}

static void note(struct topology *topology, uint32_t rank, enum status refusal, uint64_t latency_ns,
                 uint64_t bandwidth)
{
    const struct all_reduce_path path = {latency_ns, latency_ns / 10, bandwidth};
    const struct message tried = {.kind = MESSAGE_TRIED, .reason = refusal, .path = &path};
    topology_note(topology, rank, &tried);
}

static void what_is_compressed_is_sent_also_on_one_host(void **state)
{
    (void)state;
    const uint64_t one[] = {7, 7, 7, 7};
    const char *const transports[] = {"auto", "shm"};
    for (size_t i = 0; i < 2; i++) {
        struct job job = job_of("auto", transports[i], 4);
        job.compress.kind = CODEC_INT8;
        bool needs_trial;
        struct topology topology = begun(&job, one, &needs_trial);
        assert_int_equal(topology.all_reduce, ALL_REDUCE_RING);
        assert_true(needs_trial);
        note(&topology, 0, STATUS_OK, 1000, 4000000000);
        assert_int_equal(topology_decide(&job, &small, &topology), STATUS_OK);
        assert_int_equal(topology.all_reduce, ALL_REDUCE_DIRECT);
    }
}

static void how_many_they_are_says_what_is_possible(void **state)
{
    (void)state;
    const struct job alone = job_of("auto", "auto", 1);
    const struct job many = job_of("auto", "tcp", ALL_REDUCE_DIRECT_MAX + 1);
    const struct job most = job_of("auto", "tcp", ALL_REDUCE_DIRECT_MAX);
    const struct job asked = job_of("direct", "tcp", ALL_REDUCE_DIRECT_MAX + 1);
    const struct job near_many = job_of("auto", "auto", ALL_REDUCE_SHARED_MAX + 1);
    const struct job near_most = job_of("auto", "auto", ALL_REDUCE_SHARED_MAX);
    expect(&alone, NULL, ALL_REDUCE_RING, false);
    expect(&asked, NULL, ALL_REDUCE_DIRECT, false);
    expect(&near_many, NULL, ALL_REDUCE_RING, true);
    expect(&near_most, NULL, ALL_REDUCE_SHARED, true);
    // More than may all connect to all still have halving and doubling.
    const struct job *const jobs[] = {&most, &many};
    const enum all_reduce widest[] = {ALL_REDUCE_DIRECT, ALL_REDUCE_HALVING};
    for (size_t i = 0; i < 2; i++) {
        bool needs_trial;
        struct topology topology = begun(jobs[i], NULL, &needs_trial);
        assert_true(needs_trial);
        note(&topology, 0, STATUS_OK, 200000, 100000000);
        assert_int_equal(topology_decide(jobs[i], &larger, &topology), STATUS_OK);
        assert_int_equal(topology.all_reduce, widest[i]);
    }
}

static void note_three(struct topology *topology)
{
    note(topology, 0, STATUS_OK, 1000, 4000000000);
    note(topology, 1, STATUS_OK, 200000, 100000000);
    note(topology, 2, STATUS_OK, 1000, 4000000000);
}

/* The slowest link counts: every algorithm waits for it. */
static void all_buckets_take_what_the_slowest_link_says(void **state)
{
    (void)state;
    static const struct layout large = {8000000, 2, {{4000000, 4000000}, {0, 4000000}}, 1};
    static const struct {
        uint32_t workers;
        const struct layout *layout;
        const char *text;
    } cases[] = {
        {2, &small, "ring"}, // all three are the same
        {4, &small, "direct"},
        {4, &large, "ring"},
        {64, &small, "halving-doubling"},
        {70, &small, "halving-doubling"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct job job = job_of("auto", "tcp", cases[i].workers);
        bool needs_trial;
        struct topology topology = begun(&job, NULL, &needs_trial);
        note_three(&topology);
        assert_int_equal(topology_decide(&job, cases[i].layout, &topology), STATUS_OK);
        char text[128], expected[128];
        topology_describe(&topology, text, sizeof(text));
        snprintf(expected, sizeof(expected), "%s (200 us, 20.0 us a message, 100 MB/s)",
                 cases[i].text);
        assert_string_equal(text, expected);
    }
}

/* As many small buckets as a model of 94 MB has: rings and direct have too many messages. */
static void sizes_that_will_be_tried_have_an_algorithm_each(void **state)
{
    (void)state;
    static struct layout fine = {.bucket_count = 360};
    for (uint32_t i = fine.bucket_count; i-- > 0;) {
        fine.buckets[i] = (struct span){fine.value_count, 65536};
        fine.value_count += fine.buckets[i].count;
    }
    struct job job = job_of("auto", "tcp", 16);
    job.bucket_mb = 0; // auto
    assert_true(job_tunes_buckets(&job));
    bool needs_trial;
    struct topology topology = begun(&job, NULL, &needs_trial);
    const struct all_reduce_path path = {60000, 40000, 3125000000};
    const struct message tried = {.kind = MESSAGE_TRIED, .reason = STATUS_OK, .path = &path};
    topology_note(&topology, 0, &tried);
    assert_int_equal(topology_decide(&job, &fine, &topology), STATUS_OK);
    char text[128];
    topology_describe(&topology, text, sizeof(text));
    assert_string_equal(text, "halving-doubling up to 2.00 MiB, direct up to 32.00 MiB, "
                              "ring above (60 us, 40.0 us a message, 3125 MB/s)");
}

static void memory_is_shared_by_all_or_by_nobody(void **state)
{
    (void)state;
    const uint64_t one[] = {7, 7, 7};
    const char *const transports[] = {"auto", "shm"};
    for (size_t i = 0; i < 2; i++) {
        const struct job job = job_of("auto", transports[i], 3);
        bool needs_trial;
        struct topology good = begun(&job, one, &needs_trial), bad = good;
        note(&good, 0, STATUS_OK, 1000, 4000000000);
        note(&good, 1, STATUS_OK, 1000, 4000000000);
        assert_int_equal(topology_decide(&job, &small, &good), STATUS_OK);
        assert_int_equal(good.all_reduce, ALL_REDUCE_SHARED);
        note(&bad, 0, STATUS_UNREACHABLE, 1000, 4000000000);
        note(&bad, 1, STATUS_OK, 1000, 4000000000);
        assert_int_equal(topology_decide(&job, &small, &bad),
                         i == 0 ? STATUS_OK : STATUS_UNREACHABLE);
        assert_true(bad.all_reduce == (i == 0 ? ALL_REDUCE_DIRECT : ALL_REDUCE_SHARED));
    }
}

static void each_hears_of_those_that_it_connects_to(void **state)
{
    (void)state;
    struct job job = job_of("auto", "auto", 6);
    job.servers = 2;
    struct membership membership;
    gather(&membership, &job, NULL);
    char text[200];
    topology_places(&job, &membership, ALL_REDUCE_RING, 5, text, sizeof(text));
    assert_string_equal(text, "server-0\nserver-1\nworker-0\n");
    topology_places(&job, &membership, ALL_REDUCE_HALVING, 5, text, sizeof(text));
    assert_string_equal(text, "server-0\nserver-1\nworker-0\nworker-1\nworker-3\nworker-4\n");
    topology_places(&job, &membership, ALL_REDUCE_DIRECT, 2, text, sizeof(text));
    assert_string_equal(text,
                        "server-0\nserver-1\nworker-3\nworker-4\nworker-5\nworker-0\nworker-1\n");
    topology_places(&job, &membership, ALL_REDUCE_SHARED, 2, text, sizeof(text));
    assert_string_equal(
        text, "server-0\nserver-1\nworker-0\nworker-1\nworker-2\nworker-3\nworker-4\nworker-5\n");
    // Half a list would be worse than none.
    topology_places(&job, &membership, ALL_REDUCE_DIRECT, 2, text, 30);
    assert_string_equal(text, "");
    job.mode.kind = MODE_PS_SYNC;
    topology_places(&job, &membership, ALL_REDUCE_RING, 2, text, sizeof(text));
    assert_string_equal(text, "server-0\nserver-1\n");
    membership_finish(&membership);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(where_nccl_is_asked_for_no_worker_hears_of_another),
        cmocka_unit_test(what_rank_0_says_of_nccl_is_kept_and_told),
        cmocka_unit_test(workers_of_one_host_that_may_share_memory_try_to),
        cmocka_unit_test(what_was_asked_for_is_done),
        cmocka_unit_test(what_is_compressed_is_sent_also_on_one_host),
        cmocka_unit_test(all_buckets_take_what_the_slowest_link_says),
        cmocka_unit_test(sizes_that_will_be_tried_have_an_algorithm_each),
        cmocka_unit_test(memory_is_shared_by_all_or_by_nobody),
        cmocka_unit_test(how_many_they_are_says_what_is_possible),
        cmocka_unit_test(each_hears_of_those_that_it_connects_to),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
