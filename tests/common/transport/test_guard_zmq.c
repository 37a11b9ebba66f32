/* Tests of transports with keys: who has the right ones comes in, and nobody else; those who do not
 * are told why, and counted. */
#include "common/base/log.h"
#include "common/transport/door.h"
#include "common/transport/transport.h"
#include "tests/support/common/captured_log.h"
#include "tests/support/common/insecure.h"
#include "tests/support/common/listener.h"
#include "tests/support/common/strangers.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define TURN_MS   20
#define TURNS_MAX 1000 // long enough for any machine

/* Two sets of keys, and one that knows the first server as another client. */
struct fixture {
    struct security first, second, mixed;
};

static void open_fixture(struct fixture *fixture)
{
    *fixture = (struct fixture){0};
    assert_int_equal(keys_generate(&fixture->first.keys), STATUS_OK);
    assert_int_equal(keys_generate(&fixture->second.keys), STATUS_OK);
    assert_int_equal(keys_generate(&fixture->mixed.keys), STATUS_OK);
    fixture->mixed.keys->server = fixture->first.keys->server;
}

static void close_fixture(struct fixture *fixture)
{
    security_close(&fixture->first);
    security_close(&fixture->second);
    security_close(&fixture->mixed);
}

struct pair {
    struct transport *server, *client;
    uint64_t to_server;
    char endpoint[TRANSPORT_ENDPOINT_BYTES];
};

/* What a test that fails leaves open. */
static struct {
    struct transport *server, *client;
} opened;

static void open_server(struct pair *pair, const struct security *security, const char *endpoint)
{
    *pair = (struct pair){0};
    assert_int_equal(transport_create(&pair->server), STATUS_OK);
    assert_int_equal(transport_secure(pair->server, security != NULL ? security : &test_insecure),
                     STATUS_OK);
    assert_int_equal(transport_bind(pair->server, endpoint, pair->endpoint), STATUS_OK);
    opened.server = pair->server;
}

/* Connects; what it has to say goes once it may. */
static void open_client(struct pair *pair, const struct security *security)
{
    assert_int_equal(transport_create(&pair->client), STATUS_OK);
    opened.client = pair->client;
    assert_int_equal(transport_secure(pair->client, security != NULL ? security : &test_insecure),
                     STATUS_OK);
    assert_int_equal(transport_connect(pair->client, pair->endpoint, &pair->to_server), STATUS_OK);
    assert_int_equal(transport_send(pair->client, pair->to_server, "ask", 3, NULL), STATUS_OK);
}

static void close_client(struct pair *pair)
{
    transport_destroy(pair->client, 0);
    pair->client = opened.client = NULL;
}

static void close_pair(struct pair *pair)
{
    close_client(pair);
    transport_destroy(pair->server, 0);
    opened.server = NULL;
}

/* A test that fails takes no other with it. */
static int clear_up(void **state)
{
    transport_destroy(opened.client, 0);
    transport_destroy(opened.server, 0);
    opened.client = opened.server = NULL;
    return captured_log_drop(state);
}

/* Lets both do what they have to, until the server has got a message: true. Or, unless `refused` is
 * 0, until so many were, and the client, if there is one, knows what its handshake has come to; or
 * until refused_max were: false. */
static bool run_until(struct pair *pair, enum handshake handshake, uint64_t refused,
                      uint64_t refused_max, struct envelope *ret_envelope)
{
    struct envelope nothing;
    for (unsigned turn = 0; turn < TURNS_MAX; turn++) {
        if (transport_receive(pair->server, TURN_MS, ret_envelope) == STATUS_OK) {
            return true;
        }
        if (pair->client != NULL) {
            assert_true(transport_receive(pair->client, TURN_MS, &nothing) != STATUS_OK);
        }
        uint64_t count = transport_refused_count(pair->server);
        bool is_told =
            pair->client == NULL || transport_handshake(pair->client, pair->to_server) == handshake;
        if (refused > 0 && (count >= refused_max || (is_told && count >= refused))) {
            return false;
        }
    }
    fail_msg("neither a message nor a refusal came");
    return false;
}

/* Lets the server do what it has to until there are so many visitors. */
static void await_visitors(struct pair *pair, uint32_t count)
{
    struct envelope envelope;
    for (unsigned turn = 0; door_visitor_count() != count; turn++) {
        assert_true(turn < TURNS_MAX);
        assert_true(transport_receive(pair->server, TURN_MS, &envelope) != STATUS_OK);
    }
}

static void assert_talks(struct pair *pair)
{
    struct envelope envelope;
    char address[TRANSPORT_ADDRESS_BYTES];
    assert_true(run_until(pair, HANDSHAKE_DONE, 0, 0, &envelope));
    assert_memory_equal(envelope.header, "ask", 3);
    envelope_address(&envelope, address);
    assert_true(strcmp(address, "127.0.0.1") == 0 || strncmp(address, "localhost:", 10) == 0);
    uint64_t peer = envelope.peer;
    envelope_release(&envelope);
    assert_int_equal(transport_send(pair->server, peer, "answer", 6, NULL), STATUS_OK);
    enum status status;
    do {
        status = transport_receive(pair->client, 10000, &envelope);
    } while (status == STATUS_INTERRUPTED);
    assert_int_equal(status, STATUS_OK);
    assert_memory_equal(envelope.header, "answer", 6);
    envelope_release(&envelope);
    while (transport_handshake(pair->client, pair->to_server) != HANDSHAKE_DONE) {
        assert_true(transport_receive(pair->client, TURN_MS, &envelope) != STATUS_OK);
    }
}

static void the_jobs_keys_let_everybody_in(void **state)
{
    (void)state;
    struct fixture fixture;
    struct pair pair;
    open_fixture(&fixture);
    open_server(&pair, &fixture.first, "tcp://127.0.0.1:*");
    open_client(&pair, &fixture.first);
    assert_talks(&pair);
    assert_int_equal(transport_refused_count(pair.server), 0);
    close_pair(&pair);
    close_fixture(&fixture);
}

static void an_allow_line_lets_in_one_more_client(void **state)
{
    (void)state;
    struct fixture fixture;
    struct pair pair;
    open_fixture(&fixture);
    struct keys *keys = fixture.first.keys;
    memcpy(keys->allowed[keys->allowed_count++], fixture.mixed.keys->client.public_key, KEY_BYTES);
    fixture.mixed.keys->server.has_secret = false; // who only connects needs none
    open_server(&pair, &fixture.first, "tcp://127.0.0.1:*");
    open_client(&pair, &fixture.mixed);
    assert_talks(&pair);
    close_pair(&pair);
    close_fixture(&fixture);
}

static void who_has_not_the_right_keys_is_told_and_counted(void **state)
{
    (void)state;
    // Where only one side has keys, the other may hang up before that could be said.
    enum { BROKEN_OFTEN = 11 };
    struct fixture fixture;
    struct pair pair;
    struct envelope envelope;
    open_fixture(&fixture);
    const struct {
        const struct security *server, *client;
        enum handshake handshake;
        uint64_t refused; // at least: libzmq tries again after what may be an accident
        const char *said, *or_said;
    } cases[] = {
        {&fixture.first, &fixture.mixed, HANDSHAKE_DENIED, 1, "does not allow this process's key",
         "does not allow this process's key"},
        {&fixture.first, NULL, HANDSHAKE_NEEDS_KEYS, 1, "the server wants keys",
         "the server wants keys"},
        {NULL, &fixture.first, HANDSHAKE_KEYLESS, 1, "the server has no keys",
         "breaks off the handshake"},
        {&fixture.first, &fixture.second, HANDSHAKE_BROKEN, BROKEN_OFTEN,
         "breaks off the handshake", "breaks off the handshake"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        captured_log_begin();
        open_server(&pair, cases[i].server, "tcp://127.0.0.1:*");
        open_client(&pair, cases[i].client);
        bool has_come =
            run_until(&pair, cases[i].handshake, cases[i].refused, BROKEN_OFTEN, &envelope);
        close_pair(&pair);
        const char *said = captured_log_end();
        assert_false(has_come);
        assert_non_null(strstr(said, "refused a connection: from=127.0.0.1:"));
        const char *first = strstr(said, cases[i].said);
        first = first != NULL ? first : strstr(said, cases[i].or_said);
        assert_non_null(first);
        assert_null(strstr(first + 1, cases[i].said)); // once
    }
    close_fixture(&fixture);
}

static void strangers_are_refused_with_their_address_and_the_job_goes_on(void **state)
{
    (void)state;
    struct fixture fixture;
    struct pair pair;
    struct envelope envelope;
    open_fixture(&fixture);
    open_server(&pair, &fixture.first, "tcp://127.0.0.1:*");
    for (uint64_t i = 0; i < stranger_noise_count; i++) {
        captured_log_begin();
        int fd = stranger_say(pair.endpoint, &stranger_noises[i]);
        if (stranger_noises[i].is_half) {
            shutdown(fd, SHUT_WR);
        }
        bool has_come = run_until(&pair, HANDSHAKE_NONE, i + 1, i + 1, &envelope);
        const char *said = captured_log_end();
        assert_false(has_come);
        assert_int_equal(transport_refused_count(pair.server), i + 1);
        if (i < 3) {
            assert_non_null(strstr(said, "refused a connection: from=127.0.0.1:"));
        }
        close(fd);
    }
    open_client(&pair, &fixture.first);
    assert_talks(&pair);
    captured_log_begin();
    close_pair(&pair);
    const char *said = captured_log_end();
    char sum[64];
    snprintf(sum, sizeof(sum), "more connections: refused_so_far=%zu from=127.0.0.1 (",
             stranger_noise_count);
    assert_non_null(strstr(said, sum));
    close_fixture(&fixture);
}

/* As libzmq leaves one behind when a member makes a connection anew that was broken. */
static void who_has_the_keys_and_goes_without_a_word_is_not_refused(void **state)
{
    (void)state;
    struct fixture fixture;
    struct pair pair;
    struct envelope envelope;
    log_raise_level(LOG_INFO);
    open_fixture(&fixture);
    for (unsigned has_keys = 0; has_keys < 2; has_keys++) {
        const struct security *security = has_keys ? &fixture.first : &test_insecure;
        captured_log_begin();
        open_server(&pair, security, "tcp://127.0.0.1:*");
        assert_int_equal(transport_create(&pair.client), STATUS_OK);
        assert_int_equal(transport_secure(pair.client, security), STATUS_OK);
        assert_int_equal(transport_connect(pair.client, pair.endpoint, &pair.to_server), STATUS_OK);
        while (transport_handshake(pair.client, pair.to_server) != HANDSHAKE_DONE) {
            assert_true(transport_receive(pair.server, TURN_MS, &envelope) != STATUS_OK);
            assert_true(transport_receive(pair.client, TURN_MS, &envelope) != STATUS_OK);
        }
        close_client(&pair);
        await_visitors(&pair, 0);
        assert_int_equal(transport_refused_count(pair.server), has_keys ? 0 : 1);
        close_pair(&pair);
        const char *said = captured_log_end();
        assert_int_equal(strstr(said, "refused") != NULL, !has_keys);
        assert_int_equal(strstr(said, "with an allowed key was closed before it said anything: "
                                      "from=127.0.0.1:") != NULL,
                         has_keys);
    }
    close_fixture(&fixture);
}

static void without_keys_noise_does_no_harm_either(void **state)
{
    (void)state;
    struct pair pair;
    struct envelope envelope;
    captured_log_begin();
    open_server(&pair, NULL, "tcp://127.0.0.1:*");
    for (size_t i = 0; i < stranger_noise_count; i++) {
        close(stranger_say(pair.endpoint, &stranger_noises[i]));
    }
    bool has_come =
        run_until(&pair, HANDSHAKE_NONE, stranger_noise_count, stranger_noise_count, &envelope);
    assert_false(has_come);
    open_client(&pair, NULL);
    assert_talks(&pair);
    close_pair(&pair);
    captured_log_end();
}

static void ipc_needs_no_keys_beside_tcp_that_does(void **state)
{
    (void)state;
    struct fixture fixture;
    struct pair pair;
    char tcp[TRANSPORT_ENDPOINT_BYTES], ipc[TRANSPORT_ENDPOINT_BYTES];
    open_fixture(&fixture);
    open_server(&pair, &fixture.first, "ipc://*");
    memcpy(ipc, pair.endpoint, sizeof(ipc));
    assert_int_equal(transport_bind(pair.server, "tcp://127.0.0.1:*", tcp), STATUS_OK);
    assert_int_equal(transport_bind(pair.server, "ipc://*", pair.endpoint), STATUS_OK);
    const char *const endpoints[] = {ipc, pair.endpoint, tcp};
    for (size_t i = 0; i < 3; i++) {
        memmove(pair.endpoint, endpoints[i], sizeof(pair.endpoint));
        open_client(&pair, &fixture.first);
        assert_talks(&pair);
        assert_int_equal(transport_is_near(pair.client, pair.to_server), i < 2);
        close_client(&pair);
    }
    close_pair(&pair);
    close_fixture(&fixture);
}

static void data_sockets_go_without_keys_once_they_are_left_in_clear(void **state)
{
    (void)state;
    struct fixture fixture;
    struct pair pair;
    char control[TRANSPORT_ENDPOINT_BYTES];
    struct envelope envelope;
    open_fixture(&fixture);
    open_server(&pair, &fixture.first, "tcp://127.0.0.1:*");
    memcpy(control, pair.endpoint, sizeof(control));
    transport_leave_clear(pair.server);
    assert_int_equal(transport_bind(pair.server, "tcp://127.0.0.1:*", pair.endpoint), STATUS_OK);
    open_client(&pair, NULL);
    assert_talks(&pair);
    close_client(&pair);
    memcpy(pair.endpoint, control, sizeof(control)); // which is as it was
    captured_log_begin();
    open_client(&pair, NULL);
    bool has_come = run_until(&pair, HANDSHAKE_NEEDS_KEYS, 1, 3, &envelope);
    captured_log_end();
    assert_false(has_come);
    close_pair(&pair);
    close_fixture(&fixture);
}

static void over_tcp_nothing_goes_without_keys(void **state)
{
    (void)state;
    struct transport *transport;
    char endpoint[TRANSPORT_ENDPOINT_BYTES];
    uint64_t peer;
    const char *const listen[] = {"tcp://0.0.0.0:*", "tcp://127.0.0.1:*", "tcp://[::1]:*"};
    const char *const connect[] = {"tcp://192.0.2.1:5555", "tcp://127.0.0.1:5555",
                                   "tcp://localhost:5555"};
    assert_int_equal(transport_create(&transport), STATUS_OK);
    assert_false(transport_allows_tcp(transport));
    for (unsigned i = 0; i < 3; i++) {
        captured_log_begin();
        enum status bound = transport_bind(transport, listen[i], endpoint);
        enum status connected = transport_connect(transport, connect[i], &peer);
        captured_log_end();
        assert_int_equal(bound, STATUS_INVALID);
        assert_int_equal(connected, STATUS_INVALID);
    }
    transport_destroy(transport, 0);
    assert_int_equal(transport_create(&transport), STATUS_OK);
    assert_int_equal(transport_secure(transport, &test_insecure), STATUS_OK);
    assert_int_equal(transport_bind(transport, "tcp://0.0.0.0:*", endpoint), STATUS_OK);
    assert_int_equal(transport_connect(transport, "tcp://192.0.2.1:5555", &peer), STATUS_OK);
    transport_destroy(transport, 0);
}

static void frames_above_the_limit_end_the_connection(void **state)
{
    (void)state;
    struct pair pair = {0};
    static const char large[2001];
    struct envelope envelope;
    assert_int_equal(transport_create(&pair.server), STATUS_OK);
    assert_int_equal(transport_secure(pair.server, &test_insecure), STATUS_OK);
    transport_limit_frames(pair.server, 2000);
    assert_int_equal(transport_bind(pair.server, "tcp://127.0.0.1:*", pair.endpoint), STATUS_OK);
    assert_int_equal(transport_create(&pair.client), STATUS_OK);
    assert_int_equal(transport_secure(pair.client, &test_insecure), STATUS_OK);
    assert_int_equal(transport_connect(pair.client, pair.endpoint, &pair.to_server), STATUS_OK);
    assert_int_equal(transport_send(pair.client, pair.to_server, large, 2001, NULL), STATUS_OK);
    captured_log_begin();
    bool has_come = run_until(&pair, HANDSHAKE_DONE, 1, UINT64_MAX, &envelope);
    captured_log_end();
    assert_false(has_come);
    // The library connects anew; what is small enough comes.
    assert_int_equal(transport_send(pair.client, pair.to_server, large, 2000, NULL), STATUS_OK);
    assert_true(run_until(&pair, HANDSHAKE_DONE, 0, 0, &envelope));
    assert_int_equal(envelope.header_size, 2000);
    envelope_release(&envelope);
    close_pair(&pair);
}

/* One connection of the first transport has sent a message, one is silent, and both are there when
 * it ends, so that nobody hears of their ends. */
static void who_comes_after_a_transport_is_seen_at_its_descriptors(void **state)
{
    (void)state;
    enum { GUESTS = 64 }; // at all descriptors that it can have had
    struct pair pair;
    struct listener listener;
    char address[DOOR_ADDRESS_BYTES], text[DOOR_ADDRESS_BYTES];
    int guests[GUESTS], fds[GUESTS];
    uint64_t silent;
    open_server(&pair, NULL, "tcp://127.0.0.1:*");
    open_client(&pair, NULL);
    assert_talks(&pair);
    assert_int_equal(transport_connect(pair.client, pair.endpoint, &silent), STATUS_OK);
    await_visitors(&pair, 1);
    transport_destroy(pair.server, 0);
    opened.server = NULL;
    assert_int_equal(door_visitor_count(), 0);
    close_client(&pair);
    listener_open(&listener);
    for (unsigned i = 0; i < GUESTS; i++) {
        guests[i] = listener_visit(&listener, 1, address);
        fds[i] = accept(listener.fd, NULL, NULL);
        assert_true(fds[i] >= 0);
    }
    for (unsigned i = 0; i < GUESTS; i++) {
        assert_int_equal(door_leave(fds[i], text), DOOR_VISIT);
        close(fds[i]);
        close(guests[i]);
    }
    close(listener.fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(the_jobs_keys_let_everybody_in, clear_up),
        cmocka_unit_test_teardown(an_allow_line_lets_in_one_more_client, clear_up),
        cmocka_unit_test_teardown(who_has_not_the_right_keys_is_told_and_counted, clear_up),
        cmocka_unit_test_teardown(strangers_are_refused_with_their_address_and_the_job_goes_on,
                                  clear_up),
        cmocka_unit_test_teardown(without_keys_noise_does_no_harm_either, clear_up),
        cmocka_unit_test_teardown(ipc_needs_no_keys_beside_tcp_that_does, clear_up),
        cmocka_unit_test_teardown(data_sockets_go_without_keys_once_they_are_left_in_clear,
                                  clear_up),
        cmocka_unit_test_teardown(over_tcp_nothing_goes_without_keys, clear_up),
        cmocka_unit_test_teardown(frames_above_the_limit_end_the_connection, clear_up),
        cmocka_unit_test_teardown(who_comes_after_a_transport_is_seen_at_its_descriptors, clear_up),
        cmocka_unit_test_teardown(who_has_the_keys_and_goes_without_a_word_is_not_refused,
                                  clear_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
