/* Tests of all-reduce by messages among processes that carry several ranks each: the bits are those
 * of a process for each rank. */
#include "tests/support/exchange/exchange_workers.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <string.h>

static const struct all_reduce_limits only_ring = {0};
static const struct all_reduce_limits only_direct = {0, UINT64_MAX};
static const struct all_reduce_limits only_halving = {UINT64_MAX, 0};
static const struct all_reduce_limits each_some = {100, 400};

static const struct all_reduce_limits *const ways[] = {&only_ring, &only_direct, &only_halving,
                                                       &each_some};
#define WAYS (sizeof(ways) / sizeof(ways[0]))

/* The digests of all numbers of processes; each run compares every value with a plain loop. */
static void run_all(uint32_t world, const struct layout *layout, const char *scheme)
{
    for (size_t i = 0; i < WAYS; i++) {
        struct exchange_job job = {
            .world = world, .layout = layout, .scheme = scheme, .limits = *ways[i]};
        uint64_t digest = exchange_workers_run(&job);
        for (job.processes = 1; job.processes < world; job.processes++) {
            assert_true(exchange_workers_run(&job) == digest);
        }
    }
}

static void every_number_of_processes_gets_the_mean_of_the_ranks_bit_by_bit(void **state)
{
    (void)state;
    static const uint32_t worlds[] = {2, 3, 5, 8};
    struct layout large = {.value_count = 1003, .bucket_count = 3};
    large.buckets[0] = (struct span){700, 303};
    large.buckets[1] = (struct span){13, 687};
    large.buckets[2] = (struct span){0, 13};
    struct layout tiny = {.value_count = 4, .bucket_count = 2}; // fewer floats than ranks
    tiny.buckets[0] = (struct span){3, 1};
    tiny.buckets[1] = (struct span){0, 3};
    for (size_t i = 0; i < sizeof(worlds) / sizeof(worlds[0]); i++) {
        run_all(worlds[i], &large, "ipc://*");
        run_all(worlds[i], &tiny, "ipc://*");
    }
}

static void so_they_do_in_several_segments_over_tcp(void **state)
{
    (void)state;
    struct layout layout = {.value_count = 1700000, .bucket_count = 2};
    layout.buckets[0] = (struct span){100000, 1600000};
    layout.buckets[1] = (struct span){0, 100000};
    run_all(3, &layout, "tcp://127.0.0.1:*");
}

/* Processes 0 and 2 carry ranks 0, 1 and 4, 5; this one ranks 2 and 3. */
static void open_middle(struct exchange_worker *worker, const struct layout *layout,
                        const struct all_reduce_limits *limits)
{
    exchange_carrier_open(worker, 1, (struct carriers){.ranks = 6, .processes = 3}, layout);
    struct exchange_options options = exchange_worker_options(worker);
    options.limits = *limits;
    exchange_worker_create(worker, &options);
    assert_int_equal(exchange_begin_step(worker->exchange, 0), STATUS_OK);
}

static void nobody_speaks_for_ranks_that_another_process_carries(void **state)
{
    (void)state;
    const float values[] = {100, 200, 300};
    struct layout layout = {.value_count = 18, .bucket_count = 1, .buckets = {{0, 18}}};
    struct exchange_worker worker;
    open_middle(&worker, &layout, &only_direct);
    for (uint32_t rank = 0; rank < 6; rank++) {
        const struct message chunk = {.kind = MESSAGE_CHUNK,
                                      .rank = rank,
                                      .hop = 1,
                                      .span = {6, 3}, // chunk 2, which is added up here
                                      .values = values};
        bool is_of_0 = rank < 2, is_of_2 = rank >= 4;
        assert_int_equal(exchange_worker_deliver_from(&worker, 7, &chunk), STATUS_DENIED);
        assert_int_equal(exchange_worker_deliver_from(&worker, exchange_played_peer(0), &chunk),
                         is_of_0 ? STATUS_OK : STATUS_DENIED);
        assert_int_equal(exchange_worker_deliver_from(&worker, exchange_played_peer(4), &chunk),
                         is_of_2 ? STATUS_OK : STATUS_DENIED);
    }
    exchange_worker_close(&worker);
}

static void a_sum_that_another_process_would_have_handed_on_is_refused(void **state)
{
    (void)state;
    const float values[] = {100, 200, 300};
    struct layout layout = {.value_count = 18, .bucket_count = 1, .buckets = {{0, 18}}};
    struct exchange_worker worker;
    open_middle(&worker, &layout, &only_ring);
    // Sums come from process 0, in the name of its first rank. That of chunk 0 has gone one hop,
    // that of chunk 1 too, though it comes back there; that of chunk 3 returns after three.
    static const struct {
        uint32_t rank, hop;
        uint64_t offset;
        enum status expected;
    } cases[] = {
        {0, 1, 0, STATUS_OK},        {0, 1, 3, STATUS_OK},        {1, 1, 0, STATUS_MALFORMED},
        {0, 2, 0, STATUS_MALFORMED}, {0, 1, 6, STATUS_MALFORMED}, {0, 3, 9, STATUS_OK},
        {0, 6, 9, STATUS_MALFORMED}, {0, 0, 0, STATUS_MALFORMED}, {4, 1, 0, STATUS_MALFORMED},
        {0, 1, 1, STATUS_MALFORMED},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct message chunk = {.kind = MESSAGE_CHUNK,
                                      .rank = cases[i].rank,
                                      .hop = cases[i].hop,
                                      .span = {cases[i].offset, 3},
                                      .values = values};
        assert_int_equal(exchange_worker_deliver(&worker, &chunk), cases[i].expected);
    }
    exchange_worker_close(&worker);
}

static void a_process_says_hello_by_its_first_rank(void **state)
{
    (void)state;
    struct layout layout = {.value_count = 18, .bucket_count = 1, .buckets = {{0, 18}}};
    struct exchange_worker worker;
    const float nothing = 0;
    const struct wire_hello lane = {0};
    open_middle(&worker, &layout, &only_ring);
    struct message hello = {.kind = MESSAGE_HELLO, .rank = 1, .hello = &lane, .values = &nothing};
    assert_int_equal(exchange_worker_deliver(&worker, &hello), STATUS_MALFORMED);
    hello.rank = 4;
    assert_int_equal(exchange_worker_deliver(&worker, &hello), STATUS_OK); // said before
    exchange_worker_close(&worker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_number_of_processes_gets_the_mean_of_the_ranks_bit_by_bit),
        cmocka_unit_test(so_they_do_in_several_segments_over_tcp),
        cmocka_unit_test(nobody_speaks_for_ranks_that_another_process_carries),
        cmocka_unit_test(a_sum_that_another_process_would_have_handed_on_is_refused),
        cmocka_unit_test(a_process_says_hello_by_its_first_rank),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
