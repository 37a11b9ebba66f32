/* Tests of the order in which messages leave. */
#include "common/channel/pacer.h"
#include "tests/support/common/insecure.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define FLOATS (PACER_WINDOW_BYTES / sizeof(float)) // of a message that fills the window

/* A pacer with one peer, and that peer. */
struct pair {
    struct channel *from, *to;
    struct pacer *pacer;
    struct lanes lanes; // to it
    float *values;      // (FLOATS)
    _Atomic uint32_t released;
};

static void open_ends(struct pair *pair)
{
    *pair = (struct pair){.values = calloc(FLOATS, sizeof(float)), .lanes = {.count = 1}};
    assert_int_equal(channel_create(&pair->from), STATUS_OK);
    assert_int_equal(channel_secure(pair->from, &test_insecure), STATUS_OK);
    assert_int_equal(channel_create(&pair->to), STATUS_OK);
    assert_int_equal(channel_secure(pair->to, &test_insecure), STATUS_OK);
}

static void open_pair(struct pair *pair)
{
    char endpoint[TRANSPORT_ENDPOINT_BYTES];
    open_ends(pair);
    assert_int_equal(transport_bind(pair->to->transport, "tcp://127.0.0.1:*", endpoint), STATUS_OK);
    assert_int_equal(transport_connect(pair->from->transport, endpoint, &pair->lanes.peers[0]),
                     STATUS_OK);
    assert_int_equal(pacer_create(pair->from, 1, PACER_QUIETEST_LANE, &pair->pacer), STATUS_OK);
}

/* Where nobody listens yet: nothing is read before there is a connection. */
static void open_unheard(struct pair *pair, char endpoint[TRANSPORT_ENDPOINT_BYTES])
{
    open_ends(pair);
    snprintf(endpoint, TRANSPORT_ENDPOINT_BYTES, "ipc://@ringside-test-pacer-%ld", (long)getpid());
    assert_int_equal(transport_connect(pair->from->transport, endpoint, &pair->lanes.peers[0]),
                     STATUS_OK);
    assert_int_equal(pacer_create(pair->from, 1, PACER_QUIETEST_LANE, &pair->pacer), STATUS_OK);
}

static void close_pair(struct pair *pair)
{
    channel_destroy(pair->from, 0);
    channel_destroy(pair->to, 0);
    pacer_destroy(pair->pacer);
    free(pair->values);
}

static void release(void *hint)
{
    struct pair *pair = hint;
    pair->released++;
}

static void send_bucket(struct pair *pair, uint32_t bucket, uint32_t hop)
{
    const struct message message = {.kind = MESSAGE_CHUNK,
                                    .bucket = bucket,
                                    .hop = hop,
                                    .span = {0, FLOATS},
                                    .values = pair->values};
    assert_int_equal(pacer_send(pair->pacer, 0, &pair->lanes, &message, release, pair), STATUS_OK);
}

/* What comes next, while the pacer goes on whenever it is woken. */
static struct message receive(struct pair *pair)
{
    struct envelope envelope;
    struct message message;
    for (;;) {
        assert_int_equal(pacer_go_on(pair->pacer), STATUS_OK);
        if (channel_receive(pair->to, 0, &envelope, &message) == STATUS_OK) {
            envelope_release(&envelope);
            return message;
        }
        enum status status = channel_receive(pair->from, 1, &envelope, &message); // a wake ends it
        assert_true(status == STATUS_INTERRUPTED || status == STATUS_TIMED_OUT);
    }
}

static void the_highest_bucket_goes_first_and_equals_in_their_order(void **state)
{
    (void)state;
    struct pair pair;
    char endpoint[TRANSPORT_ENDPOINT_BYTES], bound[TRANSPORT_ENDPOINT_BYTES];
    open_unheard(&pair, endpoint);
    const uint32_t buckets[] = {0, 1, 3, 2, 3, 1};
    for (uint32_t i = 0; i < 6; i++) {
        send_bucket(&pair, buckets[i], i);
    }
    assert_int_equal(transport_bind(pair.to->transport, endpoint, bound), STATUS_OK);
    const uint32_t expected[] = {0, 2, 4, 3, 1, 5};
    for (uint32_t i = 0; i < 6; i++) {
        struct message message = receive(&pair);
        assert_int_equal(message.hop, expected[i]);
        assert_int_equal(message.bucket, buckets[expected[i]]);
    }
    while (pair.released < 6) {
    }
    send_bucket(&pair, 7, 7); // an empty queue is as good as new
    assert_int_equal(receive(&pair).bucket, 7);
    close_pair(&pair);
}

/* A shard has it on its stack, and the message may leave much later. */
static void what_became_of_a_gradient_is_told_as_it_was_when_it_was_sent(void **state)
{
    (void)state;
    struct pair pair;
    char endpoint[TRANSPORT_ENDPOINT_BYTES], bound[TRANSPORT_ENDPOINT_BYTES];
    open_unheard(&pair, endpoint);
    for (uint32_t i = 0; i < 2; i++) {
        struct wire_outcome outcome = {.staleness = 3, .rate = 0.5, .is_late = true};
        const struct message params = {.kind = MESSAGE_PARAMS,
                                       .bucket = i,
                                       .span = {0, FLOATS},
                                       .values = pair.values,
                                       .outcome = &outcome};
        assert_int_equal(pacer_send(pair.pacer, 0, &pair.lanes, &params, release, &pair),
                         STATUS_OK);
        outcome = (struct wire_outcome){.staleness = 9};
    }
    assert_int_equal(pair.pacer->waiting_count, 1);
    assert_int_equal(transport_bind(pair.to->transport, endpoint, bound), STATUS_OK);
    for (uint32_t i = 0; i < 2; i++) {
        struct message got = receive(&pair);
        assert_int_equal(got.bucket, i);
        assert_int_equal(got.outcome->staleness, 3);
        assert_true(got.outcome->is_late && got.outcome->rate == 0.5);
    }
    close_pair(&pair);
}

static void small_messages_share_the_window(void **state)
{
    (void)state;
    struct pair pair;
    open_pair(&pair);
    struct message message = {.kind = MESSAGE_CHUNK, .values = pair.values};
    for (uint32_t i = 0; i < 8; i++) { // together as much as the window
        message.span = (struct span){0, FLOATS / 8};
        message.bucket = i;
        assert_int_equal(pacer_send(pair.pacer, 0, &pair.lanes, &message, release, &pair),
                         STATUS_OK);
    }
    for (uint32_t i = 0; i < 8; i++) {
        assert_int_equal(receive(&pair).bucket, i);
    }
    close_pair(&pair);
}

static void every_connection_that_is_known_has_a_window(void **state)
{
    (void)state;
    struct pair pair;
    char endpoint[TRANSPORT_ENDPOINT_BYTES], bound[TRANSPORT_ENDPOINT_BYTES];
    open_unheard(&pair, endpoint);
    pair.lanes.count = 3;
    pair.lanes.peers[1] = LANES_NONE;
    assert_int_equal(transport_connect(pair.from->transport, endpoint, &pair.lanes.peers[2]),
                     STATUS_OK);
    for (uint32_t i = 0; i < 5; i++) {
        send_bucket(&pair, i, i);
    }
    for (uint32_t lane = 0; lane < 3; lane++) {
        assert_int_equal(pair.pacer->peers[0].bytes_sent[lane], lane == 1 ? 0 : PACER_WINDOW_BYTES);
    }
    assert_int_equal(pair.pacer->waiting_count, 3);
    assert_int_equal(transport_bind(pair.to->transport, endpoint, bound), STATUS_OK);
    unsigned buckets = 0;
    for (uint32_t i = 0; i < 5; i++) {
        buckets |= 1u << receive(&pair).bucket;
    }
    assert_int_equal(buckets, 0x1F);
    close_pair(&pair);
}

/* Buckets 0 to 4 by two connections: each takes the even ones or the odd ones, one at a time. */
static void a_bucket_keeps_to_its_connection_where_that_is_asked_for(void **state)
{
    (void)state;
    struct pair pair;
    char endpoint[TRANSPORT_ENDPOINT_BYTES], bound[TRANSPORT_ENDPOINT_BYTES];
    open_unheard(&pair, endpoint);
    pacer_destroy(pair.pacer);
    assert_int_equal(pacer_create(pair.from, 1, PACER_LANE_OF_BUCKET, &pair.pacer), STATUS_OK);
    pair.lanes.count = 2;
    assert_int_equal(transport_connect(pair.from->transport, endpoint, &pair.lanes.peers[1]),
                     STATUS_OK);
    const uint32_t buckets[] = {0, 2, 4, 1, 3};
    for (uint32_t i = 0; i < 5; i++) {
        send_bucket(&pair, buckets[i], i);
        assert_int_equal(pair.pacer->peers[0].bytes_sent[1], i < 3 ? 0 : PACER_WINDOW_BYTES);
    }
    assert_int_equal(pair.pacer->peers[0].bytes_sent[0], PACER_WINDOW_BYTES);
    assert_int_equal(pair.pacer->waiting_count, 3);
    assert_int_equal(transport_bind(pair.to->transport, endpoint, bound), STATUS_OK);
    uint32_t even_seen = 0;
    const uint32_t even_expected[] = {0, 4, 2};
    for (uint32_t i = 0; i < 5; i++) {
        uint32_t bucket = receive(&pair).bucket;
        if (bucket % 2 == 0) {
            assert_int_equal(bucket, even_expected[even_seen++]);
        }
    }
    assert_int_equal(even_seen, 3);
    close_pair(&pair);
}

static void more_than_there_is_room_for_is_sent_all_the_same(void **state)
{
    (void)state;
    struct pair pair;
    open_pair(&pair);
    struct message message = {.kind = MESSAGE_CHUNK, .span = {0, 64}, .values = pair.values};
    send_bucket(&pair, 0, 0);
    for (uint32_t i = 1; i < PACER_SENDS_MAX + 10; i++) {
        message.bucket = i;
        assert_int_equal(pacer_send(pair.pacer, 0, &pair.lanes, &message, release, &pair),
                         STATUS_OK);
    }
    uint64_t sum = 0;
    for (uint64_t i = 0; i < PACER_SENDS_MAX + 10; i++) {
        sum += receive(&pair).bucket;
    }
    assert_int_equal(sum, (uint64_t)(PACER_SENDS_MAX + 10) * (PACER_SENDS_MAX + 9) / 2);
    close_pair(&pair);
}

/* What cannot be sent is released: nobody waits for it. */
static void a_peer_that_is_not_there_is_said(void **state)
{
    (void)state;
    struct pair pair;
    open_pair(&pair);
    const struct message message = {.kind = MESSAGE_CHUNK, .span = {0, 1}, .values = pair.values};
    const struct lanes nowhere = {{UINT64_MAX - 1}, 1};
    assert_int_not_equal(pacer_send(pair.pacer, 0, &nowhere, &message, release, &pair), STATUS_OK);
    assert_int_equal(pair.released, 1);
    close_pair(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_highest_bucket_goes_first_and_equals_in_their_order),
        cmocka_unit_test(what_became_of_a_gradient_is_told_as_it_was_when_it_was_sent),
        cmocka_unit_test(small_messages_share_the_window),
        cmocka_unit_test(every_connection_that_is_known_has_a_window),
        cmocka_unit_test(a_bucket_keeps_to_its_connection_where_that_is_asked_for),
        cmocka_unit_test(more_than_there_is_room_for_is_sent_all_the_same),
        cmocka_unit_test(a_peer_that_is_not_there_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
