/* Tests of halving and doubling over real sockets, and of one worker whose neighbours the test
 * plays. That all ranks end with the bits of the ring is in test_exchange.c. */
#include "tests/support/exchange/exchange_workers.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <string.h>

static const struct all_reduce_limits only_direct = {0, UINT64_MAX};
static const struct all_reduce_limits only_halving = {UINT64_MAX, 0};

static struct codec codec_of(const char *text)
{
    char why[256];
    struct codec codec;
    assert_int_equal(codec_parse(text, &codec, why, sizeof(why)), STATUS_OK);
    return codec;
}

/* Chunks of one, two and three segments, and some that have one less than their neighbours. */
static void buckets_of_several_slices_are_exchanged_among_any_number(void **state)
{
    (void)state;
    struct layout layout = {.value_count = 1400003, .bucket_count = 2};
    layout.buckets[0] = (struct span){1310722, 89281};
    layout.buckets[1] = (struct span){0, 1310722}; // 5 x 2^18 and 2
    for (uint32_t world = 2; world <= 5; world++) {
        exchange_workers_run(
            &(struct exchange_job){world, &layout, "tcp://127.0.0.1:*", only_halving, {0}});
    }
}

/* Codes are of the same spans, in the same order, by the same ranks: error feedback included. */
static void codes_end_with_the_bits_of_direct(void **state)
{
    (void)state;
    const char *const kinds[] = {"fp16", "bf16", "int8", "topk:0.1", "topk:1"};
    struct layout layout = {.value_count = 5003, .bucket_count = 3};
    layout.buckets[0] = (struct span){4998, 5};
    layout.buckets[1] = (struct span){2000, 2998};
    layout.buckets[2] = (struct span){0, 2000};
    for (size_t kind = 0; kind < sizeof(kinds) / sizeof(kinds[0]); kind++) {
        for (uint32_t world = 2; world <= EXCHANGE_WORLD_MAX; world++) {
            struct exchange_job job = {world, &layout, "ipc://*", only_direct,
                                       codec_of(kinds[kind])};
            uint64_t direct = exchange_workers_run(&job);
            job.limits = only_halving;
            uint64_t halving = exchange_workers_run(&job);
            if (direct != halving) {
                fail_msg("%s among %u: other bits than direct", kinds[kind], world);
            }
        }
    }
}

/* Rank 1 of three. Chunk 1 is its own, floats 3 to 5. It gets values of rank 2, then of rank 0,
 * then the mean of chunk 2 and that of chunk 0: a piece in each hop. */
struct lone {
    struct layout layout;
    struct exchange_worker worker;
};

static void open_lone(struct lone *lone, const char *compress)
{
    lone->layout = (struct layout){.value_count = 9, .bucket_count = 1, .buckets = {{0, 9}}};
    exchange_worker_open(&lone->worker, 1, 3, &lone->layout);
    struct exchange_options options = exchange_worker_options(&lone->worker);
    options.limits = only_halving;
    options.codec = codec_of(compress);
    exchange_worker_create(&lone->worker, &options);
    assert_int_equal(exchange_begin_step(lone->worker.exchange, 0), STATUS_OK);
}

/* The hops of a step as they should come. */
static struct message hop_of(uint32_t hop, const float *values)
{
    static const uint32_t ranks[] = {2, 0, 2, 0};
    return (struct message){.kind = MESSAGE_CHUNK,
                            .rank = ranks[hop - 1],
                            .hop = hop,
                            .span = {0, 3},
                            .values = values};
}

static void hops_that_come_early_wait_for_their_turn(void **state)
{
    (void)state;
    struct lone lone;
    const float of_2[] = {0x1p-24f, 20, 30}, of_0[] = {1, 2, 3}, mean_2[] = {7, 8, 9},
                mean_0[] = {4, 5, 6};
    open_lone(&lone, "none");
    struct exchange_worker *worker = &lone.worker;
    worker->grads[3] = 1;
    const struct message first = hop_of(1, of_2), second = hop_of(2, of_0),
                         third = hop_of(3, mean_2), fourth = hop_of(4, mean_0);
    assert_int_equal(exchange_worker_deliver(worker, &fourth), STATUS_OK); // before the bucket
    assert_int_equal(exchange_run_ready(worker->exchange, 0), STATUS_OK);
    assert_int_equal(exchange_worker_deliver(worker, &second), STATUS_OK);
    assert_int_equal(exchange_worker_deliver(worker, &third), STATUS_OK);
    assert_true(worker->grads[3] == 1 && worker->grads[0] == 0);
    assert_int_equal(worker->exchange->bucket_done_count, 0);
    assert_int_equal(exchange_worker_deliver(worker, &first), STATUS_OK);
    // First rank 1's, then rank 2's, which alone is lost in the rounding, then rank 0's.
    assert_true(worker->grads[3] == (1.0f + 0x1p-24f + 1.0f) * (1.0f / 3));
    assert_true(worker->grads[4] == 22 * (1.0f / 3));
    assert_memory_equal(worker->grads + 6, mean_2, sizeof(mean_2));
    assert_memory_equal(worker->grads, mean_0, sizeof(mean_0));
    assert_int_equal(worker->exchange->bucket_done_count, 1);
    assert_int_equal(exchange_worker_deliver(worker, &fourth),
                     STATUS_MALFORMED); // the step is over
    exchange_worker_close(worker);
}

static void what_does_not_fit_is_refused_and_changes_nothing(void **state)
{
    (void)state;
    struct lone lone;
    const float values[12] = {1, 2, 3};
    open_lone(&lone, "none");
    struct exchange_worker *worker = &lone.worker;
    struct message bad[12];
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        bad[i] = hop_of(1, values);
    }
    bad[0].kind = MESSAGE_PUSH;
    bad[1].rank = 0; // who sends the next hop
    bad[2].rank = 1;
    bad[3].rank = 3;
    bad[4].hop = 0;
    bad[5].hop = 5;
    bad[6].span.count = 6; // as many pieces as no hop has
    bad[7].span.count = 2;
    bad[8].span.offset = 3;                    // no slice begins there
    bad[9].span.offset = UINT64_C(256) * 1024; // nor is there a second one
    bad[10].bucket = 1;
    bad[11].step = 2;
    for (int is_ready = 0; is_ready <= 1; is_ready++) {
        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
            assert_int_equal(exchange_worker_deliver(worker, &bad[i]), STATUS_MALFORMED);
        }
        if (!is_ready) {
            assert_int_equal(exchange_run_ready(worker->exchange, 0), STATUS_OK);
        }
    }
    // What was taken once is not taken again.
    const struct message good = hop_of(1, values);
    assert_int_equal(exchange_worker_deliver(worker, &good), STATUS_OK);
    assert_int_equal(exchange_worker_deliver(worker, &good), STATUS_MALFORMED);
    const float expected[9] = {0, 0, 0, 1, 2, 3};
    assert_memory_equal(worker->grads, expected, sizeof(expected));
    exchange_worker_close(worker);
}

static void early_hops_fill_their_room_and_no_more(void **state)
{
    (void)state;
    struct lone lone;
    const float values[3] = {1, 2, 3};
    open_lone(&lone, "none");
    const struct message good = hop_of(2, values);
    uint32_t accepted = 0;
    for (uint32_t i = 0; i < 1000; i++) {
        accepted += exchange_worker_deliver(&lone.worker, &good) == STATUS_OK;
    }
    assert_in_range(accepted, 1, 20);
    exchange_worker_close(&lone.worker);
}

/* A third of three values: one, and where it is. */
static void codes_that_are_none_are_refused_and_change_nothing(void **state)
{
    (void)state;
    struct lone lone;
    const float one = 1, values[3] = {1, 2, 3};
    open_lone(&lone, "topk:0.3");
    struct exchange_worker *worker = &lone.worker;
    assert_int_equal(exchange_run_ready(worker->exchange, 0), STATUS_OK);
    unsigned char encoded[5], outside[5], longer[10];
    memcpy(encoded, &one, sizeof(one));
    encoded[4] = 1u << 2; // a bit for each value: the third
    memcpy(outside, encoded, sizeof(encoded));
    outside[4] = 1u << 3;
    memcpy(longer, encoded, sizeof(encoded));
    memcpy(longer + 5, encoded, sizeof(encoded));
    struct message as_values = hop_of(1, values), message = hop_of(1, NULL);
    assert_int_equal(exchange_worker_deliver(worker, &as_values), STATUS_MALFORMED);
    message.encoded = outside;
    message.encoded_bytes = sizeof(outside);
    assert_int_equal(exchange_worker_deliver(worker, &message), STATUS_MALFORMED);
    message.encoded = longer;
    message.encoded_bytes = sizeof(longer);
    assert_int_equal(exchange_worker_deliver(worker, &message), STATUS_MALFORMED);
    assert_true(worker->grads[5] == 0);
    message.encoded = encoded;
    message.encoded_bytes = sizeof(encoded);
    assert_int_equal(exchange_worker_deliver(worker, &message), STATUS_OK);
    assert_true(worker->grads[5] == 1);
    exchange_worker_close(worker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(buckets_of_several_slices_are_exchanged_among_any_number),
        cmocka_unit_test(codes_end_with_the_bits_of_direct),
        cmocka_unit_test(hops_that_come_early_wait_for_their_turn),
        cmocka_unit_test(what_does_not_fit_is_refused_and_changes_nothing),
        cmocka_unit_test(early_hops_fill_their_room_and_no_more),
        cmocka_unit_test(codes_that_are_none_are_refused_and_change_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
