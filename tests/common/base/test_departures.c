/* Tests of whose connections were closed: by descriptor, and by real connections. */
#include "common/base/departures.h"
#include "common/transport/transport.h"
#include "tests/support/common/insecure.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on

#define LINGER_MS 10000 // for what is sent to leave

static void a_peer_whose_descriptor_is_closed_is_named_once(void **state)
{
    (void)state;
    struct departures departures = {0};
    uint64_t peer;
    departures_close(&departures, 5); // nobody spoke by it
    assert_false(departures_take(&departures, &peer));
    departures_note(&departures, 5, 71);
    departures_note(&departures, 3000, 72);
    assert_true(departures_know(&departures, 5, 71));
    assert_false(departures_know(&departures, 5, 72));
    assert_false(departures_take(&departures, &peer));
    departures_close(&departures, 5);
    departures_close(&departures, 5);
    assert_true(departures_take(&departures, &peer));
    assert_int_equal(peer, 71);
    assert_false(departures_take(&departures, &peer));
    assert_true(departures_know(&departures, 3000, 72));
    departures_finish(&departures);
}

static void descriptors_that_are_none_do_no_harm(void **state)
{
    (void)state;
    struct departures departures = {0};
    uint64_t peer;
    departures_note(&departures, -1, 71);
    departures_close(&departures, -1);
    departures_note(&departures, 1 << 30, 71);
    departures_close(&departures, 1 << 30);
    assert_false(departures_take(&departures, &peer));
    departures_finish(&departures);
}

static void a_peer_that_nothing_can_be_sent_to_is_named_once(void **state)
{
    (void)state;
    struct departures departures = {0};
    uint64_t peer;
    departures_note(&departures, 5, 71);
    departures_note(&departures, 6, 72);
    departures_lose(&departures, 71);
    departures_lose(&departures, 71);
    departures_lose(&departures, 99); // who has not been heard
    departures_close(&departures, 5);
    assert_true(departures_take(&departures, &peer));
    assert_int_equal(peer, 71);
    assert_false(departures_take(&departures, &peer));
    assert_true(departures_know(&departures, 6, 72));
    departures_finish(&departures);
}

static uint64_t receive_from(struct transport *transport)
{
    struct envelope envelope;
    while (transport_receive(transport, 100, &envelope) != STATUS_OK) {
    }
    uint64_t peer = envelope.peer;
    envelope_release(&envelope);
    return peer;
}

/* Both sides learn it, by either way. */
static void the_end_of_a_peer_is_noted_on_both_sides(void **state)
{
    (void)state;
    const char *const ways[] = {"tcp://127.0.0.1:*", "ipc://*"};
    for (size_t i = 0; i < 2; i++) {
        struct transport *server, *first, *second;
        struct envelope envelope;
        char endpoint[TRANSPORT_ENDPOINT_BYTES];
        uint64_t to_server, by_second, peer;
        assert_int_equal(transport_create(&server), STATUS_OK);
        assert_int_equal(transport_create(&first), STATUS_OK);
        assert_int_equal(transport_create(&second), STATUS_OK);
        assert_int_equal(transport_secure(server, &test_insecure), STATUS_OK);
        assert_int_equal(transport_secure(first, &test_insecure), STATUS_OK);
        assert_int_equal(transport_secure(second, &test_insecure), STATUS_OK);
        struct departures *departures = transport_note_departures(server);
        assert_int_equal(transport_bind(server, ways[i], endpoint), STATUS_OK);
        assert_int_equal(transport_connect(first, endpoint, &to_server), STATUS_OK);
        assert_false(transport_has_left(first, to_server));
        assert_int_equal(transport_connect(second, endpoint, &by_second), STATUS_OK);
        assert_int_equal(transport_send(first, to_server, "one", 3, NULL), STATUS_OK);
        uint64_t first_peer = receive_from(server);
        assert_int_equal(transport_send(second, by_second, "two", 3, NULL), STATUS_OK);
        assert_true(receive_from(server) != first_peer);
        assert_false(departures_take(departures, &peer));
        transport_destroy(second, 0);
        while (!departures_take(departures, &peer)) {
            assert_true(transport_receive(server, 100, &envelope) != STATUS_OK);
        }
        assert_true(peer != first_peer);
        assert_false(departures_take(departures, &peer));
        assert_false(transport_has_left(first, to_server));
        transport_destroy(server, 0);
        while (!transport_has_left(first, to_server)) {
            assert_true(transport_receive(first, 100, &envelope) != STATUS_OK);
        }
        transport_destroy(first, 0);
    }
}

/* As of a process that has asked to join, and has ended, before anybody listened: libzmq tells of
 * its end before its message is received. */
static void a_peer_that_had_gone_before_it_was_heard_is_noted_when_it_is_answered(void **state)
{
    (void)state;
    struct transport *server, *client;
    char endpoint[TRANSPORT_ENDPOINT_BYTES];
    uint64_t to_server, peer;
    assert_int_equal(transport_create(&server), STATUS_OK);
    assert_int_equal(transport_create(&client), STATUS_OK);
    assert_int_equal(transport_secure(server, &test_insecure), STATUS_OK);
    assert_int_equal(transport_secure(client, &test_insecure), STATUS_OK);
    struct departures *departures = transport_note_departures(server);
    assert_int_equal(transport_bind(server, "ipc://*", endpoint), STATUS_OK);
    assert_int_equal(transport_connect(client, endpoint, &to_server), STATUS_OK);
    assert_int_equal(transport_send(client, to_server, "join", 4, NULL), STATUS_OK);
    transport_destroy(client, LINGER_MS);
    uint64_t from = receive_from(server);
    while (transport_send(server, from, "soon", 4, NULL) == STATUS_OK) {
    }
    assert_true(departures_take(departures, &peer));
    assert_int_equal(peer, from);
    assert_false(departures_take(departures, &peer));
    transport_destroy(server, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_peer_whose_descriptor_is_closed_is_named_once),
        cmocka_unit_test(descriptors_that_are_none_do_no_harm),
        cmocka_unit_test(a_peer_that_nothing_can_be_sent_to_is_named_once),
        cmocka_unit_test(the_end_of_a_peer_is_noted_on_both_sides),
        cmocka_unit_test(a_peer_that_had_gone_before_it_was_heard_is_noted_when_it_is_answered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
