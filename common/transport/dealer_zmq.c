/* Connects to a peer, and watches the handshake. */
#include "common/transport/dealer_zmq.h"

#include "common/base/log.h"
#include "common/transport/door.h"
#include "common/transport/frames_zmq.h"
#include "common/transport/monitor_zmq.h"

#include <zmq.h>

#include <string.h>

#define EVENTS                                                                         \
    (ZMQ_EVENT_CONNECTED | ZMQ_EVENT_CONNECT_RETRIED | ZMQ_EVENT_HANDSHAKE_SUCCEEDED | \
     ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL | ZMQ_EVENT_HANDSHAKE_FAILED_AUTH |          \
     ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL | ZMQ_EVENT_DISCONNECTED)

// A peer that breaks off a handshake may just be busy, or about to end. One that does so this many
// times in a row does it on purpose.
#define BROKEN_MAX 10

const char *dealer_explain(const struct dealer *dealer)
{
    switch (dealer->handshake) {
    case HANDSHAKE_NONE:
        return "no connection so far";
    case HANDSHAKE_BEGUN:
        return "something listens there and does not answer: is that the port that `ps` prints, or "
               "is `ps` stopped, or its host overloaded?";
    case HANDSHAKE_DONE:
        return "the connection is made";
    case HANDSHAKE_BROKEN:
        // If only one side has keys, it is a matter of luck which side notices first.
        return dealer->has_keys
                   ? "the other side breaks off the handshake: is that a port of "
                     "ringside, and `server-public` in this process's key file its key?"
                   : "the other side breaks off the handshake: if that is a port of "
                     "ringside, the server wants keys: give this process the job's key "
                     "file with --keys FILE";
    case HANDSHAKE_KEYLESS:
        return "the server has no keys, and this process does: give all processes of the job the "
               "same key file, or none";
    case HANDSHAKE_NEEDS_KEYS:
        return "the server wants keys: give this process the job's key file with --keys FILE";
    case HANDSHAKE_DENIED:
        return "the server does not allow this process's key: its `client-public` is neither that "
               "of the server's key file nor in one of its `allow` lines";
    case HANDSHAKE_STRANGER:
        return "a process of another user listens there: has the member ended that did?";
    default:
        return "the handshake fails";
    }
}

static void stop_watching(struct dealer *dealer)
{
    if (dealer->monitor != NULL) {
        monitor_close(dealer->monitor, dealer->socket);
        dealer->monitor = NULL;
    }
}

void dealer_close(struct dealer *dealer, int linger_ms)
{
    stop_watching(dealer);
    socket_destroy(dealer->socket, linger_ms);
    dealer->socket = NULL;
}

enum status dealer_open(struct dealer *dealer, void *context, const struct guard *guard,
                        const char *endpoint)
{
    *dealer = (struct dealer){.socket = socket_create(context, ZMQ_DEALER), .descriptor = -1};
    if (dealer->socket != NULL) {
        dealer->monitor = monitor_open(context, dealer->socket, EVENTS);
    }
    if (dealer->monitor == NULL) {
        log_error("cannot connect to endpoint=%s: %s", endpoint, zmq_strerror(zmq_errno()));
        dealer_close(dealer, 0);
        return STATUS_IO;
    }
    // The largest frame is that of somebody whom we chose.
    socket_set_endpoint(dealer->socket, endpoint, TRANSPORT_MESSAGE_MAX);
    enum status status = guard_set_connect(guard, dealer->socket, endpoint, &dealer->has_keys);
    if (status == STATUS_OK && zmq_connect(dealer->socket, endpoint) != 0) {
        log_error("cannot connect to endpoint=%s: %s; an endpoint looks like tcp://HOST:PORT",
                  endpoint, zmq_strerror(zmq_errno()));
        status = STATUS_INVALID;
    }
    if (status != STATUS_OK) {
        dealer_close(dealer, 0);
    }
    return status;
}

enum status dealer_reopen(struct dealer *dealer, void *context, const struct guard *guard,
                          const char *endpoint)
{
    struct dealer anew;
    struct guard as_before = *guard; // who has shown keys shows them again
    as_before.leaves_clear = guard->leaves_clear && !dealer->has_keys;
    enum status status = dealer_open(&anew, context, &as_before, endpoint);
    if (status == STATUS_OK) {
        anew.notes_end = dealer->notes_end;
        dealer_close(dealer, 0);
        *dealer = anew;
    }
    return status;
}

bool dealer_is_shut_out(const struct dealer *dealer)
{
    enum handshake handshake = dealer->handshake;
    return handshake == HANDSHAKE_DENIED || handshake == HANDSHAKE_KEYLESS ||
           handshake == HANDSHAKE_NEEDS_KEYS || handshake == HANDSHAKE_STRANGER;
}

static bool find_endpoint(const struct dealer *dealer, char ret_endpoint[TRANSPORT_ENDPOINT_BYTES])
{
    size_t size = TRANSPORT_ENDPOINT_BYTES;
    return zmq_getsockopt(dealer->socket, ZMQ_LAST_ENDPOINT, ret_endpoint, &size) == 0;
}

bool dealer_is_near(const struct dealer *dealer)
{
    char endpoint[TRANSPORT_ENDPOINT_BYTES];
    return find_endpoint(dealer, endpoint) && strncmp(endpoint, "ipc://", strlen("ipc://")) == 0;
}

/* Whether something that has come is still to be received. */
static bool has_waiting(const struct dealer *dealer)
{
    int events = 0;
    size_t size = sizeof(events);
    return zmq_getsockopt(dealer->socket, ZMQ_EVENTS, &events, &size) == 0 &&
           (events & ZMQ_POLLIN) != 0;
}

bool dealer_has_left(struct dealer *dealer, bool wakes)
{
    dealer->notes_end = true;
    dealer->wakes_at_end = dealer->wakes_at_end || wakes;
    if (!dealer->wakes_at_end) {
        dealer_watch(dealer);
    }
    return dealer->has_left && !has_waiting(dealer);
}

void *dealer_waker(const struct dealer *dealer)
{
    bool wakes = dealer->handshake != HANDSHAKE_DONE || dealer->wakes_at_end;
    return wakes ? dealer->monitor : NULL;
}

static enum handshake judge(const struct dealer *dealer, const struct monitor_event *event)
{
    switch (event->kind) {
    case ZMQ_EVENT_HANDSHAKE_SUCCEEDED:
        return HANDSHAKE_DONE;
    case ZMQ_EVENT_HANDSHAKE_FAILED_AUTH:
        return HANDSHAKE_DENIED;
    case ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL:
        if (event->value == ZMQ_PROTOCOL_ERROR_ZMTP_MECHANISM_MISMATCH) {
            return dealer->has_keys ? HANDSHAKE_KEYLESS : HANDSHAKE_NEEDS_KEYS;
        }
        return HANDSHAKE_BROKEN;
    default:
        return HANDSHAKE_BROKEN;
    }
}

/* Handles that the last attempt failed: a process of another user may listen there. */
static void look_for_stranger(struct dealer *dealer)
{
    char endpoint[TRANSPORT_ENDPOINT_BYTES], address[DOOR_ADDRESS_BYTES];
    const char *prefix = "ipc://", *name = endpoint + strlen(prefix);
    if (dealer->handshake != HANDSHAKE_STRANGER && find_endpoint(dealer, endpoint) &&
        strncmp(endpoint, prefix, strlen(prefix)) == 0 &&
        door_find_stranger(*name == '@' ? name + 1 : name, address)) {
        dealer->handshake = HANDSHAKE_STRANGER;
        log_error("no way in at %s: %s listens there: has the member ended that did?", endpoint,
                  address);
    }
}

void dealer_watch(struct dealer *dealer)
{
    struct monitor_event event;
    char endpoint[TRANSPORT_ENDPOINT_BYTES];
    while (dealer->monitor != NULL && monitor_next(dealer->monitor, &event)) {
        if (event.kind == ZMQ_EVENT_CONNECTED) {
            dealer->descriptor = (int)event.value;
            if (dealer->handshake == HANDSHAKE_NONE) {
                dealer->handshake = HANDSHAKE_BEGUN;
            }
            continue;
        }
        if (event.kind == ZMQ_EVENT_CONNECT_RETRIED) {
            if (dealer->handshake == HANDSHAKE_BEGUN) {
                dealer->handshake = HANDSHAKE_NONE;
            }
            look_for_stranger(dealer);
            continue;
        }
        if (event.kind == ZMQ_EVENT_DISCONNECTED) {
            if (dealer->handshake != HANDSHAKE_DONE) {
                continue; // it is said how that handshake fails
            }
            dealer->has_left = true;
            stop_watching(dealer);
            return;
        }
        enum handshake before = dealer->handshake;
        dealer->handshake = judge(dealer, &event);
        if (dealer->handshake == HANDSHAKE_DONE && dealer->notes_end) {
            continue;
        }
        if (dealer->handshake == HANDSHAKE_DONE) {
            stop_watching(dealer);
            return;
        }
        bool is_broken = dealer->handshake == HANDSHAKE_BROKEN;
        dealer->broken_count = is_broken ? dealer->broken_count + 1 : 0;
        bool is_new = is_broken ? dealer->broken_count == BROKEN_MAX : dealer->handshake != before;
        if (is_new && find_endpoint(dealer, endpoint)) {
            log_error("no way in at %s: %s", endpoint, dealer_explain(dealer));
        }
    }
}
