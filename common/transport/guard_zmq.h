/* Decides who may connect to a transport: sets CurveZMQ on its sockets, checks keys against the
 * allowed ones, and counts refusals. Private to the transport, and to its thread.
 *
 * libzmq asks about each client's key by messages to an endpoint of the context (RFC 27, ZAP). The
 * transport's thread answers them, between messages, so there is no thread that shares the keys.
 * What libzmq says about failed connections has no address; the door (door.h) knows it. */
#ifndef COMMON_TRANSPORT_GUARD_ZMQ_H
#define COMMON_TRANSPORT_GUARD_ZMQ_H

#include "common/base/departures.h"
#include "common/base/status.h"
#include "common/security/security.h"
#include "common/transport/refusals.h"

#include <stdbool.h>
#include <stdint.h>

// A connecting peer has this long to finish its handshake.
#define GUARD_HANDSHAKE_MS 10000

#define GUARD_LISTENERS_MAX 8

/* Zeroed: no keys. */
struct guard {
    const struct security *security; // borrowed; NULL: none
    bool leaves_clear;               // tcp has no keys from now on: see transport_leave_clear
    void *zap;                       // where libzmq asks about keys; NULL: there are no keys
    void *monitor, *router;          // of the socket that listens; NULL: none does
    uint32_t listener_ids[GUARD_LISTENERS_MAX]; // (listener_count) of that socket, see door.h
    uint32_t listener_count;
    uint64_t ended_ms; // when silent connections were last ended
    const char *why;   // why the last failed connection failed, which is about to close
    struct refusals refusals;
    uint64_t looked_ms;
    bool notes_departures; // of those who connect; only then is the next one filled
    struct departures departures;
};

/* Answers for the keys of `security` in this context. */
enum status guard_begin(struct guard *guard, void *context, const struct security *security);

/* Whether it may listen and connect over tcp. */
bool guard_allows_tcp(const struct guard *guard);

/* Sets what the socket requires of those that connect next, or of the next peer that it connects
 * to. Call it before each zmq_bind and zmq_connect. Returns STATUS_INVALID if it may not use that
 * endpoint. Logs. */
enum status guard_set_listen(const struct guard *guard, void *socket, const char *endpoint);
enum status guard_set_connect(const struct guard *guard, void *socket, const char *endpoint,
                              bool *ret_has_keys);

/* Watches the socket that listens. */
enum status guard_watch(struct guard *guard, void *context, void *router);

/* Does what there is to do: answers, counts, logs. Never waits. */
void guard_serve(struct guard *guard);

/* Ends connections that have been silent for too long. Call it when nothing is left to receive. */
void guard_end_visits(struct guard *guard);

/* Notes a message from this descriptor, which may be its first. */
void guard_admit(struct guard *guard, int fd);

/* Notes that a message of this peer came by the descriptor: when the descriptor's connection ends,
 * the peer has left. */
void guard_note_peer(struct guard *guard, int fd, uint64_t peer);

/* Logs what is left to log. Call it before the sockets are closed, and again after that: then it
 * closes its own. */
void guard_stop_watching(struct guard *guard);
void guard_end(struct guard *guard);

/* Has the door forget the connections to the guarded socket. For after the end of the sockets'
 * context, when all of them are closed. */
void guard_forget(const struct guard *guard);

#endif
