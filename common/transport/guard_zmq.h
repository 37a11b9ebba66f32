/* Who may connect to a transport: CurveZMQ on its sockets, the list of allowed keys, and the count
 * of those who were refused. Private to the transport, and of its thread.
 *
 * libzmq asks about each client's key by messages to an endpoint of the context (RFC 27, ZAP). The
 * transport's thread answers them, between messages, so there is no thread that shares the keys.
 * What it says of connections that fail has no address; the door (door.h) knows it. */
#ifndef COMMON_TRANSPORT_GUARD_ZMQ_H
#define COMMON_TRANSPORT_GUARD_ZMQ_H

#include "common/base/departures.h"
#include "common/base/status.h"
#include "common/security/security.h"
#include "common/transport/refusals.h"

#include <stdbool.h>
#include <stdint.h>

// Who connects has so long to finish its handshake.
#define GUARD_HANDSHAKE_MS 10000

#define GUARD_LISTENERS_MAX 8

/* Zeroed: no keys. */
struct guard {
    const struct security *security;    // borrowed; NULL: none
    bool leaves_clear;                  // tcp has no keys from now on: see transport_leave_clear
    void *zap;                          // where libzmq asks about keys; NULL: nobody has keys here
    void *monitor, *router;             // of the socket that listens; NULL: none does
    int listeners[GUARD_LISTENERS_MAX]; // (listener_count) descriptors of that socket
    uint32_t listener_count;
    uint64_t ended_ms; // when it was last seen to who says nothing
    const char *why;   // what failed last, of a connection that is about to close
    struct refusals refusals;
    uint64_t looked_ms;
    bool notes_departures; // of those who connect; only then is the next one filled
    struct departures departures;
};

/* Answers for the keys of `security` in this context. */
enum status guard_begin(struct guard *guard, void *context, const struct security *security);

/* Whether it may listen and connect over tcp. */
bool guard_allows_tcp(const struct guard *guard);

/* Sets what the socket does with who connects next, or with whom it connects to next: before each
 * zmq_bind and zmq_connect. STATUS_INVALID if it may not go there. Logs. */
enum status guard_set_listen(const struct guard *guard, void *socket, const char *endpoint);
enum status guard_set_connect(const struct guard *guard, void *socket, const char *endpoint,
                              bool *ret_has_keys);

/* Watches the socket that listens. */
enum status guard_watch(struct guard *guard, void *context, void *router);

/* Does what is to do: answers, counts, logs. Never waits. */
void guard_serve(struct guard *guard);

/* Nothing is to be received: whoever connected and has said nothing for long is sent away. */
void guard_end_visits(struct guard *guard);

/* The message is the first from this descriptor, perhaps. */
void guard_admit(struct guard *guard, int fd);

/* A message of this peer came by the descriptor: the end of that will be the peer's. */
void guard_note_peer(struct guard *guard, int fd, uint64_t peer);

/* Says what is left to say. Before the sockets are closed, and again after: then it closes its
 * own. */
void guard_stop_watching(struct guard *guard);
void guard_end(struct guard *guard);

#endif
