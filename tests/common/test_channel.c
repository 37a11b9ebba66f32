/* Tests of channels: messages that arrive, noise that is dropped, versions that differ. */
#include "common/channel.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdio.h>
#include <string.h>

struct pair {
    struct channel *server, *client;
    uint64_t to_server;
};

static void open_pair(struct pair *pair)
{
    char endpoint[TRANSPORT_ENDPOINT_BYTES];
    assert_int_equal(channel_create(&pair->server), STATUS_OK);
    assert_int_equal(channel_create(&pair->client), STATUS_OK);
    assert_int_equal(transport_bind(pair->server->transport, "ipc://*", endpoint), STATUS_OK);
    assert_int_equal(transport_connect(pair->client->transport, endpoint, &pair->to_server),
                     STATUS_OK);
}

static void close_pair(struct pair *pair)
{
    channel_destroy(pair->client, 0);
    channel_destroy(pair->server, 0);
}

/* What the next message does; a wake counts for nothing. */
static enum status receive(struct channel *channel, struct envelope *envelope,
                           struct message *message)
{
    uint64_t dropped = channel->dropped_count;
    enum status status;
    do {
        status = channel_receive(channel, 10000, envelope, message);
    } while (status == STATUS_INTERRUPTED && channel->dropped_count == dropped);
    return status;
}

static void a_message_arrives_with_its_values_and_the_job_id(void **state)
{
    (void)state;
    struct pair pair;
    open_pair(&pair);
    const float values[] = {1, 2, 3};
    const struct message sent = {
        .kind = MESSAGE_PUSH, .rank = 2, .step = 7, .span = {4, 3}, .values = values};
    pair.client->job_id = 99;
    assert_int_equal(channel_send(pair.client, pair.to_server, &sent, NULL, NULL), STATUS_OK);
    struct envelope envelope;
    struct message got;
    assert_int_equal(receive(pair.server, &envelope, &got), STATUS_OK);
    assert_int_equal(got.kind, MESSAGE_PUSH);
    assert_int_equal(got.job_id, 99);
    assert_memory_equal(got.values, values, sizeof(values));
    assert_int_equal(pair.client->bytes_sent, pair.server->bytes_received);
    assert_true(pair.client->bytes_sent > sizeof(values));
    envelope_release(&envelope);
    close_pair(&pair);
}

static void noise_is_dropped_and_counted_and_the_next_message_comes(void **state)
{
    (void)state;
    struct pair pair;
    open_pair(&pair);
    struct envelope envelope;
    struct message got;
    for (unsigned i = 1; i <= 30; i++) {
        assert_int_equal(transport_send(pair.client->transport, pair.to_server, "noise", 5, NULL),
                         STATUS_OK);
        assert_int_equal(receive(pair.server, &envelope, &got), STATUS_INTERRUPTED);
        assert_int_equal(pair.server->dropped_count, i);
    }
    const struct message sent = {.kind = MESSAGE_HEARTBEAT, .step = 3};
    assert_int_equal(channel_send(pair.client, pair.to_server, &sent, NULL, NULL), STATUS_OK);
    assert_int_equal(receive(pair.server, &envelope, &got), STATUS_OK);
    assert_int_equal(got.step, 3);
    envelope_release(&envelope);
    close_pair(&pair);
}

static void another_protocol_version_is_a_mismatch_and_says_from_whom(void **state)
{
    (void)state;
    struct pair pair;
    open_pair(&pair);
    // Field 1, the version, is 2; field 2, the kind, is JOIN.
    const unsigned char header[] = {0x08, WIRE_VERSION + 1, 0x10, 0x01};
    assert_int_equal(
        transport_send(pair.client->transport, pair.to_server, header, sizeof(header), NULL),
        STATUS_OK);
    struct envelope envelope;
    struct message got;
    assert_int_equal(receive(pair.server, &envelope, &got), STATUS_MISMATCH);
    const struct message refusal = {.kind = MESSAGE_REFUSE, .text = "no"};
    assert_int_equal(channel_send(pair.server, envelope.peer, &refusal, NULL, NULL), STATUS_OK);
    assert_int_equal(receive(pair.client, &envelope, &got), STATUS_OK);
    assert_string_equal(got.text, "no");
    envelope_release(&envelope);
    close_pair(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_message_arrives_with_its_values_and_the_job_id),
        cmocka_unit_test(noise_is_dropped_and_counted_and_the_next_message_comes),
        cmocka_unit_test(another_protocol_version_is_a_mismatch_and_says_from_whom),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
