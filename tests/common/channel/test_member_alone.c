/* Tests of a member whose coordinator is lost. */
#include "common/channel/member.h"
#include "tests/support/common/insecure.h"
#include "tests/support/common/sample_job.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <pthread.h>
#include <string.h>

static const atomic_int never;

/* Time is an argument, so only the connection's end takes some. */
static void advance(struct member *member, uint64_t *now_ms, uint64_t by_ms)
{
    for (uint64_t end = *now_ms + by_ms; *now_ms < end; *now_ms += 100) {
        member_tick(member, *now_ms, 7);
    }
}

static void listen_at(struct channel **ret_channel, const char *at, char *ret_endpoint)
{
    assert_int_equal(channel_create(ret_channel), STATUS_OK);
    assert_int_equal(channel_secure(*ret_channel, &test_insecure), STATUS_OK);
    assert_int_equal(transport_bind((*ret_channel)->transport, at, ret_endpoint), STATUS_OK);
}

/* Of the kinds that are no heartbeats. */
static enum message_kind receive_kind(struct channel *channel, uint32_t *ret_rank)
{
    struct envelope envelope;
    struct message message = {.kind = MESSAGE_HEARTBEAT};
    while (message.kind == MESSAGE_HEARTBEAT) {
        if (channel_receive(channel, 10000, &envelope, &message) == STATUS_OK) {
            *ret_rank = message.member != NULL ? message.member->rank : UINT32_MAX;
            envelope_release(&envelope);
        }
    }
    return message.kind;
}

/* A member whose coordinator was there, and is gone. */
static void lose_coordinator(struct member *member, char endpoint[TRANSPORT_ENDPOINT_BYTES],
                             uint64_t *now_ms)
{
    struct channel *channel;
    struct envelope envelope;
    struct message message;
    uint32_t rank;
    listen_at(&channel, "tcp://127.0.0.1:*", endpoint);
    *member = (struct member){.self = {.role = ROLE_WORKER, .host = "node", .rank = 3},
                              .endpoint = endpoint,
                              .patience_ms = 60000};
    assert_int_equal(channel_create(&member->channel), STATUS_OK);
    assert_int_equal(channel_secure(member->channel, &test_insecure), STATUS_OK);
    assert_int_equal(member_connect(member, endpoint), STATUS_OK);
    const struct message join = {.kind = MESSAGE_JOIN, .member = &member->self, .text = ""};
    assert_int_equal(channel_send(member->channel, member->coordinator, &join, NULL, NULL),
                     STATUS_OK);
    assert_int_equal(receive_kind(channel, &rank), MESSAGE_JOIN);
    channel_destroy(channel, 0);
    while (!transport_has_left(member->channel->transport, member->coordinator)) {
        assert_int_not_equal(channel_receive(member->channel, 10, &envelope, &message), STATUS_OK);
    }
    *now_ms = member->coordinator_heard_ms = 100000;
}

static void a_member_that_goes_on_alone_knocks_until_somebody_listens(void **state)
{
    (void)state;
    struct member member;
    struct channel *channel;
    char endpoint[TRANSPORT_ENDPOINT_BYTES], again[TRANSPORT_ENDPOINT_BYTES];
    uint64_t now_ms;
    uint32_t rank;
    lose_coordinator(&member, endpoint, &now_ms);
    member.outlast_ms = 60000;
    assert_true(member_reaches(&member));
    advance(&member, &now_ms, MEMBER_CLOSED_MS + 1000);
    assert_true(member.is_alone && member.must_knock && !member.is_stopped);
    assert_false(member_reaches(&member));
    const struct layout layout = {
        .value_count = 10, .bucket_count = 1, .buckets = {{0, 10}}, .digest = 5};
    const struct wire_start start = {.all_reduce = ALL_REDUCE_RING};
    const struct wire_back said = {.sum_round = 4};
    struct message back = {.kind = MESSAGE_BACK, .layout = &layout, .start = &start, .back = &said};
    const struct job job = SAMPLE_JOB("mode=ring", "workers=4");
    member_knock(&member, &job, &back);
    assert_false(member.must_knock);
    listen_at(&channel, endpoint, again);
    assert_int_equal(receive_kind(channel, &rank), MESSAGE_BACK);
    assert_int_equal(rank, 3);
    member_return(&member, &(struct message){.kind = MESSAGE_GO, .term = 3});
    assert_int_equal(member.term, 3);
    assert_true(member_reaches(&member));
    channel_destroy(channel, 0);
    channel_destroy(member.channel, 0);
}

static void a_member_that_nobody_comes_back_for_stops_in_time(void **state)
{
    (void)state;
    struct member member;
    char endpoint[TRANSPORT_ENDPOINT_BYTES];
    uint64_t now_ms;
    lose_coordinator(&member, endpoint, &now_ms);
    member.outlast_ms = 5000;
    advance(&member, &now_ms, MEMBER_CLOSED_MS + 4500);
    assert_true(member.is_alone && !member.is_stopped);
    advance(&member, &now_ms, 1000);
    assert_true(member.is_stopped);
    assert_int_equal(member.stop_status, STATUS_UNREACHABLE);
    assert_non_null(strstr(member.stop_text, "none has come back within 5 s (--outlast)"));
    channel_destroy(member.channel, 0);
}

static void a_member_that_cannot_go_on_alone_stops_at_once(void **state)
{
    (void)state;
    struct member member;
    char endpoint[TRANSPORT_ENDPOINT_BYTES];
    uint64_t now_ms;
    lose_coordinator(&member, endpoint, &now_ms);
    advance(&member, &now_ms, MEMBER_CLOSED_MS + 500);
    assert_true(member.is_stopped && !member.is_alone);
    assert_int_equal(member.stop_status, STATUS_UNREACHABLE);
    channel_destroy(member.channel, 0);
}

static void what_it_said_last_is_received_before_a_coordinator_counts_as_lost(void **state)
{
    (void)state;
    struct member member;
    struct channel *channel;
    struct envelope envelope;
    struct message message;
    char endpoint[TRANSPORT_ENDPOINT_BYTES];
    uint64_t now_ms = 100000;
    listen_at(&channel, "tcp://127.0.0.1:*", endpoint);
    member = (struct member){.self = {.role = ROLE_WORKER, .host = "node", .rank = 3},
                             .endpoint = endpoint,
                             .patience_ms = 60000,
                             .coordinator_heard_ms = now_ms,
                             .outlast_ms = 60000};
    assert_int_equal(channel_create(&member.channel), STATUS_OK);
    assert_int_equal(channel_secure(member.channel, &test_insecure), STATUS_OK);
    assert_int_equal(member_connect(&member, endpoint), STATUS_OK);
    const struct message join = {.kind = MESSAGE_JOIN, .member = &member.self, .text = ""};
    assert_int_equal(channel_send(member.channel, member.coordinator, &join, NULL, NULL),
                     STATUS_OK);
    while (channel_receive(channel, 10000, &envelope, &message) != STATUS_OK) {
    }
    const struct message first = {.kind = MESSAGE_HEARTBEAT, .text = ""};
    const struct message stop = {.kind = MESSAGE_STOP, .text = "completed"};
    assert_int_equal(channel_send(channel, envelope.peer, &first, NULL, NULL), STATUS_OK);
    assert_int_equal(channel_send(channel, envelope.peer, &stop, NULL, NULL), STATUS_OK);
    envelope_release(&envelope);
    channel_destroy(channel, 5000);
    while (channel_receive(member.channel, 10000, &envelope, &message) != STATUS_OK) {
    }
    envelope_release(&envelope);
    for (uint32_t turn = 0; turn < 200 && !member.is_stopped; turn++) {
        advance(&member, &now_ms,
                UINT64_C(20) * MEMBER_CLOSED_MS); // a thread that is busy with others
        assert_false(member.is_alone);
        if (turn > 100 && channel_receive(member.channel, 10, &envelope, &message) == STATUS_OK) {
            assert_true(member_handle(&member, &envelope, &message));
            envelope_release(&envelope);
        }
        member.coordinator_heard_ms = now_ms; // it is not silent
    }
    assert_true(member.is_stopped);
    assert_int_equal(member.stop_status, STATUS_OK);
    channel_destroy(member.channel, 0);
}

/* It was stopped, or the network is cut and nobody says so. */
static void a_silent_coordinator_is_missed_like_a_killed_one(void **state)
{
    (void)state;
    struct channel *channel;
    char endpoint[TRANSPORT_ENDPOINT_BYTES];
    uint64_t now_ms = 100000;
    uint32_t rank;
    listen_at(&channel, "tcp://127.0.0.1:*", endpoint);
    struct member member = {.self = {.role = ROLE_WORKER, .host = "node", .rank = 3},
                            .endpoint = endpoint,
                            .patience_ms = 4000,
                            .coordinator_heard_ms = now_ms,
                            .outlast_ms = 60000};
    assert_int_equal(channel_create(&member.channel), STATUS_OK);
    assert_int_equal(channel_secure(member.channel, &test_insecure), STATUS_OK);
    assert_int_equal(member_connect(&member, endpoint), STATUS_OK);
    advance(&member, &now_ms, 1000);
    for (uint64_t step = 8; now_ms < 103900; now_ms += 100) {
        member_tick(&member, now_ms, step++); // it trains on
    }
    assert_false(member.is_alone);
    advance(&member, &now_ms, 1000);
    assert_true(member.is_alone && member.must_knock && !member.is_stopped);
    assert_int_equal(member.lost_ms, 100000);
    assert_int_equal(member.alone_step, 7); // at the last sign
    struct wire_back said = {.sum_round = 4};
    member_describe(&member, now_ms, now_ms, &said);
    assert_int_equal(said.trained_ms, 1); // it has just begun
    member_describe(&member, 0, now_ms, &said);
    assert_int_equal(said.trained_ms, 0);
    assert_int_equal(said.alone_ms, now_ms - 100000);
    struct message back = {.kind = MESSAGE_BACK, .back = &said};
    const struct job job = SAMPLE_JOB("mode=ring", "workers=4");
    member_knock(&member, &job, &back);
    assert_int_equal(receive_kind(channel, &rank), MESSAGE_BACK); // by the new connection
    channel_destroy(channel, 0);
    channel_destroy(member.channel, 0);
}

/* Its heartbeats had waited in the network, and come together before it hears that others have
 * missed it. */
static void who_has_missed_nothing_yet_counts_from_before_the_silence(void **state)
{
    (void)state;
    for (unsigned is_later = 0; is_later < 2; is_later++) {
        struct channel *channel;
        char endpoint[TRANSPORT_ENDPOINT_BYTES];
        uint64_t now_ms = 100000;
        listen_at(&channel, "tcp://127.0.0.1:*", endpoint);
        struct member member = {.self = {.role = ROLE_WORKER, .host = "node", .rank = 3},
                                .endpoint = endpoint,
                                .patience_ms = 4000,
                                .coordinator_heard_ms = now_ms,
                                .outlast_ms = 60000};
        assert_int_equal(channel_create(&member.channel), STATUS_OK);
        assert_int_equal(channel_secure(member.channel, &test_insecure), STATUS_OK);
        assert_int_equal(member_connect(&member, endpoint), STATUS_OK);
        member_tick(&member, now_ms, 7);
        for (uint64_t step = 8; now_ms < 103800; now_ms += 100) {
            member_tick(&member, now_ms, step++); // it trains on
        }
        for (uint64_t end_ms = is_later ? 130000 : 103900; now_ms <= end_ms; now_ms += 100) {
            member.coordinator_heard_ms = now_ms;
            member_tick(&member, now_ms, 60);
        }
        assert_false(member.is_alone);
        member_come_back(&member, now_ms);
        assert_true(member.is_alone && member.must_knock);
        assert_int_equal(member.lost_ms, is_later ? 130000 : 100000);
        assert_int_equal(member.alone_step, is_later ? 60 : 7);
        channel_destroy(channel, 0);
        channel_destroy(member.channel, 0);
    }
}

static void one_that_is_asked_comes_back_by_the_connection_that_it_has(void **state)
{
    (void)state;
    struct member member = {.coordinator = 9, .outlast_ms = 60000, .coordinator_heard_ms = 1};
    const struct envelope envelope = {.peer = 9};
    const struct message ask = {.kind = MESSAGE_HEARTBEAT, .reason = STATUS_AGAIN, .text = ""};
    assert_true(member_handle(&member, &envelope, &ask));
    assert_true(member.is_alone && member.must_knock && member.closed_ms == 0);
    struct member ends = {.coordinator = 9};
    assert_true(member_handle(&ends, &envelope, &ask));
    assert_false(ends.is_alone || ends.must_knock);
}

/* Two coordinators at an endpoint, one after the other. */
struct successors {
    char endpoint[TRANSPORT_ENDPOINT_BYTES];
    struct channel *first;
};

static void *succeed(void *data)
{
    struct successors *of = data;
    struct channel *second;
    struct envelope envelope;
    struct message message;
    char again[TRANSPORT_ENDPOINT_BYTES];
    uint32_t rank;
    assert_int_equal(receive_kind(of->first, &rank), MESSAGE_JOIN);
    channel_destroy(of->first, 0); // it was killed
    listen_at(&second, of->endpoint, again);
    while (channel_receive(second, 10000, &envelope, &message) != STATUS_OK) {
    }
    assert_int_equal(message.kind, MESSAGE_JOIN);
    const struct message welcome = {
        .kind = MESSAGE_WELCOME, .rank = 3, .text = "workers=5\nmodel=lenet5\n"};
    assert_int_equal(channel_send(second, envelope.peer, &welcome, NULL, NULL), STATUS_OK);
    envelope_release(&envelope);
    channel_destroy(second, 5000);
    return NULL;
}

static void who_joins_again_asks_the_next_coordinator_if_one_is_lost(void **state)
{
    (void)state;
    struct successors of;
    pthread_t thread;
    struct job job;
    uint32_t rank;
    listen_at(&of.first, "tcp://127.0.0.1:*", of.endpoint);
    struct member member = {.self = {.role = ROLE_WORKER, .host = "node", .rank = 3},
                            .endpoint = of.endpoint,
                            .outlast_ms = 60000};
    assert_int_equal(channel_create(&member.channel), STATUS_OK);
    assert_int_equal(channel_secure(member.channel, &test_insecure), STATUS_OK);
    assert_int_equal(pthread_create(&thread, NULL, succeed, &of), 0);
    assert_int_equal(member_connect(&member, of.endpoint), STATUS_OK);
    assert_int_equal(member_join(&member, of.endpoint, 60000, &never, &job, &rank), STATUS_OK);
    assert_int_equal(rank, 3);
    pthread_join(thread, NULL);
    channel_destroy(member.channel, 0);
}

/* The text of the next LEAVE. */
static void expect_leave(struct channel *channel, enum status reason, const char *text)
{
    struct envelope envelope;
    struct message message;
    while (channel_receive(channel, 10000, &envelope, &message) != STATUS_OK) {
    }
    assert_int_equal(message.kind, MESSAGE_LEAVE);
    assert_int_equal(message.reason, reason);
    assert_string_equal(message.text, text);
    envelope_release(&envelope);
}

static void a_worker_says_that_it_has_heard_the_verdict(void **state)
{
    (void)state;
    static const struct {
        enum member_role role;
        enum status verdict;
        bool answers; // a shard does so with DONE, and who goes on joins again
    } cases[] = {{ROLE_WORKER, STATUS_OK, true},
                 {ROLE_WORKER, STATUS_NOT_FINITE, true},
                 {ROLE_WORKER, STATUS_AGAIN, false},
                 {ROLE_SERVER, STATUS_OK, false}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct channel *channel;
        char endpoint[TRANSPORT_ENDPOINT_BYTES];
        listen_at(&channel, "tcp://127.0.0.1:*", endpoint);
        struct member member = {.self = {.role = cases[i].role}, .endpoint = endpoint};
        assert_int_equal(channel_create(&member.channel), STATUS_OK);
        assert_int_equal(channel_secure(member.channel, &test_insecure), STATUS_OK);
        assert_int_equal(member_connect(&member, endpoint), STATUS_OK);
        const struct envelope envelope = {.peer = member.coordinator};
        const struct message stop = {
            .kind = MESSAGE_STOP, .reason = cases[i].verdict, .text = "it is over"};
        assert_true(member_handle(&member, &envelope, &stop));
        assert_true(member.is_stopped && member.stop_status == cases[i].verdict);
        member_leave(&member, STATUS_IO, "later");
        if (cases[i].answers) {
            expect_leave(channel, STATUS_OK, "");
        }
        expect_leave(channel, STATUS_IO, "later");
        channel_destroy(member.channel, 0);
        channel_destroy(channel, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_worker_says_that_it_has_heard_the_verdict),
        cmocka_unit_test(a_member_that_goes_on_alone_knocks_until_somebody_listens),
        cmocka_unit_test(a_member_that_nobody_comes_back_for_stops_in_time),
        cmocka_unit_test(a_member_that_cannot_go_on_alone_stops_at_once),
        cmocka_unit_test(what_it_said_last_is_received_before_a_coordinator_counts_as_lost),
        cmocka_unit_test(a_silent_coordinator_is_missed_like_a_killed_one),
        cmocka_unit_test(who_has_missed_nothing_yet_counts_from_before_the_silence),
        cmocka_unit_test(one_that_is_asked_comes_back_by_the_connection_that_it_has),
        cmocka_unit_test(who_joins_again_asks_the_next_coordinator_if_one_is_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
