/* ZeroMQ: one ROUTER that listens, one DEALER for each peer that we connect to.
 *
 * A peer is told by 64 bits: for connections of ours the number of the DEALER, for those of others
 * the routing id that libzmq gave it. That id is a zero byte and 32 bits; peers that set one of
 * their own are not ours, and are dropped. */
#include "common/log.h"
#include "common/port_range.h"
#include "common/transport.h"

#include <zmq.h>

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define ROUTER_FLAG      (UINT64_C(1) << 63)
#define ROUTING_ID_BYTES 5
#define FRAME_COUNT      2

static_assert(sizeof(zmq_msg_t) == sizeof(((struct envelope *)0)->frames[0]), "frame storage");

struct transport {
    void *context;
    void *router; // NULL until bind
    void *dealers[TRANSPORT_CONNECTS_MAX];
    uint32_t dealer_count;
    uint32_t next_socket; // where the next receive looks first, for fairness
    int wake_fd;
};

/* What the kernel holds of a connection's data has lost its turn: nothing that is needed sooner can
 * overtake it. Left alone it grows to 4 MiB, 34 ms of a link of 1 Gbit/s; this much fills a link of
 * 100 Gbit/s for a way of 80 us and back. */
#define SEND_BUFFER_BYTES (512 << 10)

static zmq_msg_t *frame_of(struct envelope *envelope, unsigned index)
{
    return (zmq_msg_t *)(void *)envelope->frames[index];
}

static void *socket_create(struct transport *transport, int type)
{
    void *socket = zmq_socket(transport->context, type);
    if (socket == NULL) {
        return NULL;
    }
    const int none = 0, mandatory = 1;
    const int64_t size_max = TRANSPORT_MESSAGE_MAX;
    zmq_setsockopt(socket, ZMQ_SNDHWM, &none, sizeof(none));
    zmq_setsockopt(socket, ZMQ_RCVHWM, &none, sizeof(none));
    zmq_setsockopt(socket, ZMQ_LINGER, &none, sizeof(none));
    zmq_setsockopt(socket, ZMQ_MAXMSGSIZE, &size_max, sizeof(size_max));
    if (type == ZMQ_ROUTER) {
        zmq_setsockopt(socket, ZMQ_ROUTER_MANDATORY, &mandatory, sizeof(mandatory));
    }
    return socket;
}

enum status transport_create(struct transport **ret_transport)
{
    struct transport *transport = calloc(1, sizeof(*transport));
    if (transport == NULL) {
        return STATUS_NO_MEMORY;
    }
    transport->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    transport->context = zmq_ctx_new();
    if (transport->wake_fd < 0 || transport->context == NULL) {
        log_error("cannot start the transport: %m");
        transport_destroy(transport, 0);
        return STATUS_IO;
    }
    // A job with many ranks on one host opens a socket to each.
    zmq_ctx_set(transport->context, ZMQ_MAX_SOCKETS, TRANSPORT_CONNECTS_MAX + 1);
    *ret_transport = transport;
    return STATUS_OK;
}

static void socket_destroy(void *socket, int linger_ms)
{
    if (socket != NULL) {
        zmq_setsockopt(socket, ZMQ_LINGER, &linger_ms, sizeof(linger_ms));
        zmq_close(socket);
    }
}

void transport_destroy(struct transport *transport, int linger_ms)
{
    if (transport == NULL) {
        return;
    }
    socket_destroy(transport->router, linger_ms);
    for (uint32_t i = 0; i < transport->dealer_count; i++) {
        socket_destroy(transport->dealers[i], linger_ms);
    }
    if (transport->context != NULL) {
        zmq_ctx_term(transport->context);
    }
    if (transport->wake_fd >= 0) {
        close(transport->wake_fd);
    }
    free(transport);
}

/* An abstract socket name: it leaves no file behind. */
static void ipc_name(char endpoint[TRANSPORT_ENDPOINT_BYTES])
{
    static unsigned serial;
    snprintf(endpoint, TRANSPORT_ENDPOINT_BYTES, "ipc://@ringside-%ld-%u-%llx", (long)getpid(),
             __atomic_add_fetch(&serial, 1, __ATOMIC_RELAXED),
             (unsigned long long)transport_host_id());
}

enum status transport_bind(struct transport *transport, const char *endpoint,
                           char ret_endpoint[TRANSPORT_ENDPOINT_BYTES])
{
    char name[TRANSPORT_ENDPOINT_BYTES];
    if (strcmp(endpoint, "ipc://*") == 0) {
        ipc_name(name);
    } else if (snprintf(name, sizeof(name), "%s", endpoint) >= (int)sizeof(name)) {
        log_error("cannot listen: the endpoint is longer than %zu characters", sizeof(name) - 1);
        return STATUS_INVALID;
    }
    if (transport->router == NULL) {
        transport->router = socket_create(transport, ZMQ_ROUTER);
    }
    int failure = transport->router == NULL ? ENOMEM : EADDRINUSE;
    char one[TRANSPORT_ENDPOINT_BYTES];
    for (uint32_t i = 0; failure == EADDRINUSE && port_range_pick(name, i, one, sizeof(one)); i++) {
        failure = zmq_bind(transport->router, one) == 0 ? 0 : zmq_errno();
    }
    if (failure != 0) {
        log_error("cannot listen: endpoint=%s: %s%s", name, zmq_strerror(failure),
                  failure == EADDRINUSE ? port_range_advice(name) : "");
        return STATUS_IO;
    }
    char last[TRANSPORT_ENDPOINT_BYTES];
    size_t size = sizeof(last);
    if (zmq_getsockopt(transport->router, ZMQ_LAST_ENDPOINT, last, &size) != 0) {
        return STATUS_IO;
    }
    memcpy(ret_endpoint, last, sizeof(last));
    return STATUS_OK;
}

enum status transport_connect(struct transport *transport, const char *endpoint, uint64_t *ret_peer)
{
    if (transport->dealer_count == TRANSPORT_CONNECTS_MAX) {
        log_error("cannot connect to endpoint=%s: already %d connections", endpoint,
                  TRANSPORT_CONNECTS_MAX);
        return STATUS_INVALID;
    }
    void *dealer = socket_create(transport, ZMQ_DEALER);
    if (dealer != NULL && strncmp(endpoint, "tcp:", 4) == 0) {
        const int bytes = SEND_BUFFER_BYTES;
        zmq_setsockopt(dealer, ZMQ_SNDBUF, &bytes, sizeof(bytes));
    }
    if (dealer == NULL || zmq_connect(dealer, endpoint) != 0) {
        log_error("cannot connect to endpoint=%s: %s; an endpoint looks like tcp://HOST:PORT",
                  endpoint, zmq_strerror(zmq_errno()));
        socket_destroy(dealer, 0);
        return STATUS_INVALID;
    }
    *ret_peer = transport->dealer_count;
    transport->dealers[transport->dealer_count++] = dealer;
    return STATUS_OK;
}

bool transport_is_near(const struct transport *transport, uint64_t peer)
{
    char endpoint[TRANSPORT_ENDPOINT_BYTES];
    size_t size = sizeof(endpoint);
    return (peer & ROUTER_FLAG) == 0 && peer < transport->dealer_count &&
           zmq_getsockopt(transport->dealers[peer], ZMQ_LAST_ENDPOINT, endpoint, &size) == 0 &&
           strncmp(endpoint, "ipc://", strlen("ipc://")) == 0;
}

/* A payload that libzmq holds. What the sender did before must be seen by the callback: libzmq
 * orders the two threads, but says so to nobody (the thread sanitizer), so the flag says it again.
 */
struct held_payload {
    struct payload payload;
    atomic_bool is_handed_over;
};

void payload_keep(void *hint)
{
    (void)hint;
}

static void release_payload(void *bytes, void *hint)
{
    (void)bytes;
    struct held_payload *held = hint;
    bool is_handed_over = atomic_load_explicit(&held->is_handed_over, memory_order_acquire);
    assert(is_handed_over);
    held->payload.release(held->payload.hint);
    free(held);
}

/* Lets libzmq read the bytes in place, or copies them. */
static bool frame_init_payload(zmq_msg_t *frame, const struct payload *payload)
{
    if (payload->release == NULL) {
        if (zmq_msg_init_size(frame, payload->size) != 0) {
            return false;
        }
        memcpy(zmq_msg_data(frame), payload->bytes, payload->size);
        return true;
    }
    struct held_payload *held = malloc(sizeof(*held));
    if (held == NULL) {
        return false;
    }
    held->payload = *payload;
    atomic_store_explicit(&held->is_handed_over, true, memory_order_release);
    // libzmq reads only, but its interface does not say so.
    union {
        const void *in;
        void *out;
    } cast = {.in = payload->bytes};
    if (zmq_msg_init_data(frame, cast.out, payload->size, release_payload, held) != 0) {
        free(held);
        return false;
    }
    return true;
}

/* The first frame decides whether the peer is there; after it nothing is refused. */
static bool send_bytes(void *socket, const void *bytes, size_t size, int flags)
{
    int sent;
    do {
        sent = zmq_send(socket, bytes, size, flags | ZMQ_DONTWAIT);
    } while (sent < 0 && zmq_errno() == EINTR);
    return sent >= 0;
}

enum status transport_send(struct transport *transport, uint64_t peer, const void *header,
                           size_t header_size, const struct payload *payload)
{
    zmq_msg_t frame;
    bool has_payload = payload != NULL && payload->size > 0;
    void *socket = (peer & ROUTER_FLAG) != 0 ? transport->router : transport->dealers[peer];
    if ((peer & ROUTER_FLAG) != 0) {
        unsigned char id[ROUTING_ID_BYTES] = {0};
        uint32_t bits = (uint32_t)peer;
        memcpy(id + 1, &bits, sizeof(bits));
        if (!send_bytes(socket, id, sizeof(id), ZMQ_SNDMORE)) {
            return STATUS_UNREACHABLE;
        }
    }
    if (!send_bytes(socket, header, header_size, has_payload ? ZMQ_SNDMORE : 0)) {
        return STATUS_UNREACHABLE;
    }
    if (!has_payload) {
        return STATUS_OK;
    }
    if (!frame_init_payload(&frame, payload)) {
        // The multipart has begun: an empty frame ends it, and the receiver drops it.
        send_bytes(socket, "", 0, 0);
        return STATUS_NO_MEMORY;
    }
    int sent;
    do {
        sent = zmq_msg_send(&frame, socket, ZMQ_DONTWAIT);
    } while (sent < 0 && zmq_errno() == EINTR);
    if (sent < 0) {
        zmq_msg_close(&frame); // calls release
    }
    return STATUS_OK;
}

/* Reads the rest of a multipart that is not one of ours. */
static void drain(void *socket)
{
    int more = 1;
    size_t size = sizeof(more);
    while (zmq_getsockopt(socket, ZMQ_RCVMORE, &more, &size) == 0 && more != 0) {
        zmq_msg_t frame;
        zmq_msg_init(&frame);
        if (zmq_msg_recv(&frame, socket, ZMQ_DONTWAIT) < 0) {
            return;
        }
        zmq_msg_close(&frame);
    }
}

/* 1: a frame; 0: nothing there. Frames of a multipart arrive together. */
static int receive_frame(void *socket, zmq_msg_t *frame)
{
    zmq_msg_init(frame);
    int got;
    do {
        got = zmq_msg_recv(frame, socket, ZMQ_DONTWAIT);
    } while (got < 0 && zmq_errno() == EINTR);
    return got < 0 ? 0 : 1;
}

static void align_payload(zmq_msg_t *frame)
{
    if ((uintptr_t)zmq_msg_data(frame) % _Alignof(float) == 0) {
        return;
    }
    zmq_msg_t aligned;
    if (zmq_msg_init_size(&aligned, zmq_msg_size(frame)) != 0) {
        zmq_msg_close(frame);
        zmq_msg_init(frame);
        return; // an empty payload: the decoder refuses the message
    }
    memcpy(zmq_msg_data(&aligned), zmq_msg_data(frame), zmq_msg_size(frame));
    zmq_msg_close(frame);
    zmq_msg_init(frame);
    zmq_msg_move(frame, &aligned);
    zmq_msg_close(&aligned);
}

static void envelope_point(struct envelope *envelope)
{
    zmq_msg_t *payload = frame_of(envelope, 1);
    envelope->header = zmq_msg_data(frame_of(envelope, 0));
    envelope->header_size = zmq_msg_size(frame_of(envelope, 0));
    envelope->payload_size = zmq_msg_size(payload);
    envelope->payload = envelope->payload_size > 0 ? zmq_msg_data(payload) : NULL;
    envelope->loan = (struct loan){0};
}

/* Whose message it is, from a ROUTER's first frame. */
static bool receive_routing_id(void *router, uint64_t *ret_peer)
{
    zmq_msg_t id;
    if (receive_frame(router, &id) == 0) {
        return false;
    }
    uint32_t bits = 0;
    const unsigned char *bytes = zmq_msg_data(&id);
    bool is_ours = zmq_msg_size(&id) == ROUTING_ID_BYTES && bytes[0] == 0;
    if (is_ours) {
        memcpy(&bits, bytes + 1, sizeof(bits));
    }
    zmq_msg_close(&id);
    if (!is_ours) {
        drain(router);
        return false;
    }
    *ret_peer = ROUTER_FLAG | bits;
    return true;
}

static bool socket_receive(struct transport *transport, uint32_t index, struct envelope *envelope)
{
    void *socket = index == 0 ? transport->router : transport->dealers[index - 1];
    if (socket == NULL) {
        return false;
    }
    envelope->peer = index == 0 ? 0 : index - 1;
    if (index == 0 && !receive_routing_id(socket, &envelope->peer)) {
        return false;
    }
    if (receive_frame(socket, frame_of(envelope, 0)) == 0) {
        return false;
    }
    zmq_msg_init(frame_of(envelope, 1));
    if (zmq_msg_more(frame_of(envelope, 0)) != 0) {
        receive_frame(socket, frame_of(envelope, 1));
        if (zmq_msg_more(frame_of(envelope, 1)) != 0) {
            drain(socket);
            zmq_msg_close(frame_of(envelope, 0));
            zmq_msg_close(frame_of(envelope, 1));
            return false;
        }
        align_payload(frame_of(envelope, 1));
    }
    envelope_point(envelope);
    return true;
}

static bool receive_any(struct transport *transport, struct envelope *envelope)
{
    uint32_t count = transport->dealer_count + 1;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t index = (transport->next_socket + i) % count;
        if (socket_receive(transport, index, envelope)) {
            transport->next_socket = (index + 1) % count;
            return true;
        }
    }
    return false;
}

enum status transport_receive(struct transport *transport, int timeout_ms,
                              struct envelope *ret_envelope)
{
    if (receive_any(transport, ret_envelope)) {
        return STATUS_OK;
    }
    zmq_pollitem_t items[TRANSPORT_CONNECTS_MAX + 2];
    int count = 0;
    items[count++] = (zmq_pollitem_t){.fd = transport->wake_fd, .events = ZMQ_POLLIN};
    if (transport->router != NULL) {
        items[count++] = (zmq_pollitem_t){.socket = transport->router, .events = ZMQ_POLLIN};
    }
    for (uint32_t i = 0; i < transport->dealer_count; i++) {
        items[count++] = (zmq_pollitem_t){.socket = transport->dealers[i], .events = ZMQ_POLLIN};
    }
    int ready = zmq_poll(items, count, timeout_ms);
    if (ready == 0) {
        return STATUS_TIMED_OUT;
    }
    if (ready > 0 && (items[0].revents & ZMQ_POLLIN) != 0) {
        uint64_t wakes;
        ssize_t got = read(transport->wake_fd, &wakes, sizeof(wakes));
        (void)got; // nothing to read means that somebody else's wake was read: the same to us
        return STATUS_INTERRUPTED;
    }
    if (ready < 0) {
        return zmq_errno() == EINTR ? STATUS_INTERRUPTED : STATUS_IO;
    }
    // A message that was dropped leaves nothing: the caller comes back.
    return receive_any(transport, ret_envelope) ? STATUS_OK : STATUS_INTERRUPTED;
}

void transport_wake(struct transport *transport)
{
    const uint64_t one = 1;
    ssize_t wrote = write(transport->wake_fd, &one, sizeof(one));
    (void)wrote; // full means that a wake is pending already
}

void envelope_release(struct envelope *envelope)
{
    if (envelope->loan.end != NULL) {
        envelope->loan.end(envelope->loan.context, envelope->peer, envelope->loan.ticket);
        envelope->loan = (struct loan){0};
    }
    for (unsigned i = 0; i < FRAME_COUNT; i++) {
        zmq_msg_close(frame_of(envelope, i));
    }
    envelope->header = envelope->payload = NULL;
    envelope->header_size = envelope->payload_size = 0;
}

void envelope_move(struct envelope *to, struct envelope *from)
{
    struct loan loan = from->loan;
    const void *payload = from->payload;
    size_t payload_size = from->payload_size;
    to->peer = from->peer;
    for (unsigned i = 0; i < FRAME_COUNT; i++) {
        zmq_msg_init(frame_of(to, i));
        zmq_msg_move(frame_of(to, i), frame_of(from, i));
    }
    envelope_point(to);
    envelope_point(from);
    if (loan.end != NULL) {
        to->loan = loan;
        to->payload = payload;
        to->payload_size = payload_size;
    }
}

enum status envelope_make_floats(size_t count, struct envelope *ret_envelope, float **ret_values)
{
    zmq_msg_init(frame_of(ret_envelope, 0));
    if (zmq_msg_init_size(frame_of(ret_envelope, 1), count * sizeof(float)) != 0) {
        return STATUS_NO_MEMORY;
    }
    ret_envelope->peer = 0;
    ret_envelope->loan = (struct loan){0};
    *ret_values = zmq_msg_data(frame_of(ret_envelope, 1));
    envelope_point(ret_envelope);
    return STATUS_OK;
}

enum status envelope_copy_floats(const float *values, size_t count, struct envelope *ret_envelope)
{
    float *copy;
    enum status status = envelope_make_floats(count, ret_envelope, &copy);
    if (status == STATUS_OK) {
        memcpy(copy, values, count * sizeof(float));
    }
    return status;
}

void transport_describe(char *ret_text, size_t text_size)
{
    int major, minor, patch;
    zmq_version(&major, &minor, &patch);
    snprintf(ret_text, text_size, "libzmq %d.%d.%d, ipc %s, curve %s", major, minor, patch,
             zmq_has("ipc") != 0 ? "yes" : "no", zmq_has("curve") != 0 ? "yes" : "no");
}
