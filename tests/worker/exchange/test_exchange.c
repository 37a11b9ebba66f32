/* Tests of all-reduce by messages over real sockets: N workers in one process, or one whose
 * neighbours the test plays. */
#include "tests/support/common/float_envelope.h"
#include "tests/support/exchange/exchange_workers.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <sched.h>
#include <string.h>

// Ways that buckets may take, by their size.
static const struct all_reduce_limits only_ring = {0};
static const struct all_reduce_limits only_direct = {0, UINT64_MAX};
static const struct all_reduce_limits only_halving = {UINT64_MAX, 0};
static const struct all_reduce_limits some_direct = {0, 400};
static const struct all_reduce_limits each_some = {100, 400};
static const struct all_reduce_limits some_halving = {400, 0};

static void every_rank_gets_the_mean_bit_by_bit_over_ipc(void **state)
{
    (void)state;
    // The second vector is shorter than the largest world, its first bucket a single float.
    struct layout large = {.value_count = 1003, .bucket_count = 3};
    large.buckets[0] = (struct span){700, 303};
    large.buckets[1] = (struct span){13, 687};
    large.buckets[2] = (struct span){0, 13};
    struct layout tiny = {.value_count = 4, .bucket_count = 2};
    tiny.buckets[0] = (struct span){3, 1};
    tiny.buckets[1] = (struct span){0, 3};
    const struct all_reduce_limits *const ways[] = {&only_ring,   &only_direct, &only_halving,
                                                    &some_direct, &each_some,   &some_halving};
    for (uint32_t world = 1; world <= EXCHANGE_WORLD_MAX; world++) {
        for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
            exchange_workers_run(&(struct exchange_job){world, &large, "ipc://*", *ways[i], {0}});
            exchange_workers_run(&(struct exchange_job){world, &tiny, "ipc://*", *ways[i], {0}});
        }
    }
}

static void every_rank_gets_the_mean_bit_by_bit_over_tcp_in_several_segments(void **state)
{
    (void)state;
    const char *const scheme = "tcp://127.0.0.1:*";
    struct layout layout = {.value_count = 900000, .bucket_count = 2};
    layout.buckets[0] = (struct span){100000, 800000};
    layout.buckets[1] = (struct span){0, 100000};
    for (uint32_t world = 2; world <= 3; world++) {
        exchange_workers_run(&(struct exchange_job){world, &layout, scheme, only_ring, {0}});
        exchange_workers_run(&(struct exchange_job){world, &layout, scheme, only_direct, {0}});
        exchange_workers_run(&(struct exchange_job){world, &layout, scheme, only_halving, {0}});
    }
}

/* Segments of several connections overtake each other, also those of the next step. */
static void every_rank_gets_the_mean_bit_by_bit_over_several_connections(void **state)
{
    (void)state;
    const char *const scheme = "tcp://127.0.0.1:*";
    const struct all_reduce_limits *const ways[] = {&only_ring, &only_direct, &only_halving};
    struct layout layout = {.value_count = 1700000, .bucket_count = 4};
    layout.buckets[0] = (struct span){900000, 800000};
    layout.buckets[1] = (struct span){600000, 300000};
    layout.buckets[2] = (struct span){1, 599999};
    layout.buckets[3] = (struct span){0, 1};
    for (uint32_t connections = 2; connections <= LANES_MAX; connections *= 2) {
        for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
            exchange_workers_run(
                &(struct exchange_job){3, &layout, scheme, *ways[i], {0}, connections});
        }
    }
}

static void a_stopped_exchange_waits_no_more(void **state)
{
    (void)state;
    struct layout layout = {.value_count = 4, .bucket_count = 1, .buckets = {{0, 4}}};
    struct exchange_worker worker;
    exchange_worker_open(&worker, 0, 2, &layout);
    struct exchange_options options = exchange_worker_options(&worker);
    exchange_worker_create(&worker, &options);
    assert_int_equal(exchange_begin_step(worker.exchange, 0), STATUS_OK);
    exchange_stop(worker.exchange, STATUS_INTERRUPTED);
    assert_int_equal(exchange_end_step(worker.exchange, NULL, NULL), STATUS_INTERRUPTED);
    assert_int_equal(exchange_begin_step(worker.exchange, 1), STATUS_INTERRUPTED);
    assert_int_equal(exchange_stopped(worker.exchange), STATUS_INTERRUPTED);
    exchange_worker_close(&worker);
}

static enum status note_bucket(void *context, uint32_t bucket)
{
    uint32_t *buckets = context;
    *buckets |= UINT32_C(1) << bucket;
    return STATUS_OK;
}

/* The trainer goes on with the gradients of others meanwhile. */
static void means_that_have_come_are_taken_without_waiting_for_others(void **state)
{
    (void)state;
    struct layout layout = {
        .value_count = 6, .bucket_count = 3, .buckets = {{4, 2}, {2, 2}, {0, 2}}};
    struct exchange_worker worker;
    uint32_t applied = 0;
    exchange_worker_open(&worker, 0, 2, &layout);
    struct exchange_options options = exchange_worker_options(&worker);
    exchange_worker_create(&worker, &options);
    assert_int_equal(exchange_begin_step(worker.exchange, 0), STATUS_OK);
    assert_int_equal(exchange_take_ready(worker.exchange, note_bucket, &applied), STATUS_OK);
    assert_int_equal(applied, 0);
    exchange_mark_done(worker.exchange, 1);
    assert_int_equal(exchange_take_ready(worker.exchange, note_bucket, &applied), STATUS_OK);
    assert_int_equal(applied, 1 << 1);
    applied = 0;
    exchange_mark_done(worker.exchange, 0);
    exchange_mark_done(worker.exchange, 2);
    assert_int_equal(exchange_end_step(worker.exchange, note_bucket, &applied), STATUS_OK);
    assert_int_equal(applied, 1 << 0 | 1 << 2); // each once
    exchange_stop(worker.exchange, STATUS_INTERRUPTED);
    assert_int_equal(exchange_take_ready(worker.exchange, note_bucket, &applied),
                     STATUS_INTERRUPTED);
    exchange_worker_close(&worker);
}

/* A stop that came before the wait began: nobody will signal it again. */
static void an_earlier_stop_ends_the_wait_for_sends_as_well(void **state)
{
    (void)state;
    struct layout layout = {.value_count = 4, .bucket_count = 1, .buckets = {{0, 4}}};
    struct exchange_worker worker;
    exchange_worker_open(&worker, 0, 2, &layout);
    struct exchange_options options = exchange_worker_options(&worker);
    options.mode = MODE_PS_SYNC;
    exchange_worker_create(&worker, &options);
    assert_int_equal(exchange_begin_step(worker.exchange, 0), STATUS_OK);
    worker.exchange->sends_outstanding = 1;
    exchange_stop(worker.exchange, STATUS_INTERRUPTED);
    assert_int_equal(exchange_end_step(worker.exchange, NULL, NULL), STATUS_INTERRUPTED);
    exchange_worker_close(&worker);
}

/* What a neighbour must not send, to rank 1 of 3. */
static void chunks_that_do_not_fit_are_refused_and_change_nothing(void **state)
{
    (void)state;
    struct layout layout = {.value_count = 9, .bucket_count = 1, .buckets = {{0, 9}}};
    struct exchange_worker worker;
    exchange_worker_open(&worker, 1, 3, &layout);
    struct exchange_options options = exchange_worker_options(&worker);
    exchange_worker_create(&worker, &options);
    assert_int_equal(exchange_begin_step(worker.exchange, 0), STATUS_OK);
    const float values[3] = {1, 2, 3};
    const struct message good = {
        .kind = MESSAGE_CHUNK, .rank = 0, .hop = 1, .span = {0, 3}, .values = values};
    const struct message bad[] = {
        {.kind = MESSAGE_PUSH, .rank = 0, .hop = 1, .span = {0, 3}, .values = values},
        {.kind = MESSAGE_CHUNK, .rank = 2, .hop = 1, .span = {0, 3}, .values = values},
        {.kind = MESSAGE_CHUNK, .rank = 0, .hop = 0, .span = {0, 3}, .values = values},
        {.kind = MESSAGE_CHUNK, .rank = 0, .hop = 5, .span = {0, 3}, .values = values},
        {.kind = MESSAGE_CHUNK, .rank = 0, .hop = 1, .span = {3, 3}, .values = values},
        {.kind = MESSAGE_CHUNK, .rank = 0, .hop = 1, .span = {0, 2}, .values = values},
        {.kind = MESSAGE_CHUNK, .rank = 0, .hop = 1, .span = {1, 2}, .values = values},
        {.kind = MESSAGE_CHUNK, .rank = 0, .hop = 1, .span = {9, 3}, .values = values},
        {.kind = MESSAGE_CHUNK, .rank = 0, .hop = 1, .bucket = 1, .span = {0, 3}, .values = values},
        {.kind = MESSAGE_CHUNK, .rank = 0, .hop = 1, .step = 2, .span = {0, 3}, .values = values},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(exchange_worker_deliver(&worker, &bad[i]), STATUS_MALFORMED);
    }
    // The same good chunk again and again fills the room for early ones, and no more than that.
    uint32_t accepted = 0;
    for (uint32_t i = 0; i < 1000; i++) {
        accepted += exchange_worker_deliver(&worker, &good) == STATUS_OK;
    }
    assert_in_range(accepted, 1, 100);
    exchange_worker_close(&worker);
}

/* What somebody else sends in the name of a rank: chunks of each algorithm, and a hello. */
static void nobody_speaks_for_a_rank_but_its_own_connection(void **state)
{
    (void)state;
    const struct all_reduce_limits *const ways[] = {&only_ring, &only_direct, &only_halving};
    const float values[3] = {100, 200, 300}, good[3] = {1, 2, 3};
    struct layout layout = {.value_count = 9, .bucket_count = 1, .buckets = {{0, 9}}};
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        struct exchange_worker worker;
        exchange_worker_open(&worker, 1, 3, &layout);
        struct exchange_options options = exchange_worker_options(&worker);
        options.limits = *ways[i];
        exchange_worker_create(&worker, &options);
        assert_int_equal(exchange_begin_step(worker.exchange, 0), STATUS_OK);
        struct message chunk = {.kind = MESSAGE_CHUNK, .hop = 1, .span = {0, 3}, .values = values};
        chunk.span.offset = ways[i] == &only_direct ? 3 : 0;
        const struct wire_hello lane = {0};
        const struct message hello = {.kind = MESSAGE_HELLO, .hello = &lane, .values = values};
        const uint64_t others[] = {7, exchange_played_peer(2)};
        for (size_t k = 0; k < sizeof(others) / sizeof(others[0]); k++) {
            assert_int_equal(exchange_worker_deliver_from(&worker, others[k], &chunk),
                             STATUS_DENIED);
            assert_int_equal(exchange_worker_deliver_from(&worker, others[k], &hello),
                             STATUS_DENIED);
            assert_int_equal(exchange_worker_deliver_from(&worker, others[k], &chunk),
                             STATUS_DENIED);
        }
        assert_int_equal(exchange_run_ready(worker.exchange, 0), STATUS_OK);
        for (uint64_t k = 0; k < layout.value_count; k++) {
            assert_true(worker.grads[k] == 0);
        }
        chunk.values = good;
        if (ways[i] != &only_halving) { // whose hop 1 of rank 0 is another length here
            assert_int_equal(exchange_worker_deliver(&worker, &chunk), STATUS_OK);
        }
        exchange_worker_close(&worker);
    }
}

/* The values of others come out of turn, twice, and for a chunk that is somebody else's: rank 1 of
 * 3 owns chunk 1. */
static void values_that_come_out_of_turn_wait_for_it(void **state)
{
    (void)state;
    struct layout layout = {.value_count = 9, .bucket_count = 1, .buckets = {{0, 9}}};
    struct exchange_worker worker;
    exchange_worker_open(&worker, 1, 3, &layout);
    struct exchange_options options = exchange_worker_options(&worker);
    options.limits = only_direct;
    exchange_worker_create(&worker, &options);
    assert_int_equal(exchange_begin_step(worker.exchange, 0), STATUS_OK);
    const float of_0[] = {1, 2, 3}, of_2[] = {0x1p-24f, 20, 30};
    const struct message steps[] = {
        {.kind = MESSAGE_CHUNK, .rank = 0, .hop = 1, .span = {3, 3}, .values = of_0},
        {.kind = MESSAGE_CHUNK, .rank = 2, .hop = 1, .span = {3, 3}, .values = of_2},
        {.kind = MESSAGE_CHUNK, .rank = 2, .hop = 1, .span = {0, 3}, .values = of_2},
        {.kind = MESSAGE_CHUNK, .rank = 1, .hop = 1, .span = {3, 3}, .values = of_2},
        {.kind = MESSAGE_CHUNK, .rank = 2, .hop = 2, .span = {3, 3}, .values = of_2},
    };
    const enum status answers[] = {STATUS_OK, STATUS_OK, STATUS_MALFORMED, STATUS_MALFORMED,
                                   STATUS_MALFORMED};
    worker.grads[3] = 1;
    assert_int_equal(exchange_run_ready(worker.exchange, 0), STATUS_OK);
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        assert_int_equal(exchange_worker_deliver(&worker, &steps[i]), answers[i]);
    }
    // First rank 1's, then rank 2's, which alone is lost in the rounding, then rank 0's.
    assert_true(worker.grads[3] == (1.0f + 0x1p-24f + 1.0f) * (1.0f / 3));
    assert_true(worker.grads[4] == 22 * (1.0f / 3));
    exchange_worker_close(&worker);
}

/* Steps that a thread of its own begins, one after the other, as soon as it may. */
struct beginning {
    struct exchange *exchange;
    _Atomic uint64_t allowed, begun; // so many steps
};

enum { RACES = 40000, SPINS_MAX = 500 };

static void *begin_steps(void *data)
{
    struct beginning *beginning = data;
    for (uint64_t step = 0; step < RACES; step++) {
        for (uint32_t spins = 0; beginning->allowed <= step; spins++) {
            if (spins > SPINS_MAX) {
                sched_yield();
            }
        }
        if (exchange_begin_step(beginning->exchange, step) != STATUS_OK) {
            break;
        }
        beginning->begun = step + 1;
    }
    return NULL;
}

/* A neighbour that has finished a step sends its first segment of the next one, which this worker's
 * trainer begins at that very moment. */
static void a_segment_of_the_step_that_just_begins_is_taken(void **state)
{
    (void)state;
    struct layout layout = {.value_count = 2, .bucket_count = 1, .buckets = {{0, 2}}};
    struct exchange_worker worker;
    exchange_worker_open(&worker, 0, 2, &layout);
    struct exchange_options options = exchange_worker_options(&worker);
    exchange_worker_create(&worker, &options);
    struct beginning beginning = {.exchange = worker.exchange};
    pthread_t thread;
    pthread_create(&thread, NULL, begin_steps, &beginning);
    uint32_t refused = 0;
    for (uint64_t step = 0; step < RACES; step++) {
        const float value = 1;
        struct envelope envelope;
        struct message message;
        beginning.allowed = step + 1;
        // Some of so many delays meet the moment.
        for (uint64_t i = 0; i < step % SPINS_MAX && beginning.begun <= step; i++) {
        }
        for (uint32_t hop = 1; hop <= 2; hop++) {
            message = (struct message){.kind = MESSAGE_CHUNK,
                                       .rank = 1,
                                       .step = step,
                                       .hop = hop,
                                       .span = {hop % 2, 1},
                                       .values = &value};
            assert_int_equal(float_envelope_make(&value, 1, &envelope), STATUS_OK);
            envelope.peer = exchange_played_peer(1);
            refused += exchange_deliver(worker.exchange, &message, &envelope) != STATUS_OK;
            envelope_release(&envelope);
            while (hop == 1 && beginning.begun <= step) {
                sched_yield();
            }
            if (hop == 1) {
                assert_int_equal(exchange_run_ready(worker.exchange, 0), STATUS_OK);
            }
        }
        if (refused > 0) {
            break;
        }
        // What it sent to itself, to be sent: the next step waits for that.
        for (uint32_t i = 0; i < 2; i++) {
            assert_int_equal(channel_receive(worker.channel, 10000, &envelope, &message),
                             STATUS_OK);
            envelope_release(&envelope);
        }
    }
    exchange_stop(worker.exchange, STATUS_INTERRUPTED);
    beginning.allowed = RACES;
    pthread_join(thread, NULL);
    assert_int_equal(refused, 0);
    exchange_worker_close(&worker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_rank_gets_the_mean_bit_by_bit_over_ipc),
        cmocka_unit_test(every_rank_gets_the_mean_bit_by_bit_over_tcp_in_several_segments),
        cmocka_unit_test(every_rank_gets_the_mean_bit_by_bit_over_several_connections),
        cmocka_unit_test(a_stopped_exchange_waits_no_more),
        cmocka_unit_test(means_that_have_come_are_taken_without_waiting_for_others),
        cmocka_unit_test(an_earlier_stop_ends_the_wait_for_sends_as_well),
        cmocka_unit_test(chunks_that_do_not_fit_are_refused_and_change_nothing),
        cmocka_unit_test(nobody_speaks_for_a_rank_but_its_own_connection),
        cmocka_unit_test(values_that_come_out_of_turn_wait_for_it),
        cmocka_unit_test(a_segment_of_the_step_that_just_begins_is_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
