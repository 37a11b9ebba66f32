/* Sets up CURVE, answers ZAP requests, and counts refused connections. */
#include "common/transport/guard_zmq.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/transport/door.h"
#include "common/transport/monitor_zmq.h"

#include <zmq.h>

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define ZAP_ENDPOINT "inproc://zeromq.zap.01"
#define ZAP_VERSION  "1.0"

// How often to look for work that no ready descriptor announces, such as a summary that is due.
#define LOOK_MS 100

// The pause that door_end_visits asks for.
#define END_VISITS_MS 1000

#define FAILURES                                                              \
    (ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL | ZMQ_EVENT_HANDSHAKE_FAILED_AUTH | \
     ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL)

// Without keys, nothing tells a stranger from a member.
static const char why_unknown[] =
    "it ended before it said anything: a stranger, or a member that has connected anew";

enum status guard_begin(struct guard *guard, void *context, const struct security *security)
{
    guard->security = security;
    if (security == NULL || security->keys == NULL || !security->keys->server.has_secret) {
        return STATUS_OK;
    }
    guard->zap = zmq_socket(context, ZMQ_REP);
    if (guard->zap == NULL || zmq_bind(guard->zap, ZAP_ENDPOINT) != 0) {
        log_error("cannot guard the transport: %s", zmq_strerror(zmq_errno()));
        return STATUS_IO;
    }
    return STATUS_OK;
}

static bool is_tcp(const char *endpoint)
{
    return strncmp(endpoint, "tcp://", strlen("tcp://")) == 0;
}

/* Returns the keys for a tcp endpoint; NULL for other endpoints, and if there are none. */
static const struct keys *keys_for(const struct guard *guard, const char *endpoint)
{
    return is_tcp(endpoint) && guard->security != NULL && !guard->leaves_clear
               ? guard->security->keys
               : NULL;
}

bool guard_allows_tcp(const struct guard *guard)
{
    return guard->leaves_clear || security_allows_tcp(guard->security);
}

static enum status check(const struct guard *guard, enum security_role role, const char *endpoint)
{
    return guard->leaves_clear && is_tcp(endpoint)
               ? STATUS_OK
               : security_check(guard->security, role, endpoint);
}

static enum status set(void *socket, int option, const void *value, size_t size)
{
    if (zmq_setsockopt(socket, option, value, size) != 0) {
        log_error("libzmq cannot guard connections: %s; `ringside check` says whether it has curve",
                  zmq_strerror(zmq_errno()));
        return STATUS_UNSUPPORTED;
    }
    return STATUS_OK;
}

enum status guard_set_listen(const struct guard *guard, void *socket, const char *endpoint)
{
    const int patience_ms = GUARD_HANDSHAKE_MS, is_server = 1, is_none = 0;
    const struct keys *keys = keys_for(guard, endpoint);
    enum status status = check(guard, SECURITY_LISTEN, endpoint);
    if (status != STATUS_OK) {
        return status;
    }
    status = set(socket, ZMQ_HANDSHAKE_IVL, &patience_ms, sizeof(patience_ms));
    if (status != STATUS_OK) {
        return status;
    }
    if (keys == NULL) {
        // The socket may listen with keys at another endpoint.
        return guard->zap != NULL ? set(socket, ZMQ_CURVE_SERVER, &is_none, sizeof(is_none))
                                  : STATUS_OK;
    }
    status = set(socket, ZMQ_CURVE_SECRETKEY, keys->server.secret_key, KEY_BYTES);
    return status == STATUS_OK ? set(socket, ZMQ_CURVE_SERVER, &is_server, sizeof(is_server))
                               : status;
}

static enum status set_client_keys(void *socket, const struct keys *keys)
{
    enum status status = set(socket, ZMQ_CURVE_SERVERKEY, keys->server.public_key, KEY_BYTES);
    if (status != STATUS_OK) {
        return status;
    }
    status = set(socket, ZMQ_CURVE_PUBLICKEY, keys->client.public_key, KEY_BYTES);
    return status == STATUS_OK
               ? set(socket, ZMQ_CURVE_SECRETKEY, keys->client.secret_key, KEY_BYTES)
               : status;
}

enum status guard_set_connect(const struct guard *guard, void *socket, const char *endpoint,
                              bool *ret_has_keys)
{
    const int patience_ms = GUARD_HANDSHAKE_MS;
    const struct keys *keys = keys_for(guard, endpoint);
    enum status status = check(guard, SECURITY_CONNECT, endpoint);
    *ret_has_keys = keys != NULL;
    if (status != STATUS_OK) {
        return status;
    }
    status = set(socket, ZMQ_HANDSHAKE_IVL, &patience_ms, sizeof(patience_ms));
    return status == STATUS_OK && keys != NULL ? set_client_keys(socket, keys) : status;
}

enum status guard_watch(struct guard *guard, void *context, void *router)
{
    guard->router = router;
    guard->monitor =
        monitor_open(context, router, FAILURES | ZMQ_EVENT_DISCONNECTED | ZMQ_EVENT_LISTENING);
    if (guard->monitor == NULL) {
        log_error("cannot watch the transport: %s", zmq_strerror(zmq_errno()));
        return STATUS_IO;
    }
    return STATUS_OK;
}

static const char *describe_failure(const struct monitor_event *event)
{
    switch (event->kind) {
    case ZMQ_EVENT_HANDSHAKE_FAILED_AUTH:
        return "its key is not an allowed one";
    case ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL:
        return event->value == ZMQ_PROTOCOL_ERROR_ZMTP_MECHANISM_MISMATCH
                   ? "one side has keys and the other has none"
               : event->value == ZMQ_PROTOCOL_ERROR_ZMTP_CRYPTOGRAPHIC
                   ? "it does not know this server's public key"
                   : "its handshake is malformed";
    default:
        return event->value == EAGAIN ? "it did not finish its handshake in time"
                                      : "it left during its handshake";
    }
}

static void note_listener(struct guard *guard, int listener)
{
    if (guard->listener_count < GUARD_LISTENERS_MAX) {
        guard->listener_ids[guard->listener_count++] = door_listener_id(listener);
    }
}

static void take_events(struct guard *guard)
{
    struct monitor_event event;
    char address[DOOR_ADDRESS_BYTES];
    while (guard->monitor != NULL && monitor_next(guard->monitor, &event)) {
        if (event.kind == ZMQ_EVENT_LISTENING) {
            note_listener(guard, (int)event.value);
            continue;
        }
        if ((event.kind & FAILURES) != 0) {
            // A refused connection may still be reported as gone.
            bool is_vague = event.kind == ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL;
            guard->why = is_vague && guard->why != NULL ? guard->why : describe_failure(&event);
            continue;
        }
        departures_close(&guard->departures, (int)event.value);
        // A failed connection closes soon, usually next. Events do not say which connection they
        // are about.
        const char *why = guard->why;
        guard->why = NULL;
        enum door_visit visit = door_leave((int)event.value, address);
        if (visit == DOOR_KEY && why == NULL) {
            log_info("a connection of a process with an allowed key was closed before it said "
                     "anything: from=%s",
                     address);
        } else if (visit != DOOR_NO_VISIT) {
            refusals_add(&guard->refusals, address, why != NULL ? why : why_unknown, 1,
                         clock_now_ms());
        }
    }
}

/* Frames of a request: version, id, domain, address, identity, mechanism, credentials. */
enum { ZAP_FRAMES = 7, ZAP_FRAME_BYTES = 256 };

struct zap_request {
    unsigned char frames[ZAP_FRAMES][ZAP_FRAME_BYTES];
    size_t sizes[ZAP_FRAMES];
    unsigned count; // more than ZAP_FRAMES: there were
};

static bool receive_request(void *zap, struct zap_request *request)
{
    int more = 1;
    size_t more_size = sizeof(more);
    for (request->count = 0; more != 0; request->count++) {
        unsigned char rest[ZAP_FRAME_BYTES];
        bool has_room = request->count < ZAP_FRAMES;
        int size = zmq_recv(zap, has_room ? request->frames[request->count] : rest, ZAP_FRAME_BYTES,
                            ZMQ_DONTWAIT);
        if (size < 0) {
            return false;
        }
        if (has_room) {
            request->sizes[request->count] = (size_t)size;
        }
        if (zmq_getsockopt(zap, ZMQ_RCVMORE, &more, &more_size) != 0) {
            return false;
        }
    }
    return true;
}

static bool is_text(const struct zap_request *request, unsigned frame, const char *text)
{
    return request->sizes[frame] == strlen(text) &&
           memcmp(request->frames[frame], text, strlen(text)) == 0;
}

static bool may_enter(const struct guard *guard, const struct zap_request *request)
{
    return request->count == ZAP_FRAMES && request->sizes[3] <= ZAP_FRAME_BYTES &&
           is_text(request, 0, ZAP_VERSION) && is_text(request, 5, "CURVE") &&
           request->sizes[6] == KEY_BYTES && keys_allow(guard->security->keys, request->frames[6]);
}

/* Notes where a process is that has shown an allowed key. */
static void note_key(const struct zap_request *request)
{
    char host[ZAP_FRAME_BYTES + 1];
    memcpy(host, request->frames[3], request->sizes[3]);
    host[request->sizes[3]] = '\0';
    door_note_key(host);
}

static void answer_requests(struct guard *guard)
{
    struct zap_request request;
    while (guard->zap != NULL && receive_request(guard->zap, &request)) {
        size_t id_size =
            request.count > 1 && request.sizes[1] <= ZAP_FRAME_BYTES ? request.sizes[1] : 0;
        bool is_allowed = may_enter(guard, &request);
        if (is_allowed) {
            note_key(&request);
        }
        // Version, id, status, its text, user, metadata.
        zmq_send(guard->zap, ZAP_VERSION, strlen(ZAP_VERSION), ZMQ_SNDMORE);
        zmq_send(guard->zap, request.frames[1], id_size, ZMQ_SNDMORE);
        zmq_send(guard->zap, is_allowed ? "200" : "400", 3, ZMQ_SNDMORE);
        zmq_send(guard->zap, "", 0, ZMQ_SNDMORE);
        zmq_send(guard->zap, "", 0, ZMQ_SNDMORE);
        zmq_send(guard->zap, "", 0, 0);
    }
}

void guard_serve(struct guard *guard)
{
    uint64_t now_ms = clock_now_ms();
    answer_requests(guard);
    take_events(guard);
    if (now_ms - guard->looked_ms < LOOK_MS) {
        return;
    }
    guard->looked_ms = now_ms;
    struct door_turned_away turned = door_take_turned_away();
    if (turned.count > 0) {
        refusals_add(&guard->refusals, turned.address, turned.why, turned.count, now_ms);
    }
    refusals_tick(&guard->refusals, now_ms);
}

void guard_end_visits(struct guard *guard)
{
    uint64_t now_ms = clock_now_ms();
    if (now_ms - guard->ended_ms < END_VISITS_MS) {
        return;
    }
    guard->ended_ms = now_ms;
    take_events(guard); // who has gone is not there any more
    for (uint32_t i = 0; i < guard->listener_count; i++) {
        door_end_visits(guard->listener_ids[i], now_ms);
    }
}

void guard_admit(struct guard *guard, int fd)
{
    // Its descriptor may have been another's, who has gone: that is said before.
    take_events(guard);
    door_admit(fd);
}

void guard_note_peer(struct guard *guard, int fd, uint64_t peer)
{
    if (!departures_know(&guard->departures, fd, peer)) {
        take_events(guard); // as above
        departures_note(&guard->departures, fd, peer);
    }
}

void guard_stop_watching(struct guard *guard)
{
    if (guard->router == NULL) {
        return;
    }
    guard->looked_ms = 0;
    guard_serve(guard);
    refusals_finish(&guard->refusals);
    monitor_close(guard->monitor, guard->router);
    guard->monitor = guard->router = NULL;
}

void guard_end(struct guard *guard)
{
    if (guard->zap != NULL) {
        zmq_close(guard->zap);
        guard->zap = NULL;
    }
    departures_finish(&guard->departures);
}

void guard_forget(const struct guard *guard)
{
    for (uint32_t i = 0; i < guard->listener_count; i++) {
        door_forget(guard->listener_ids[i]);
    }
}
