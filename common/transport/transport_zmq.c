/* ZeroMQ: one ROUTER that listens, one DEALER for each peer that we connect to.
 *
 * A peer is told by 64 bits: for connections of ours the number of the DEALER, for those of others
 * the routing id that libzmq gave it. That id is a zero byte and 32 bits; peers that set one of
 * their own are not ours, and are dropped. Who may connect is the guard's to say. */
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/transport/context_zmq.h"
#include "common/transport/dealer_zmq.h"
#include "common/transport/door.h"
#include "common/transport/envelope_zmq.h"
#include "common/transport/fitting.h"
#include "common/transport/frames_zmq.h"
#include "common/transport/guard_zmq.h"
#include "common/transport/port_range.h"
#include "common/transport/private_socket.h"
#include "common/transport/send_buffer.h"
#include "common/transport/transport.h"

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
#define NAMES_MAX        4

// The first of what a wait looks at.
#define WAKE_ITEMS 2

// While messages come without a pause, what is not one is served between so many of them.
#define SERVE_TURNS 64

// What may end a wait: the wake, what is watched, questions about keys, events of the socket that
// listens, the socket itself; and for each dealer its events and messages.
#define ITEMS_MAX (5 + 2 * TRANSPORT_CONNECTS_MAX)

struct transport {
    void *context;
    void *router; // NULL until bind
    struct dealer dealers[TRANSPORT_CONNECTS_MAX];
    uint32_t dealer_count;
    uint32_t next_socket; // where the next receive looks first, for fairness
    uint32_t turns;       // receives since the last serve
    struct fitting fittings[TRANSPORT_CONNECTS_MAX + 1]; // by socket; the first is the router
    struct guard guard;
    int64_t frame_max;    // bytes, of those who connect
    int names[NAMES_MAX]; // (name_count) descriptors that keep the names of Unix sockets alive
    uint32_t name_count;
    int wake_fd;
    int watched_fd; // borrowed; -1: none
};

enum status transport_create(struct transport **ret_transport)
{
    struct transport *transport = calloc(1, sizeof(*transport));
    if (transport == NULL) {
        return STATUS_NO_MEMORY;
    }
    door_open();
    transport->watched_fd = -1;
    transport->frame_max = TRANSPORT_MESSAGE_MAX;
    transport->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    // A job with many ranks on one host opens a socket to each, and watches it with two more.
    transport->context = context_create(3 * (TRANSPORT_CONNECTS_MAX + 1) + 1);
    if (transport->wake_fd < 0 || transport->context == NULL) {
        log_error("cannot start the transport: %m");
        transport_destroy(transport, 0);
        return STATUS_IO;
    }
    *ret_transport = transport;
    return STATUS_OK;
}

enum status transport_secure(struct transport *transport, const struct security *security)
{
    assert(transport->router == NULL && transport->dealer_count == 0);
    return guard_begin(&transport->guard, transport->context, security);
}

bool transport_allows_tcp(const struct transport *transport)
{
    return guard_allows_tcp(&transport->guard);
}

void transport_leave_clear(struct transport *transport)
{
    transport->guard.leaves_clear = true;
}

void transport_limit_frames(struct transport *transport, uint64_t bytes)
{
    transport->frame_max =
        bytes < (uint64_t)TRANSPORT_MESSAGE_MAX ? (int64_t)bytes : TRANSPORT_MESSAGE_MAX;
}

void transport_destroy(struct transport *transport, int linger_ms)
{
    if (transport == NULL) {
        return;
    }
    guard_stop_watching(&transport->guard);
    socket_destroy(transport->router, linger_ms);
    for (uint32_t i = 0; i < transport->dealer_count; i++) {
        dealer_close(&transport->dealers[i], linger_ms);
    }
    guard_end(&transport->guard);
    if (transport->context != NULL) {
        zmq_ctx_term(transport->context);
        guard_forget(&transport->guard);
    }
    if (transport->wake_fd >= 0) {
        close(transport->wake_fd);
    }
    for (uint32_t i = 0; i < transport->name_count; i++) {
        if (transport->names[i] >= 0) {
            close(transport->names[i]);
        }
    }
    free(transport);
}

static enum status open_router(struct transport *transport)
{
    if (transport->router != NULL) {
        return STATUS_OK;
    }
    transport->router = socket_create(transport->context, ZMQ_ROUTER);
    if (transport->router == NULL) {
        log_error("cannot listen: %s", zmq_strerror(zmq_errno()));
        return STATUS_IO;
    }
    return guard_watch(&transport->guard, transport->context, transport->router);
}

enum status transport_bind_given(struct transport *transport, const char *endpoint, int listener)
{
    int failure = EADDRINUSE;
    char one[TRANSPORT_ENDPOINT_BYTES];
    enum status status = open_router(transport);
    if (status == STATUS_OK) {
        status = guard_set_listen(&transport->guard, transport->router, endpoint);
    }
    if (status != STATUS_OK) {
        return status;
    }
    socket_set_endpoint(transport->router, endpoint, transport->frame_max);
    zmq_setsockopt(transport->router, ZMQ_USE_FD, &listener, sizeof(listener));
    for (uint32_t i = 0; failure == EADDRINUSE && port_range_pick(endpoint, i, one, sizeof(one));
         i++) {
        failure = zmq_bind(transport->router, one) == 0 ? 0 : zmq_errno();
    }
    if (failure != 0) {
        log_error("cannot listen: endpoint=%s: %s%s", endpoint, zmq_strerror(failure),
                  failure == EADDRINUSE ? port_range_advice(endpoint) : "");
    }
    return failure == 0 ? STATUS_OK : STATUS_IO;
}

static enum status bind_private(struct transport *transport,
                                char ret_endpoint[TRANSPORT_ENDPOINT_BYTES])
{
    struct private_socket made;
    if (transport->name_count == NAMES_MAX) {
        log_error("cannot listen at more than %d Unix sockets", NAMES_MAX);
        return STATUS_INVALID;
    }
    private_socket_open(&made);
    transport->names[transport->name_count++] = made.file;
    enum status status = transport_bind_given(transport, made.endpoint, made.listener);
    if (status != STATUS_OK && made.listener >= 0) {
        close(made.listener);
    }
    if (status == STATUS_OK) {
        snprintf(ret_endpoint, TRANSPORT_ENDPOINT_BYTES, "%s", made.endpoint);
    }
    return status;
}

enum status transport_bind(struct transport *transport, const char *endpoint,
                           char ret_endpoint[TRANSPORT_ENDPOINT_BYTES])
{
    char last[TRANSPORT_ENDPOINT_BYTES];
    size_t size = sizeof(last);
    if (strcmp(endpoint, "ipc://*") == 0) {
        return bind_private(transport, ret_endpoint);
    }
    if (strlen(endpoint) >= sizeof(last)) {
        log_error("cannot listen: the endpoint is longer than %zu characters", sizeof(last) - 1);
        return STATUS_INVALID;
    }
    enum status status = transport_bind_given(transport, endpoint, -1);
    if (status == STATUS_OK) {
        zmq_getsockopt(transport->router, ZMQ_LAST_ENDPOINT, last, &size); // it is bound
        memcpy(ret_endpoint, last, sizeof(last));
    }
    return status;
}

enum status transport_connect(struct transport *transport, const char *endpoint, uint64_t *ret_peer)
{
    if (transport->dealer_count == TRANSPORT_CONNECTS_MAX) {
        log_error("cannot connect to endpoint=%s: already %d connections", endpoint,
                  TRANSPORT_CONNECTS_MAX);
        return STATUS_INVALID;
    }
    enum status status = dealer_open(&transport->dealers[transport->dealer_count],
                                     transport->context, &transport->guard, endpoint);
    if (status == STATUS_OK) {
        *ret_peer = transport->dealer_count++;
    }
    return status;
}

enum status transport_reconnect(struct transport *transport, const char *endpoint, uint64_t *peer)
{
    assert((*peer & ROUTER_FLAG) == 0 && *peer < transport->dealer_count);
    return dealer_reopen(&transport->dealers[*peer], transport->context, &transport->guard,
                         endpoint);
}

bool transport_is_near(const struct transport *transport, uint64_t peer)
{
    return (peer & ROUTER_FLAG) == 0 && peer < transport->dealer_count &&
           dealer_is_near(&transport->dealers[peer]);
}

uint64_t transport_refused_count(const struct transport *transport)
{
    return transport->guard.refusals.count;
}

struct departures *transport_note_departures(struct transport *transport)
{
    transport->guard.notes_departures = true;
    return &transport->guard.departures;
}

bool transport_has_left(struct transport *transport, uint64_t peer)
{
    return dealer_has_left(&transport->dealers[peer], true);
}

bool transport_was_closed(struct transport *transport, uint64_t peer)
{
    return dealer_has_left(&transport->dealers[peer], false);
}

enum handshake transport_handshake(const struct transport *transport, uint64_t peer)
{
    assert(peer < transport->dealer_count);
    return transport->dealers[peer].handshake;
}

bool transport_is_shut_out(const struct transport *transport)
{
    for (uint32_t i = 0; i < transport->dealer_count; i++) {
        if (dealer_is_shut_out(&transport->dealers[i])) {
            return true;
        }
    }
    return false;
}

const char *transport_explain(const struct transport *transport, uint64_t peer)
{
    assert(peer < transport->dealer_count);
    return dealer_explain(&transport->dealers[peer]);
}

void transport_fit(struct transport *transport, uint64_t peer, uint64_t rate, uint32_t rtt_us)
{
    assert(peer < transport->dealer_count);
    (void)send_buffer_fit_to(transport->dealers[peer].descriptor, rate, rtt_us); // if it is of TCP
}

void transport_fit_answers(struct transport *transport)
{
    transport->fittings[0].has_answers = true;
}

enum status transport_send(struct transport *transport, uint64_t peer, const void *header,
                           size_t header_size, const struct payload *payload)
{
    bool has_payload = payload != NULL && payload->size > 0;
    void *socket = (peer & ROUTER_FLAG) != 0 ? transport->router : transport->dealers[peer].socket;
    if ((peer & ROUTER_FLAG) != 0) {
        // The first frame decides whether the peer is there; after it nothing is refused.
        unsigned char id[ROUTING_ID_BYTES] = {0};
        uint32_t bits = (uint32_t)peer;
        memcpy(id + 1, &bits, sizeof(bits));
        if (!frames_send_bytes(socket, id, sizeof(id), true)) {
            departures_lose(&transport->guard.departures, peer);
            return STATUS_UNREACHABLE;
        }
    }
    if (!frames_send_bytes(socket, header, header_size, has_payload)) {
        return STATUS_UNREACHABLE;
    }
    return has_payload ? frames_send_payload(socket, payload) : STATUS_OK;
}

/* Whose message it is, from a ROUTER's first frame. */
static bool receive_routing_id(void *router, uint64_t *ret_peer)
{
    zmq_msg_t id;
    if (!frames_receive(router, &id)) {
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
        frames_drain(router);
        return false;
    }
    *ret_peer = ROUTER_FLAG | bits;
    return true;
}

static bool socket_receive(struct transport *transport, uint32_t index, struct envelope *envelope)
{
    void *socket = index == 0 ? transport->router : transport->dealers[index - 1].socket;
    zmq_msg_t *header = envelope_frame(envelope, 0), *payload = envelope_frame(envelope, 1);
    if (socket == NULL) {
        return false;
    }
    envelope->peer = index == 0 ? 0 : index - 1;
    if (index == 0 && !receive_routing_id(socket, &envelope->peer)) {
        return false;
    }
    if (!frames_receive(socket, header)) {
        return false;
    }
    if (index == 0 && door_visitor_count() > 0) {
        guard_admit(&transport->guard, zmq_msg_get(header, ZMQ_SRCFD));
    }
    if (index == 0 && transport->guard.notes_departures) {
        guard_note_peer(&transport->guard, zmq_msg_get(header, ZMQ_SRCFD), envelope->peer);
    }
    if (fitting_is_due(&transport->fittings[index])) {
        fitting_apply(&transport->fittings[index], zmq_msg_get(header, ZMQ_SRCFD));
    }
    zmq_msg_init(payload);
    if (zmq_msg_more(header) != 0) {
        frames_receive(socket, payload);
        if (zmq_msg_more(payload) != 0) {
            frames_drain(socket);
            zmq_msg_close(header);
            zmq_msg_close(payload);
            return false;
        }
    }
    envelope_settle(envelope);
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

/* What is not a message: keys to be judged, handshakes that are done or failed. Never waits. */
static void serve(struct transport *transport)
{
    transport->turns = 0;
    guard_serve(&transport->guard);
    for (uint32_t i = 0; i < transport->dealer_count; i++) {
        dealer_watch(&transport->dealers[i]);
    }
}

static int add_item(zmq_pollitem_t *items, int count, void *socket)
{
    if (socket != NULL) {
        items[count++] = (zmq_pollitem_t){.socket = socket, .events = ZMQ_POLLIN};
    }
    return count;
}

/* The wake, what is watched (a negative descriptor is never ready); then what serve looks at, up to
 * *ret_served; then messages. Returns how many. */
static int list_items(const struct transport *transport, zmq_pollitem_t items[ITEMS_MAX],
                      int *ret_served)
{
    int count = WAKE_ITEMS;
    items[0] = (zmq_pollitem_t){.fd = transport->wake_fd, .events = ZMQ_POLLIN};
    items[1] = (zmq_pollitem_t){.fd = transport->watched_fd, .events = ZMQ_POLLIN};
    count = add_item(items, count, transport->guard.monitor);
    count = add_item(items, count, transport->guard.zap);
    for (uint32_t i = 0; i < transport->dealer_count; i++) {
        count = add_item(items, count, dealer_waker(&transport->dealers[i]));
    }
    *ret_served = count;
    count = add_item(items, count, transport->router);
    for (uint32_t i = 0; i < transport->dealer_count; i++) {
        count = add_item(items, count, transport->dealers[i].socket);
    }
    return count;
}

/* What has ended a wait. */
enum event { EVENT_NONE, EVENT_MESSAGE, EVENT_WAKE, EVENT_SERVED, EVENT_SIGNAL, EVENT_FAILURE };

/* Waits; what there is to serve is served. */
static enum event wait_for_event(struct transport *transport, int timeout_ms)
{
    zmq_pollitem_t items[ITEMS_MAX];
    int served, count = list_items(transport, items, &served);
    int ready = zmq_poll(items, count, timeout_ms);
    if (ready < 0) {
        return zmq_errno() == EINTR ? EVENT_SIGNAL : EVENT_FAILURE;
    }
    bool is_woken = ready > 0 && ((items[0].revents | items[1].revents) & ZMQ_POLLIN) != 0;
    bool has_messages = false, has_events = ready == 0;
    for (int i = WAKE_ITEMS; i < count && ready > 0; i++) {
        has_events = has_events || (i < served && items[i].revents != 0);
        has_messages = has_messages || (i >= served && items[i].revents != 0);
    }
    if (has_events) {
        serve(transport);
    }
    return is_woken       ? EVENT_WAKE
           : has_messages ? EVENT_MESSAGE
           : ready > 0    ? EVENT_SERVED
                          : EVENT_NONE;
}

/* What is left of a timeout, -1: all time there is. */
static int time_left_ms(uint64_t deadline_ms)
{
    uint64_t now_ms = deadline_ms != UINT64_MAX ? clock_now_ms() : 0;
    return now_ms == 0 ? -1 : deadline_ms > now_ms ? (int)(deadline_ms - now_ms) : 0;
}

enum status transport_receive(struct transport *transport, int timeout_ms,
                              struct envelope *ret_envelope)
{
    if (++transport->turns >= SERVE_TURNS) {
        serve(transport);
    }
    if (receive_any(transport, ret_envelope)) {
        return STATUS_OK;
    }
    if (door_visitor_count() > 0) {
        guard_end_visits(&transport->guard);
    }
    uint64_t deadline_ms = timeout_ms < 0 ? UINT64_MAX : clock_now_ms() + (uint64_t)timeout_ms;
    enum event event;
    do {
        event = wait_for_event(transport, time_left_ms(deadline_ms));
    } while (event == EVENT_SERVED && time_left_ms(deadline_ms) != 0);
    if (event == EVENT_WAKE) {
        uint64_t wakes;
        ssize_t got = read(transport->wake_fd, &wakes, sizeof(wakes));
        (void)got; // nothing to read means that somebody else's wake was read: the same to us
        return STATUS_INTERRUPTED;
    }
    if (event == EVENT_NONE || event == EVENT_SERVED) {
        return STATUS_TIMED_OUT;
    }
    if (event == EVENT_FAILURE) {
        return STATUS_IO;
    }
    // A message that was dropped leaves nothing: the caller comes back.
    bool has_message = event == EVENT_MESSAGE && receive_any(transport, ret_envelope);
    return has_message ? STATUS_OK : STATUS_INTERRUPTED;
}

void transport_watch(struct transport *transport, int descriptor)
{
    transport->watched_fd = descriptor;
}

void transport_wake(struct transport *transport)
{
    const uint64_t one = 1;
    ssize_t wrote = write(transport->wake_fd, &one, sizeof(one));
    (void)wrote; // full means that a wake is pending already
}
