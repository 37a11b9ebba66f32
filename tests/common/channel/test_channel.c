/* Tests of channels: messages that arrive, noise that is dropped, versions that differ. */
#include "common/channel/channel.h"
#include "tests/support/common/captured_log.h"
#include "tests/support/common/channel_pair.h"
#include "tests/support/common/insecure.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdio.h>
#include <string.h>

static void a_message_arrives_with_its_values_and_the_job_id(void **state)
{
    (void)state;
    struct channel_pair pair;
    channel_pair_open(&pair);
    const float values[] = {1, 2, 3};
    const struct message sent = {
        .kind = MESSAGE_PUSH, .rank = 2, .step = 7, .span = {4, 3}, .values = values};
    pair.client->job_id = 99;
    assert_int_equal(channel_send(pair.client, pair.to_server, &sent, NULL, NULL), STATUS_OK);
    struct envelope envelope;
    struct message got;
    assert_int_equal(channel_pair_receive(pair.server, &envelope, &got), STATUS_OK);
    assert_int_equal(got.kind, MESSAGE_PUSH);
    assert_int_equal(got.job_id, 99);
    assert_memory_equal(got.values, values, sizeof(values));
    assert_int_equal(pair.client->bytes_sent, pair.server->bytes_received);
    assert_true(pair.client->bytes_sent > sizeof(values));
    envelope_release(&envelope);
    channel_pair_close(&pair);
}

static void noise_is_dropped_and_counted_and_the_next_message_comes(void **state)
{
    (void)state;
    struct channel_pair pair;
    channel_pair_open(&pair);
    struct envelope envelope;
    struct message got;
    for (unsigned i = 1; i <= 30; i++) {
        assert_int_equal(transport_send(pair.client->transport, pair.to_server, "noise", 5, NULL),
                         STATUS_OK);
        assert_int_equal(channel_pair_receive(pair.server, &envelope, &got), STATUS_INTERRUPTED);
        assert_int_equal(pair.server->dropped_count, i);
    }
    const struct message sent = {.kind = MESSAGE_HEARTBEAT, .step = 3};
    assert_int_equal(channel_send(pair.client, pair.to_server, &sent, NULL, NULL), STATUS_OK);
    assert_int_equal(channel_pair_receive(pair.server, &envelope, &got), STATUS_OK);
    assert_int_equal(got.step, 3);
    envelope_release(&envelope);
    channel_pair_close(&pair);
}

static void another_protocol_version_is_a_mismatch_and_says_from_whom(void **state)
{
    (void)state;
    struct channel_pair pair;
    channel_pair_open(&pair);
    // Field 1, the version, is 2; field 2, the kind, is JOIN.
    const unsigned char header[] = {0x08, WIRE_VERSION + 1, 0x10, 0x01};
    assert_int_equal(
        transport_send(pair.client->transport, pair.to_server, header, sizeof(header), NULL),
        STATUS_OK);
    struct envelope envelope;
    struct message got;
    assert_int_equal(channel_pair_receive(pair.server, &envelope, &got), STATUS_MISMATCH);
    const struct message refusal = {.kind = MESSAGE_REFUSE, .text = "no"};
    pair.server->job_id = 99;
    assert_int_equal(channel_send(pair.server, envelope.peer, &refusal, NULL, NULL), STATUS_OK);
    assert_int_equal(channel_pair_receive(pair.client, &envelope, &got), STATUS_OK);
    assert_string_equal(got.text, "no");
    assert_int_equal(got.job_id, 0); // who is refused does not learn it
    envelope_release(&envelope);
    channel_pair_close(&pair);
}

/* A pair whose messages have seals: the client has connected to where the server listens. Its
 * coordinator would be a peer of its own, which is none here. */
static void open_sealed_pair(struct channel_pair *pair)
{
    const unsigned char key[SEALS_KEY_BYTES] = "for tests";
    const struct endpoints_wish wish = {.address = "127.0.0.1", .port_range = ""};
    char place[ENDPOINTS_PLACE_BYTES];
    assert_int_equal(channel_create(&pair->server), STATUS_OK);
    assert_int_equal(channel_secure(pair->server, &test_insecure), STATUS_OK);
    assert_int_equal(channel_create(&pair->client), STATUS_OK);
    assert_int_equal(channel_secure(pair->client, &test_insecure), STATUS_OK);
    channel_seal(pair->server, key, UINT64_MAX);
    channel_seal(pair->client, key, UINT64_MAX);
    assert_int_equal(channel_listen(pair->server, TRANSPORT_TCP, &wish, place), STATUS_OK);
    assert_int_equal(channel_meet(pair->client, place, TRANSPORT_TCP, &pair->to_server), STATUS_OK);
}

static void sealed_messages_arrive_and_are_answered(void **state)
{
    (void)state;
    struct channel_pair pair;
    struct envelope envelope;
    struct message got;
    const float values[] = {1, 2, 3};
    open_sealed_pair(&pair);
    for (unsigned i = 0; i < 3; i++) {
        const struct message push = {
            .kind = MESSAGE_PUSH, .step = i, .span = {4, 3}, .values = values};
        assert_int_equal(channel_send(pair.client, pair.to_server, &push, NULL, NULL), STATUS_OK);
        assert_int_equal(channel_pair_receive(pair.server, &envelope, &got), STATUS_OK);
        assert_int_equal(got.step, i);
        assert_memory_equal(got.values, values, sizeof(values));
        const struct message params = {
            .kind = MESSAGE_PARAMS, .step = 10 + i, .span = {4, 3}, .values = values};
        assert_int_equal(channel_send(pair.server, envelope.peer, &params, NULL, NULL), STATUS_OK);
        envelope_release(&envelope);
        assert_int_equal(channel_pair_receive(pair.client, &envelope, &got), STATUS_OK);
        assert_int_equal(got.step, 10 + i);
        envelope_release(&envelope);
    }
    assert_int_equal(pair.server->dropped_count + pair.client->dropped_count, 0);
    channel_pair_close(&pair);
}

static void a_message_without_its_seal_is_dropped_and_the_next_one_comes(void **state)
{
    (void)state;
    struct channel_pair pair;
    struct envelope envelope;
    struct message got;
    unsigned char header[256];
    size_t size;
    const struct message push = {.kind = MESSAGE_PULL, .step = 6};
    open_sealed_pair(&pair);
    // A good header with nothing behind it, with zeros, and no header at all.
    assert_int_equal(wire_encode(&push, header, sizeof(header), &size), STATUS_OK);
    memset(header + size, 0, SEAL_BYTES);
    const size_t sizes[] = {size, size + SEAL_BYTES, 3};
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(
            transport_send(pair.client->transport, pair.to_server, header, sizes[i], NULL),
            STATUS_OK);
        captured_log_begin();
        enum status status = channel_pair_receive(pair.server, &envelope, &got);
        const char *said = captured_log_end();
        assert_int_equal(status, STATUS_INTERRUPTED);
        assert_int_equal(pair.server->dropped_count, i + 1);
        assert_non_null(strstr(said, "whose seal is not the next one: from=127.0.0.1"));
    }
    assert_int_equal(channel_send(pair.client, pair.to_server, &push, NULL, NULL), STATUS_OK);
    assert_int_equal(channel_pair_receive(pair.server, &envelope, &got), STATUS_OK);
    assert_int_equal(got.step, 6);
    envelope_release(&envelope);
    channel_pair_close(&pair);
}

/* Another connection to the server, which *ret_peer is there. */
static struct transport *open_other(const struct channel_pair *pair, uint64_t *ret_peer)
{
    struct transport *other;
    char endpoint[TRANSPORT_ENDPOINT_BYTES];
    assert_int_equal(transport_create(&other), STATUS_OK);
    assert_int_equal(transport_secure(other, &test_insecure), STATUS_OK);
    assert_int_equal(transport_bind(pair->server->transport, "tcp://127.0.0.1:*", endpoint),
                     STATUS_OK);
    assert_int_equal(transport_connect(other, endpoint, ret_peer), STATUS_OK);
    return other;
}

static void what_was_recorded_cannot_be_said_again(void **state)
{
    (void)state;
    struct channel_pair pair;
    struct envelope envelope;
    struct message got;
    open_sealed_pair(&pair);
    const struct message pull = {.kind = MESSAGE_PULL, .step = 6};
    assert_int_equal(channel_send(pair.client, pair.to_server, &pull, NULL, NULL), STATUS_OK);
    unsigned char recorded[sizeof(pair.client->header)];
    memcpy(recorded, pair.client->header, sizeof(recorded));
    assert_int_equal(channel_pair_receive(pair.server, &envelope, &got), STATUS_OK);
    size_t size = envelope.header_size + SEAL_BYTES;
    envelope_release(&envelope);
    // On the same connection, and on one of somebody else.
    uint64_t peer;
    struct transport *other = open_other(&pair, &peer);
    assert_int_equal(transport_send(pair.client->transport, pair.to_server, recorded, size, NULL),
                     STATUS_OK);
    assert_int_equal(channel_pair_receive(pair.server, &envelope, &got), STATUS_INTERRUPTED);
    assert_int_equal(transport_send(other, peer, recorded, size, NULL), STATUS_OK);
    assert_int_equal(channel_pair_receive(pair.server, &envelope, &got), STATUS_INTERRUPTED);
    assert_int_equal(pair.server->dropped_count, 2);
    transport_destroy(other, 0);
    channel_pair_close(&pair);
}

static const char *drop_foreign(struct channel_pair *pair)
{
    struct envelope envelope;
    struct message got;
    const struct message pull = {.kind = MESSAGE_PULL, .step = 6};
    assert_int_equal(channel_send(pair->client, pair->to_server, &pull, NULL, NULL), STATUS_OK);
    assert_int_equal(channel_pair_receive(pair->server, &envelope, &got), STATUS_OK);
    captured_log_begin();
    channel_note_dropped(pair->server, &envelope, &got, STATUS_MALFORMED);
    const char *said = captured_log_end();
    envelope_release(&envelope);
    return said;
}

/* Its host was cut off, say, and its words arrive late. Nobody is to look for a fault there. */
static void what_a_process_says_that_others_have_gone_on_without_is_no_warning(void **state)
{
    (void)state;
    struct channel_pair pair;
    open_sealed_pair(&pair);
    pair.client->job_id = 6;
    assert_string_equal(drop_foreign(&pair), ""); // the server has not been told its own
    pair.server->job_id = 7;
    assert_non_null(strstr(drop_foreign(&pair), "dropped a PULL of another job: from="));
    pair.server->has_gone_on = true;
    assert_string_equal(drop_foreign(&pair), "");
    assert_int_equal(pair.server->dropped_count, 3);
    channel_pair_close(&pair);
}

/* As after libzmq has made the connection anew: the transport knows it by another number. */
static void a_stream_that_comes_by_another_connection_is_answered_there(void **state)
{
    (void)state;
    struct channel_pair pair;
    struct envelope envelope;
    struct message got;
    const struct message pull = {.kind = MESSAGE_PULL, .step = 6};
    open_sealed_pair(&pair);
    assert_int_equal(channel_send(pair.client, pair.to_server, &pull, NULL, NULL), STATUS_OK);
    assert_int_equal(channel_pair_receive(pair.server, &envelope, &got), STATUS_OK);
    uint64_t before = envelope.peer;
    envelope_release(&envelope);

    unsigned char header[256];
    size_t size;
    assert_int_equal(wire_encode(&pull, header, sizeof(header), &size), STATUS_OK);
    const struct sealed sealed = {header, size, 0};
    const struct peer *server = peers_find(&pair.client->peers, pair.to_server);
    assert_int_equal(seals_make(&pair.client->seals, server->stream, &sealed, header + size),
                     STATUS_OK);
    uint64_t peer;
    struct transport *other = open_other(&pair, &peer);
    assert_int_equal(transport_send(other, peer, header, size + SEAL_BYTES, NULL), STATUS_OK);
    assert_int_equal(channel_pair_receive(pair.server, &envelope, &got), STATUS_OK);
    assert_int_not_equal(envelope.peer, before);
    assert_int_equal(channel_send(pair.server, before, &pull, NULL, NULL), STATUS_UNREACHABLE);
    assert_int_equal(channel_send(pair.server, envelope.peer, &pull, NULL, NULL), STATUS_OK);
    envelope_release(&envelope);
    transport_destroy(other, 0);
    channel_pair_close(&pair);
}

static void a_place_without_a_name_is_no_way_for_sealed_messages(void **state)
{
    (void)state;
    struct channel *channel;
    uint64_t peer;
    const unsigned char key[SEALS_KEY_BYTES] = "for tests";
    assert_int_equal(channel_create(&channel), STATUS_OK);
    assert_int_equal(channel_secure(channel, &test_insecure), STATUS_OK);
    channel_seal(channel, key, UINT64_MAX);
    captured_log_begin();
    enum status status =
        channel_meet(channel, "00000000000000ab tcp://127.0.0.1:5555", TRANSPORT_TCP, &peer);
    captured_log_end();
    assert_int_equal(status, STATUS_INVALID);
    channel_destroy(channel, 0);
}

static void a_greeting_is_for_the_channel_alone(void **state)
{
    (void)state;
    struct channel_pair pair;
    struct envelope envelope;
    struct message got;
    channel_pair_open(&pair);
    struct message greeting = {.kind = MESSAGE_GREET};
    const struct message next = {.kind = MESSAGE_HEARTBEAT, .step = 3};
    assert_int_equal(channel_send(pair.client, pair.to_server, &greeting, NULL, NULL), STATUS_OK);
    assert_int_equal(channel_send(pair.client, pair.to_server, &next, NULL, NULL), STATUS_OK);
    enum status status;
    do {
        status = channel_receive(pair.server, 10000, &envelope, &got);
    } while (status == STATUS_INTERRUPTED);
    assert_int_equal(got.step, 3);
    assert_int_equal(pair.server->dropped_count, 0);
    envelope_release(&envelope);
    // Of another job it is none.
    pair.server->job_id = 9;
    assert_int_equal(channel_send(pair.client, pair.to_server, &greeting, NULL, NULL), STATUS_OK);
    assert_int_equal(channel_pair_receive(pair.server, &envelope, &got), STATUS_INTERRUPTED);
    assert_int_equal(pair.server->dropped_count, 1);
    channel_pair_close(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_message_arrives_with_its_values_and_the_job_id),
        cmocka_unit_test(noise_is_dropped_and_counted_and_the_next_message_comes),
        cmocka_unit_test(another_protocol_version_is_a_mismatch_and_says_from_whom),
        cmocka_unit_test(sealed_messages_arrive_and_are_answered),
        cmocka_unit_test(a_message_without_its_seal_is_dropped_and_the_next_one_comes),
        cmocka_unit_test(what_was_recorded_cannot_be_said_again),
        cmocka_unit_test(what_a_process_says_that_others_have_gone_on_without_is_no_warning),
        cmocka_unit_test(a_stream_that_comes_by_another_connection_is_answered_there),
        cmocka_unit_test(a_place_without_a_name_is_no_way_for_sealed_messages),
        cmocka_unit_test(a_greeting_is_for_the_channel_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
