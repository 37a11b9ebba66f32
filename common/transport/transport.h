/* Moves messages between processes: a small header frame and an optional payload frame.
 *
 * transport_zmq.c speaks tcp and ipc. Only it and its private parts, all of which are called *_zmq,
 * see zmq.h. A transport is a set of sockets: at most one that others connect to, and one for each
 * peer that it connects to. It belongs to one thread (transport_wake is the exception), which has
 * to return to transport_receive, because that decides who may connect.
 *
 * Flow control: the sockets have no high-water marks, because a receiver at its mark stops
 * answering and then loses messages without a word. What may be in flight is bounded by the
 * protocols above: a worker sends a bucket of step s+1 only after it has got the result of step
 * s. */
#ifndef COMMON_TRANSPORT_TRANSPORT_H
#define COMMON_TRANSPORT_TRANSPORT_H

#include "common/base/status.h"
#include "common/security/security.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TRANSPORT_ENDPOINT_BYTES 256
#define TRANSPORT_ADDRESS_BYTES  64
#define TRANSPORT_MESSAGE_MAX    (INT64_C(1) << 32) // bytes of one frame; larger ones are cut off
#define TRANSPORT_CONNECTS_MAX   1024

struct departures;
struct transport;

/* A payload that lies in another process's memory, and has to be returned. */
struct loan {
    void (*end)(void *context, uint64_t peer, uint32_t ticket); // NULL: there is none
    void *context;
    uint32_t ticket;
};

/* One received message. Owns its frames until envelope_release. The payload is aligned for floats
 * (libzmq hands out small frames at any address: those are copied). */
struct envelope {
    uint64_t peer; // the peer to answer
    const void *header;
    size_t header_size;
    const void *payload; // NULL if there is none
    size_t payload_size;
    struct loan loan; // set where the payload is pointed elsewhere; envelope_release ends it
    _Alignas(8) unsigned char frames[2][64]; // the library's message objects
};

/* Bytes to send without a copy. release is called once, from any thread, when they may change;
 * NULL: the transport copies them. */
struct payload {
    const void *bytes;
    size_t size;
    void (*release)(void *hint);
    void *hint;
};

/* A release that does nothing, for bytes that outlive every message. */
void payload_keep(void *hint);

enum status transport_create(struct transport **ret_transport);

/* Guards its tcp connections with the keys of `security`, which is borrowed until
 * transport_destroy. Call it before anything listens or connects. Without it there are no keys, and
 * no tcp. */
enum status transport_secure(struct transport *transport, const struct security *security);

/* Whether it may listen and connect over tcp: it has keys, or needs none. */
bool transport_allows_tcp(const struct transport *transport);

/* From now on tcp has no keys: a layer above guards what travels (see seal.h). Sockets that listen
 * or are connected already stay as they are. */
void transport_leave_clear(struct transport *transport);

/* Sets the largest frame of peers that connect to sockets that listen from now on;
 * TRANSPORT_MESSAGE_MAX at first. A stranger may send that much before it is known who it is. */
void transport_limit_frames(struct transport *transport, uint64_t bytes);

/* linger_ms: how long to keep sending what is queued. NULL is fine. */
void transport_destroy(struct transport *transport, int linger_ms);

/* Listens. In a tcp endpoint, a star as the port picks a free one, and a range such as 40000-40100
 * its first free port. In an ipc endpoint, a star as the name picks one that needs no file. May be
 * called for several endpoints. Writes the endpoint to connect to. Logs. */
enum status transport_bind(struct transport *transport, const char *endpoint,
                           char ret_endpoint[TRANSPORT_ENDPOINT_BYTES]);

/* Listens at a Unix socket that somebody else has made, so that its endpoint outlives this process:
 * the listener (-1: nobody listens there so far) is taken. Logs. */
enum status transport_bind_given(struct transport *transport, const char *endpoint, int listener);

/* Connects in the background, now or later. */
enum status transport_connect(struct transport *transport, const char *endpoint,
                              uint64_t *ret_peer);

/* Closes the connection to a peer that this side connects to, with what is queued for it, and
 * connects anew. The peer may get another number. Logs. */
enum status transport_reconnect(struct transport *transport, const char *endpoint, uint64_t *peer);

/* The result of the last attempt to connect to a peer. */
enum handshake {
    HANDSHAKE_NONE,       // there was no connection: no process listens, or none is reached
    HANDSHAKE_BEGUN,      // there is a connection, and the peer has not answered so far
    HANDSHAKE_DONE,       // and it stays so
    HANDSHAKE_BROKEN,     // the peer closed the connection before it was done
    HANDSHAKE_KEYLESS,    // the peer has no keys, and this side has
    HANDSHAKE_NEEDS_KEYS, // the peer has keys, and this side has none
    HANDSHAKE_DENIED,     // the peer does not allow this side's key
    HANDSHAKE_STRANGER,   // the peer belongs to another user of this host
};

/* Returns the state of a peer that this side connects to. Failures are logged. libzmq tries again
 * after HANDSHAKE_BROKEN. */
enum handshake transport_handshake(const struct transport *transport, uint64_t peer);

/* Whether a peer that this side connects to has refused it for good. */
bool transport_is_shut_out(const struct transport *transport);

/* Explains the state in a sentence: what it means, and what to do. Static. */
const char *transport_explain(const struct transport *transport, uint64_t peer);

/* Returns how many connections were refused so far: by this transport, and by the process's door as
 * far as it told this transport. All of them were logged, many in few lines. */
uint64_t transport_refused_count(const struct transport *transport);

/* Begins to note which connecting peers' connections are closed. Take them from the result, which
 * is borrowed. Call it before their first messages. Such a peer may come back, but as another one;
 * what it said before is still to be received. One that had closed its connection before its first
 * message was received is noted once something is sent to it. */
struct departures *transport_note_departures(struct transport *transport);

/* The same for a peer that this side connects to: whether its connection was closed since the first
 * call, which has to come before anything is received, and all that came by it was received. */
bool transport_has_left(struct transport *transport, uint64_t peer);

/* The same without ending a wait when it is closed, which costs less where there are many. */
bool transport_was_closed(struct transport *transport, uint64_t peer);

/* Whether a peer that this side connects to is reached by ipc, and so is on this host. */
bool transport_is_near(const struct transport *transport, uint64_t peer);

/* Tells what was measured of the path to a peer that this side connects to: bytes per second, and
 * microseconds there and back. The kernel then holds no more than is under way at that rate. Call
 * it before anything large is sent. */
void transport_fit(struct transport *transport, uint64_t peer, uint64_t rate, uint32_t rtt_us);

/* From now on connections from others get the congestion control that suits answers to many: see
 * congestion.h. */
void transport_fit_answers(struct transport *transport);

/* Queues a message; does not block. Copies the header. Returns STATUS_UNREACHABLE if the peer is
 * gone; then release was not called. */
enum status transport_send(struct transport *transport, uint64_t peer, const void *header,
                           size_t header_size, const struct payload *payload);

/* Receives a message. Waits at most timeout_ms (-1: forever). Returns STATUS_TIMED_OUT, or
 * STATUS_INTERRUPTED after a transport_wake or a signal. Drops messages that no peer of this
 * program would send. */
enum status transport_receive(struct transport *transport, int timeout_ms,
                              struct envelope *ret_envelope);

/* Adds a descriptor, borrowed, that ends a waiting transport_receive with STATUS_INTERRUPTED for as
 * long as it is readable. One at most. */
void transport_watch(struct transport *transport, int descriptor);

/* Ends a waiting transport_receive, or else the next one. May be called from any thread and from
 * signal handlers. */
void transport_wake(struct transport *transport);

void envelope_release(struct envelope *envelope);

/* Returns where a message came from: "10.0.0.9", or user and process for ipc. Call it before
 * envelope_release. */
void envelope_address(struct envelope *envelope, char ret_address[TRANSPORT_ADDRESS_BYTES]);

/* Moves the message to `to`, and leaves `from` empty. Never copy an envelope by assignment. */
void envelope_move(struct envelope *to, struct envelope *from);

/* Makes an envelope of a borrowed header that came another way. It has no payload. */
void envelope_of_header(uint64_t peer, const void *header, size_t size,
                        struct envelope *ret_envelope);

/* Makes an envelope that owns room for `count` floats. Write them before it is used. */
enum status envelope_make_floats(size_t count, struct envelope *ret_envelope, float **ret_values);

/* Describes the library in one line: its version and abilities. */
void transport_describe(char *ret_text, size_t text_size);

/* Equal for processes that can reach each other by ipc, different otherwise. */
uint64_t transport_host_id(void);

#endif
