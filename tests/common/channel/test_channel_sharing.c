/* Tests of channels on one host: values that stay where they are, headers that go by memory. */
#include "common/base/random.h"
#include "common/channel/channel.h"
#include "tests/support/common/channel_pair.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <pthread.h>

/* A pair that shares: the client's region is offered, and the server has mapped it. */
static void open_sharing_pair(struct channel_pair *pair, struct region *client,
                              struct region *server)
{
    channel_pair_open(pair);
    assert_int_equal(region_create(4096, client), STATUS_OK);
    assert_int_equal(region_create(4096, server), STATUS_OK);
    pair->client->job_id = pair->server->job_id = 5;
    channel_share(pair->client, client);
    channel_share(pair->server, server);
    assert_int_equal(channel_offer(pair->client, pair->to_server), STATUS_OK);
    struct envelope envelope;
    struct message got;
    while (pair->server->peers.count == 0) {
        assert_int_equal(channel_receive(pair->server, 10000, &envelope, &got), STATUS_INTERRUPTED);
    }
    while (!pair->client->peers.list[0]->sharing.may_borrow) {
        assert_int_equal(channel_receive(pair->client, 10000, &envelope, &got), STATUS_INTERRUPTED);
    }
}

static void close_sharing_pair(struct channel_pair *pair, struct region *client,
                               struct region *server)
{
    channel_pair_close(pair);
    region_destroy(client);
    region_destroy(server);
}

static void count_release(void *hint)
{
    ++*(int *)hint;
}

static void values_in_a_region_that_the_peer_has_mapped_are_read_where_they_lie(void **state)
{
    (void)state;
    struct channel_pair pair;
    struct region client, server;
    open_sharing_pair(&pair, &client, &server);
    float *values = client.bytes;
    values[10] = 1;
    int released = 0;
    const struct message sent = {.kind = MESSAGE_PUSH, .span = {0, 4}, .values = values + 10};
    assert_int_equal(channel_send(pair.client, pair.to_server, &sent, count_release, &released),
                     STATUS_OK);
    struct envelope envelope, kept;
    struct message got;
    assert_int_equal(channel_pair_receive(pair.server, &envelope, &got), STATUS_OK);
    values[10] = 2;
    assert_true(got.values[0] == 2);
    assert_ptr_equal(envelope.payload, got.values);
    assert_int_equal(envelope.payload_size, 16);
    assert_int_equal(pair.client->bytes_sent, pair.server->bytes_received);
    envelope_move(&kept, &envelope);
    envelope_release(&envelope);
    assert_ptr_equal(kept.payload, got.values);
    assert_int_equal(channel_receive(pair.client, 0, &envelope, &got), STATUS_TIMED_OUT);
    assert_int_equal(released, 0);
    envelope_release(&kept);
    while (released == 0) {
        assert_int_equal(channel_receive(pair.client, 10000, &envelope, &got), STATUS_INTERRUPTED);
    }
    assert_int_equal(released, 1);
    close_sharing_pair(&pair, &client, &server);
}

static void what_is_still_lent_when_a_channel_closes_is_released(void **state)
{
    (void)state;
    struct channel_pair pair;
    struct region client, server;
    open_sharing_pair(&pair, &client, &server);
    int released = 0;
    const struct message sent = {.kind = MESSAGE_PUSH, .span = {0, 4}, .values = client.bytes};
    assert_int_equal(channel_send(pair.client, pair.to_server, &sent, count_release, &released),
                     STATUS_OK);
    struct envelope envelope;
    struct message got;
    assert_int_equal(channel_pair_receive(pair.server, &envelope, &got), STATUS_OK);
    channel_close(pair.client, 0);
    assert_int_equal(released, 1);
    channel_close(pair.server, 0);
    envelope_release(&envelope); // after the close: nobody is told
    close_sharing_pair(&pair, &client, &server);
}

static void a_loan_that_does_not_fit_is_dropped(void **state)
{
    (void)state;
    struct channel_pair pair;
    struct region client, server;
    open_sharing_pair(&pair, &client, &server);
    const struct wire_loan loans[] = {{4096, 0}, {4092, 0}, {1, 0}, {UINT64_MAX, 0}};
    for (size_t i = 0; i < 4; i++) {
        struct message sent = {
            .kind = MESSAGE_PUSH, .job_id = 5, .span = {0, 4}, .loan = &loans[i]};
        unsigned char header[256];
        size_t size;
        assert_int_equal(wire_encode(&sent, header, sizeof(header), &size), STATUS_OK);
        assert_int_equal(transport_send(pair.client->transport, pair.to_server, header, size, NULL),
                         STATUS_OK);
        struct envelope envelope;
        struct message got;
        assert_int_equal(channel_pair_receive(pair.server, &envelope, &got), STATUS_INTERRUPTED);
        assert_int_equal(pair.server->dropped_count, i + 1);
    }
    close_sharing_pair(&pair, &client, &server);
}

static void a_peer_that_shares_nothing_gets_its_values_in_messages(void **state)
{
    (void)state;
    struct channel_pair pair;
    struct region region;
    channel_pair_open(&pair);
    assert_int_equal(region_create(4096, &region), STATUS_OK);
    channel_share(pair.client, &region);
    assert_int_equal(channel_offer(pair.client, pair.to_server), STATUS_OK);
    struct envelope envelope;
    struct message got;
    int released = 0;
    float *values = region.bytes;
    values[0] = 8;
    const struct message sent = {.kind = MESSAGE_PUSH, .span = {0, 1}, .values = values};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(channel_send(pair.client, pair.to_server, &sent, count_release, &released),
                         STATUS_OK);
        assert_int_equal(channel_pair_receive(pair.server, &envelope, &got), STATUS_OK);
        assert_true(got.values[0] == 8);
        envelope_release(&envelope);
        while (pair.client->sharing.refusal == STATUS_OK) {
            assert_int_equal(channel_receive(pair.client, 10000, &envelope, &got),
                             STATUS_INTERRUPTED);
        }
    }
    assert_int_equal(pair.client->sharing.refusal, STATUS_UNSUPPORTED);
    channel_pair_close(&pair);
    region_destroy(&region);
}

/* A sharing pair whose sides both post headers. */
static void open_posting_pair(struct channel_pair *pair, struct region *client,
                              struct region *server, uint64_t *ret_to_client)
{
    open_sharing_pair(pair, client, server);
    struct envelope envelope;
    struct message got;
    *ret_to_client = pair->server->peers.list[0]->number;
    assert_int_equal(channel_offer(pair->server, *ret_to_client), STATUS_OK);
    while (pair->client->peers.list[0]->sharing.view.bytes == NULL) {
        assert_int_equal(channel_receive(pair->client, 10000, &envelope, &got), STATUS_INTERRUPTED);
    }
    while (!pair->server->peers.list[0]->sharing.may_borrow) {
        assert_int_equal(channel_receive(pair->server, 10000, &envelope, &got), STATUS_INTERRUPTED);
    }
}

static void headers_by_memory_and_values_by_the_socket_keep_their_order(void **state)
{
    (void)state;
    struct channel_pair pair;
    struct region client, server;
    uint64_t to_client;
    open_posting_pair(&pair, &client, &server, &to_client);
    const float values[] = {1, 2, 3};
    struct random_sequence sequence = {4};
    uint64_t next = 0, socket_count = 0;
    for (uint64_t step = 0; step < 2000; step++) {
        struct message sent = {.kind = MESSAGE_PULL, .step = step};
        if (random_below(&sequence, 3) == 0) {
            sent = (struct message){
                .kind = MESSAGE_PUSH, .step = step, .span = {0, 3}, .values = values};
            socket_count++;
        }
        assert_int_equal(channel_send(pair.client, pair.to_server, &sent, NULL, NULL), STATUS_OK);
        // Now and then more than a queue can take.
        while (next <= step && random_below(&sequence, 100) != 0 && (step % 400 > 200)) {
            struct envelope envelope;
            struct message got;
            assert_int_equal(channel_pair_receive(pair.server, &envelope, &got), STATUS_OK);
            assert_int_equal(got.step, next++);
            envelope_release(&envelope);
        }
    }
    while (next < 2000) {
        struct envelope envelope;
        struct message got;
        assert_int_equal(channel_pair_receive(pair.server, &envelope, &got), STATUS_OK);
        assert_int_equal(got.step, next++);
        envelope_release(&envelope);
    }
    assert_int_equal(pair.server->dropped_count, 0);
    assert_int_equal(pair.client->bytes_sent, pair.server->bytes_received);
    assert_in_range(pair.client->mail.peers[0]->sent, socket_count, 1999); // the rest was posted
    close_sharing_pair(&pair, &client, &server);
}

/* Without a wait between them: more than are taken before sockets are looked at. */
static void what_waits_is_there_at_once(void **state)
{
    (void)state;
    struct channel_pair pair;
    struct region client, server;
    uint64_t to_client;
    open_posting_pair(&pair, &client, &server, &to_client);
    struct envelope envelope;
    struct message got;
    uint64_t sent = 0, taken = 0;
    while (taken < 300) {
        const struct message message = {.kind = MESSAGE_PULL, .step = sent};
        while (sent < taken + 40) {
            assert_int_equal(channel_send(pair.client, pair.to_server, &message, NULL, NULL),
                             STATUS_OK);
            sent++;
        }
        assert_int_equal(channel_receive(pair.server, 0, &envelope, &got), STATUS_OK);
        envelope_release(&envelope);
        taken++;
    }
    close_sharing_pair(&pair, &client, &server);
}

static void *answer_all(void *data)
{
    struct channel *channel = data;
    struct envelope envelope;
    struct message got;
    do {
        if (channel_pair_receive(channel, &envelope, &got) != STATUS_OK) {
            return NULL; // the other side waits in vain, and fails
        }
        const struct message answer = {.kind = MESSAGE_PULL, .step = got.step + 1};
        if (channel_send(channel, envelope.peer, &answer, NULL, NULL) != STATUS_OK) {
            return NULL;
        }
        envelope_release(&envelope);
    } while (got.kind != MESSAGE_PUSH);
    return NULL;
}

static void who_sleeps_is_woken_by_what_is_posted(void **state)
{
    (void)state;
    struct channel_pair pair;
    struct region client, server;
    uint64_t to_client;
    open_posting_pair(&pair, &client, &server, &to_client);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, answer_all, pair.server), 0);
    struct envelope envelope;
    struct message got;
    const float value = 1;
    for (uint64_t step = 0; step < 3000; step += 2) {
        struct message sent = {.kind = MESSAGE_PULL, .step = step};
        if (step == 2998) {
            sent.kind = MESSAGE_PUSH;
            sent.span.count = 1;
            sent.values = &value;
        }
        assert_int_equal(channel_send(pair.client, pair.to_server, &sent, NULL, NULL), STATUS_OK);
        assert_int_equal(channel_pair_receive(pair.client, &envelope, &got), STATUS_OK);
        assert_int_equal(got.step, step + 1);
        envelope_release(&envelope);
    }
    pthread_join(thread, NULL);
    assert_int_equal(pair.client->mail.peers[0]->sent, 1); // the last
    close_sharing_pair(&pair, &client, &server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_in_a_region_that_the_peer_has_mapped_are_read_where_they_lie),
        cmocka_unit_test(what_is_still_lent_when_a_channel_closes_is_released),
        cmocka_unit_test(a_loan_that_does_not_fit_is_dropped),
        cmocka_unit_test(a_peer_that_shares_nothing_gets_its_values_in_messages),
        cmocka_unit_test(headers_by_memory_and_values_by_the_socket_keep_their_order),
        cmocka_unit_test(what_waits_is_there_at_once),
        cmocka_unit_test(who_sleeps_is_woken_by_what_is_posted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
