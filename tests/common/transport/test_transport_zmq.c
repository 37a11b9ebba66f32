/* Tests of the transport: what arrives is what was sent, aligned, and hostile peers are survived.
 */
#include "common/transport/private_socket.h"
#include "common/transport/transport.h"
#include "tests/support/common/captured_log.h"
#include "tests/support/common/insecure.h"
#include "tests/support/common/squatter.h"

#include <zmq.h>

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define DESCRIPTORS 256

struct pair {
    struct transport *server, *client;
    uint64_t to_server;
    char endpoint[TRANSPORT_ENDPOINT_BYTES];
};

static void open_pair(struct pair *pair)
{
    assert_int_equal(transport_create(&pair->server), STATUS_OK);
    assert_int_equal(transport_secure(pair->server, &test_insecure), STATUS_OK);
    assert_int_equal(transport_create(&pair->client), STATUS_OK);
    assert_int_equal(transport_secure(pair->client, &test_insecure), STATUS_OK);
    assert_int_equal(transport_bind(pair->server, "tcp://127.0.0.1:*", pair->endpoint), STATUS_OK);
    assert_int_equal(transport_connect(pair->client, pair->endpoint, &pair->to_server), STATUS_OK);
}

static void close_pair(struct pair *pair)
{
    transport_destroy(pair->client, 0);
    transport_destroy(pair->server, 0);
}

static void receive(struct transport *transport, struct envelope *envelope)
{
    enum status status;
    do {
        status = transport_receive(transport, 10000, envelope);
    } while (status == STATUS_INTERRUPTED);
    assert_int_equal(status, STATUS_OK);
}

static void count_release(void *hint)
{
    atomic_fetch_add((_Atomic int *)hint, 1);
}

static void payloads_of_any_size_arrive_whole_and_aligned(void **state)
{
    (void)state;
    struct pair pair;
    open_pair(&pair);
    float *values = calloc(300000, sizeof(float));
    for (size_t i = 0; i < 300000; i++) {
        values[i] = (float)i;
    }
    _Atomic int released = 0;
    const size_t counts[] = {1, 2, 3, 7, 8, 9, 100, 1000, 1025, 4096, 100000, 300000};
    const size_t case_count = sizeof(counts) / sizeof(counts[0]);
    for (size_t i = 0; i < case_count; i++) {
        struct payload payload = {values, counts[i] * sizeof(float), count_release, &released};
        char header[64];
        memset(header, (int)('a' + i), sizeof(header));
        // Headers of odd lengths push small payloads to odd addresses.
        assert_int_equal(transport_send(pair.client, pair.to_server, header, 1 + 2 * i, &payload),
                         STATUS_OK);
    }
    for (size_t i = 0; i < case_count; i++) {
        struct envelope envelope;
        receive(pair.server, &envelope);
        assert_int_equal(envelope.header_size, 1 + 2 * i);
        assert_int_equal(envelope.payload_size, counts[i] * sizeof(float));
        assert_int_equal((uintptr_t)envelope.payload % sizeof(float), 0);
        assert_memory_equal(envelope.payload, values, envelope.payload_size);
        struct envelope moved;
        envelope_move(&moved, &envelope);
        assert_memory_equal(moved.payload, values, moved.payload_size);
        assert_null(envelope.payload);
        envelope_release(&envelope);
        envelope_release(&moved);
    }
    close_pair(&pair);
    assert_int_equal(released, case_count);
    free(values);
}

/* The client asks, and the server answers who asked. */
static void ask(struct pair *pair)
{
    struct envelope envelope;
    assert_int_equal(transport_send(pair->client, pair->to_server, "ask", 3, NULL), STATUS_OK);
    receive(pair->server, &envelope);
    uint64_t peer = envelope.peer;
    envelope_release(&envelope);
    assert_int_equal(transport_send(pair->server, peer, "answer", 6, NULL), STATUS_OK);
    receive(pair->client, &envelope);
    assert_int_equal(envelope.peer, pair->to_server);
    assert_memory_equal(envelope.header, "answer", 6);
    envelope_release(&envelope);
}

static void a_server_answers_the_peer_that_asked(void **state)
{
    (void)state;
    struct pair pair;
    open_pair(&pair);
    ask(&pair);
    close_pair(&pair);
}

/* The send buffers of this process's connections of TCP, by descriptor; 0: it is none. */
static void list_send_buffers(int ret_bytes[DESCRIPTORS])
{
    for (int descriptor = 0; descriptor < DESCRIPTORS; descriptor++) {
        struct tcp_info info;
        socklen_t info_size = sizeof(info), size = sizeof(int);
        int *bytes = &ret_bytes[descriptor];
        *bytes = 0;
        if (getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, &info, &info_size) == 0) {
            assert_int_equal(getsockopt(descriptor, SOL_SOCKET, SO_SNDBUF, bytes, &size), 0);
        }
    }
}

static void what_is_known_of_a_way_fits_the_buffer_of_its_connection_alone(void **state)
{
    (void)state;
    struct pair pair;
    open_pair(&pair);
    // Once the answer is there, so is what libzmq says of the connection.
    ask(&pair);
    struct envelope envelope;
    assert_int_equal(transport_receive(pair.client, 0, &envelope), STATUS_TIMED_OUT);
    int before[DESCRIPTORS], after[DESCRIPTORS], changed = 0;
    list_send_buffers(before);
    transport_fit(pair.client, pair.to_server, 1000000, 100); // the least that there is
    list_send_buffers(after);
    for (int i = 0; i < DESCRIPTORS; i++) {
        changed += before[i] != after[i];
        assert_true(after[i] <= before[i]);
    }
    close_pair(&pair);
    if (changed == 0) {
        skip(); // net.core.wmem_max allows no more than the least of loopback
    }
    assert_int_equal(changed, 1);
}

static bool has_bbr(int descriptor)
{
    char name[32] = {0};
    socklen_t size = sizeof(name) - 1;
    return getsockopt(descriptor, IPPROTO_TCP, TCP_CONGESTION, name, &size) == 0 &&
           strncmp(name, "bbr", strlen("bbr")) == 0;
}

/* Where the system's connections have it unless told otherwise. */
static void answers_within_a_site_do_not_go_by_bbr(void **state)
{
    (void)state;
    int other = socket(AF_INET, SOCK_STREAM, 0);
    bool is_default = has_bbr(other);
    bool can_choose = setsockopt(other, IPPROTO_TCP, TCP_CONGESTION, "cubic", 5) == 0;
    close(other);
    if (!is_default || !can_choose) {
        print_message("bbr is not this system's choice, or its only one\n");
        skip();
    }
    struct pair pair;
    open_pair(&pair);
    transport_fit_answers(pair.server);
    ask(&pair);
    int ends = 0, with_bbr = 0;
    for (int descriptor = 0; descriptor < DESCRIPTORS; descriptor++) {
        struct tcp_info info;
        socklen_t size = sizeof(info);
        if (getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 &&
            info.tcpi_state == TCP_ESTABLISHED) {
            with_bbr += has_bbr(descriptor);
            ends++;
        }
    }
    assert_int_equal(ends, 2);
    assert_int_equal(with_bbr, 1); // who asks keeps it
    close_pair(&pair);
}

static void a_peer_that_is_not_there_is_unreachable(void **state)
{
    (void)state;
    struct pair pair;
    open_pair(&pair);
    assert_int_equal(transport_send(pair.server, (UINT64_C(1) << 63) | 12345, "x", 1, NULL),
                     STATUS_UNREACHABLE);
    close_pair(&pair);
}

static void a_wake_ends_a_wait(void **state)
{
    (void)state;
    struct pair pair;
    open_pair(&pair);
    struct envelope envelope;
    transport_wake(pair.client);
    assert_int_equal(transport_receive(pair.client, -1, &envelope), STATUS_INTERRUPTED);
    assert_int_equal(transport_receive(pair.client, 0, &envelope), STATUS_TIMED_OUT);
    close_pair(&pair);
}

/* A raw ZeroMQ client that sends what our programs never send, then a good message. */
static void messages_of_other_shapes_are_dropped(void **state)
{
    (void)state;
    struct pair pair;
    open_pair(&pair);
    void *context = zmq_ctx_new();
    void *odd = zmq_socket(context, ZMQ_DEALER);
    assert_int_equal(zmq_setsockopt(odd, ZMQ_ROUTING_ID, "named", 5), 0);
    assert_int_equal(zmq_connect(odd, pair.endpoint), 0);
    zmq_send(odd, "x", 1, 0);
    void *raw = zmq_socket(context, ZMQ_DEALER);
    assert_int_equal(zmq_connect(raw, pair.endpoint), 0);
    for (int frames = 3; frames < 6; frames++) {
        for (int i = 1; i < frames; i++) {
            zmq_send(raw, "part", 4, ZMQ_SNDMORE);
        }
        zmq_send(raw, "end", 3, 0);
    }
    zmq_send(raw, "", 0, 0);
    zmq_send(raw, "good", 4, 0);
    struct envelope envelope;
    receive(pair.server, &envelope);
    assert_int_equal(envelope.header_size, 0); // an empty header is for the decoder to refuse
    envelope_release(&envelope);
    receive(pair.server, &envelope);
    assert_memory_equal(envelope.header, "good", 4);
    envelope_release(&envelope);
    const int none = 0;
    zmq_setsockopt(raw, ZMQ_LINGER, &none, sizeof(none));
    zmq_setsockopt(odd, ZMQ_LINGER, &none, sizeof(none));
    zmq_close(raw);
    zmq_close(odd);
    zmq_ctx_term(context);
    close_pair(&pair);
}

static void a_port_in_use_is_refused(void **state)
{
    (void)state;
    struct pair pair;
    open_pair(&pair);
    struct transport *second;
    char endpoint[TRANSPORT_ENDPOINT_BYTES];
    assert_int_equal(transport_create(&second), STATUS_OK);
    assert_int_equal(transport_secure(second, &test_insecure), STATUS_OK);
    assert_int_equal(transport_bind(second, pair.endpoint, endpoint), STATUS_IO);
    transport_destroy(second, 0);
    close_pair(&pair);
}

/* A process of that user connects to the path; the error, or 0. */
static int connect_as(const char *path, uid_t user)
{
    int result;
    pid_t child = fork();
    if (child == 0) {
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
        int fd = socket(AF_UNIX, SOCK_STREAM, 0);
        bool is_done = setuid(user) == 0 &&
                       connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0;
        _exit(is_done ? 0 : errno);
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_true(WIFEXITED(result));
    return WEXITSTATUS(result);
}

/* Nor can another user fill the queue of those who wait to be let in. */
static void another_user_does_not_find_an_ipc_socket(void **state)
{
    (void)state;
    char endpoint[TRANSPORT_ENDPOINT_BYTES];
    const char *path = endpoint + strlen("ipc://");
    struct transport *transport;
    if (geteuid() != 0) {
        print_message("skipped: only root can be somebody else\n");
        skip();
    }
    assert_int_equal(transport_create(&transport), STATUS_OK);
    assert_int_equal(transport_bind(transport, "ipc://*", endpoint), STATUS_OK);
    assert_true(security_is_private_path(path));
    assert_int_equal(connect_as(path, 4711), EACCES);
    assert_int_equal(connect_as(path, 0), 0);
    transport_destroy(transport, 0);
    assert_int_not_equal(connect_as(path, 0), 0);
}

static void where_processes_are_hidden_ipc_has_an_abstract_name(void **state)
{
    (void)state;
    static const char start[] = "ipc://@ringside-";
    char names[2][TRANSPORT_ENDPOINT_BYTES];
    assert_int_equal(prctl(PR_SET_DUMPABLE, 0), 0);
    captured_log_begin();
    for (unsigned i = 0; i < 2; i++) {
        struct transport *transport;
        assert_int_equal(transport_create(&transport), STATUS_OK);
        assert_int_equal(transport_bind(transport, "ipc://*", names[i]), STATUS_OK);
        transport_destroy(transport, 0);
    }
    const char *said = captured_log_end();
    assert_int_equal(prctl(PR_SET_DUMPABLE, 1), 0);
    assert_non_null(strstr(said, "it has no private name, because the system hides this process"));
    for (unsigned i = 0; i < 2; i++) { // which cannot be guessed
        assert_memory_equal(names[i], start, strlen(start));
        const char *drawn = names[i] + strlen(start);
        assert_int_equal(strlen(drawn), 32); // 128 bits
        assert_int_equal(strspn(drawn, "0123456789abcdef"), 32);
    }
    assert_string_not_equal(names[0], names[1]);
}

/* At a name that has become free: not even a greeting goes there, and it is said who it is. */
static void a_process_of_another_user_that_listens_is_told_nothing(void **state)
{
    (void)state;
    struct transport *transport;
    struct envelope envelope;
    struct squatter squatter;
    char endpoint[TRANSPORT_ENDPOINT_BYTES], expected[64];
    uint64_t peer;
    if (geteuid() != 0) {
        print_message("skipped: only root can be somebody else\n");
        skip();
    }
    squatter_open(&squatter, "ringside-", 4711);
    snprintf(endpoint, sizeof(endpoint), "ipc://@%s", squatter.address.sun_path + 1);
    assert_int_equal(transport_create(&transport), STATUS_OK);
    assert_int_equal(transport_secure(transport, &test_insecure), STATUS_OK);
    captured_log_begin();
    assert_int_equal(transport_connect(transport, endpoint, &peer), STATUS_OK);
    assert_int_equal(transport_send(transport, peer, "secret", 6, NULL), STATUS_OK);
    while (!transport_is_shut_out(transport)) {
        assert_int_not_equal(transport_receive(transport, 10000, &envelope), STATUS_OK);
    }
    assert_int_equal(transport_handshake(transport, peer), HANDSHAKE_STRANGER);
    assert_false(squatter_close(&squatter));
    const char *said = captured_log_end();
    snprintf(expected, sizeof(expected), "process %ld of user 4711", (long)squatter.child);
    assert_non_null(strstr(said, expected));
    assert_non_null(strstr(said, "it listens where a member of this job should"));
    assert_non_null(strstr(transport_explain(transport, peer), "a process of another user"));
    transport_destroy(transport, 0);
}

/* What was queued for the one before ends with it; a message waits for the one that comes. */
static void a_connection_is_made_anew_to_who_listens_next(void **state)
{
    (void)state;
    struct pair pair;
    struct envelope envelope;
    open_pair(&pair);
    assert_false(transport_has_left(pair.client, pair.to_server));
    assert_int_equal(transport_send(pair.client, pair.to_server, "first", 5, NULL), STATUS_OK);
    receive(pair.server, &envelope);
    envelope_release(&envelope);
    transport_destroy(pair.server, 0);
    while (!transport_has_left(pair.client, pair.to_server)) {
        assert_true(transport_receive(pair.client, 100, &envelope) != STATUS_OK);
    }
    assert_int_equal(transport_send(pair.client, pair.to_server, "stale", 5, NULL), STATUS_OK);
    assert_int_equal(transport_reconnect(pair.client, pair.endpoint, &pair.to_server), STATUS_OK);
    assert_int_equal(transport_send(pair.client, pair.to_server, "second", 6, NULL), STATUS_OK);
    assert_false(transport_has_left(pair.client, pair.to_server));
    char bound[TRANSPORT_ENDPOINT_BYTES];
    assert_int_equal(transport_create(&pair.server), STATUS_OK);
    assert_int_equal(transport_secure(pair.server, &test_insecure), STATUS_OK);
    assert_int_equal(transport_bind(pair.server, pair.endpoint, bound), STATUS_OK);
    receive(pair.server, &envelope);
    assert_int_equal(envelope.header_size, 6);
    assert_memory_equal(envelope.header, "second", 6);
    envelope_release(&envelope);
    close_pair(&pair);
}

/* Who keeps the socket lets one process after the other listen there. */
static void a_socket_that_was_given_outlives_who_listens(void **state)
{
    (void)state;
    struct private_socket made;
    struct transport *client;
    uint64_t peer;
    struct envelope envelope;
    private_socket_open(&made);
    assert_int_equal(transport_create(&client), STATUS_OK);
    assert_int_equal(transport_connect(client, made.endpoint, &peer), STATUS_OK);
    for (int i = 0; i < 2; i++) {
        struct transport *server;
        assert_int_equal(transport_create(&server), STATUS_OK);
        int listener = made.listener >= 0 ? dup(made.listener) : -1;
        assert_int_equal(transport_bind_given(server, made.endpoint, listener), STATUS_OK);
        assert_int_equal(transport_send(client, peer, "hello", 5, NULL), STATUS_OK);
        receive(server, &envelope);
        assert_memory_equal(envelope.header, "hello", 5);
        envelope_release(&envelope);
        transport_destroy(server, 0);
        assert_int_equal(transport_reconnect(client, made.endpoint, &peer), STATUS_OK);
    }
    transport_destroy(client, 0);
    close(made.listener);
    close(made.file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(payloads_of_any_size_arrive_whole_and_aligned),
        cmocka_unit_test(a_server_answers_the_peer_that_asked),
        cmocka_unit_test(what_is_known_of_a_way_fits_the_buffer_of_its_connection_alone),
        cmocka_unit_test(answers_within_a_site_do_not_go_by_bbr),
        cmocka_unit_test(a_peer_that_is_not_there_is_unreachable),
        cmocka_unit_test(a_wake_ends_a_wait),
        cmocka_unit_test(messages_of_other_shapes_are_dropped),
        cmocka_unit_test(a_port_in_use_is_refused),
        cmocka_unit_test(another_user_does_not_find_an_ipc_socket),
        cmocka_unit_test(where_processes_are_hidden_ipc_has_an_abstract_name),
        cmocka_unit_test(a_process_of_another_user_that_listens_is_told_nothing),
        cmocka_unit_test(a_connection_is_made_anew_to_who_listens_next),
        cmocka_unit_test(a_socket_that_was_given_outlives_who_listens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
