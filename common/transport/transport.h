/* Messages between processes: a small header frame and an optional payload frame.
 *
 * transport_zmq.c speaks tcp and ipc; zmq.h is seen by it and its private parts alone, all of which
 * are called *_zmq. A transport is a set of sockets: at most one that others connect to, and one
 * for each peer that we connect to. It belongs to one thread (transport_wake is the exception),
 * which has to come back to transport_receive: there it is decided who may connect.
 *
 * Flow control: the sockets have no high-water marks, because a receiver at its mark stops
 * answering and then loses messages without a word. What may be in flight is bounded by the
 * protocols above: a worker sends a bucket of step s+1 only after it has got the result of step s.
 */
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

/* A payload that lies in somebody else's memory, and has to be given back. */
struct loan {
    void (*end)(void *context, uint64_t peer, uint32_t ticket); // NULL: there is none
    void *context;
    uint32_t ticket;
};

/* One received message. Owns its frames until envelope_release. The payload is aligned for floats
 * (libzmq hands out small frames at any address: those are copied). */
struct envelope {
    uint64_t peer; // whom to answer
    const void *header;
    size_t header_size;
    const void *payload; // NULL if there is none
    size_t payload_size;
    struct loan loan; // set by whoever points the payload elsewhere; ended by envelope_release
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

/* A release for bytes that stay as they are for longer than any message: nobody has to be told. */
void payload_keep(void *hint);

enum status transport_create(struct transport **ret_transport);

/* Guards its tcp connections with the keys of `security`, which is borrowed until
 * transport_destroy; before anything listens or connects. Without it there are no keys, and no tcp.
 */
enum status transport_secure(struct transport *transport, const struct security *security);

/* Whether it may listen and connect over tcp: it has keys, or needs none. */
bool transport_allows_tcp(const struct transport *transport);

/* From here on tcp has no keys, wherever it goes: what travels is guarded above (see seal.h). What
 * listens and is connected stays as it is. */
void transport_leave_clear(struct transport *transport);

/* The largest frame of those who connect to what listens from here on; TRANSPORT_MESSAGE_MAX at
 * first. A stranger may send so much before it is known who that is. */
void transport_limit_frames(struct transport *transport, uint64_t bytes);

/* linger_ms: how long to go on sending what is queued. NULL is fine. */
void transport_destroy(struct transport *transport, int linger_ms);

/* Listens. A star as the port of a tcp endpoint picks a free one, a range such as 40000-40100 the
 * first of them that is free; a star as the name of an ipc endpoint picks one that needs no file.
 * May be called for several endpoints. Writes the endpoint to connect to. Logs. */
enum status transport_bind(struct transport *transport, const char *endpoint,
                           char ret_endpoint[TRANSPORT_ENDPOINT_BYTES]);

/* The connection is made in the background, now or later. */
enum status transport_connect(struct transport *transport, const char *endpoint,
                              uint64_t *ret_peer);

/* What the last attempt to connect to a peer has come to. */
enum handshake {
    HANDSHAKE_NONE,       // there was none: nobody listens, or nobody answers
    HANDSHAKE_DONE,       // and it stays so
    HANDSHAKE_BROKEN,     // the peer closed the connection before it was done
    HANDSHAKE_KEYLESS,    // it has no keys, and we have
    HANDSHAKE_NEEDS_KEYS, // it has keys, and we have none
    HANDSHAKE_DENIED,     // it does not allow ours
    HANDSHAKE_STRANGER,   // it is of another user of this host
};

/* Of a peer that we connect to. What fails is logged; libzmq tries again after HANDSHAKE_BROKEN. */
enum handshake transport_handshake(const struct transport *transport, uint64_t peer);

/* Whether somebody whom we connect to has said that it will not have us, now or ever. */
bool transport_is_shut_out(const struct transport *transport);

/* A sentence on that: what it means, and what to do. Static. */
const char *transport_explain(const struct transport *transport, uint64_t peer);

/* Connections of others that were refused so far: by this transport, and by the process's door as
 * far as this transport was the one to hear of it. All of them were logged, many in few lines. */
uint64_t transport_refused_count(const struct transport *transport);

/* From now on it is noted whose connections are closed, of those who connect to us; taken from what
 * is returned, which is borrowed. Before their first messages. Such a peer may come back, but as
 * another; what it said before is still to be received. */
struct departures *transport_note_departures(struct transport *transport);

/* The same of a peer that we connect to: whether its connection was closed since this was asked
 * first, which is to be before anything is received. */
bool transport_has_left(struct transport *transport, uint64_t peer);

/* Whether a peer that we connect to is reached by ipc, and so is on this host. */
bool transport_is_near(const struct transport *transport, uint64_t peer);

/* What was measured of the way to a peer that we connect to, in bytes per second and microseconds
 * there and back: the kernel need not hold more of what is sent to it than is on its way then. To
 * be called before anything large is sent. */
void transport_fit(struct transport *transport, uint64_t peer, uint64_t rate, uint32_t rtt_us);

/* From now on connections of others get the congestion control that suits answers to many: see
 * congestion.h. */
void transport_fit_answers(struct transport *transport);

/* Queues; does not block. Copies the header. STATUS_UNREACHABLE if the peer has gone; then release
 * was not called. */
enum status transport_send(struct transport *transport, uint64_t peer, const void *header,
                           size_t header_size, const struct payload *payload);

/* Waits at most timeout_ms (-1: for ever). STATUS_TIMED_OUT; STATUS_INTERRUPTED after a
 * transport_wake or a signal. Messages that no peer of ours would send are dropped. */
enum status transport_receive(struct transport *transport, int timeout_ms,
                              struct envelope *ret_envelope);

/* Something else that ends a transport_receive that waits, with STATUS_INTERRUPTED, for as long as
 * it is readable: a descriptor, borrowed. One at most. */
void transport_watch(struct transport *transport, int descriptor);

/* Ends a transport_receive that waits, or the next one. From any thread and from signal handlers.
 */
void transport_wake(struct transport *transport);

void envelope_release(struct envelope *envelope);

/* From where it came: "10.0.0.9", or user and process for ipc. Before envelope_release. */
void envelope_address(struct envelope *envelope, char ret_address[TRANSPORT_ADDRESS_BYTES]);

/* Moves the message to `to`; `from` is then empty. Never copy an envelope by assignment. */
void envelope_move(struct envelope *to, struct envelope *from);

/* An envelope of a header that came another way, and is borrowed; it has no payload. */
void envelope_of_header(uint64_t peer, const void *header, size_t size,
                        struct envelope *ret_envelope);

/* An envelope that owns room for so many floats, to be written before it is used. */
enum status envelope_make_floats(size_t count, struct envelope *ret_envelope, float **ret_values);

/* An envelope that owns a copy of these floats: for tests and simulations. */
enum status envelope_copy_floats(const float *values, size_t count, struct envelope *ret_envelope);

/* One line on the library: version, and what it can. */
void transport_describe(char *ret_text, size_t text_size);

/* Equal for processes that can reach each other by ipc, different otherwise. */
uint64_t transport_host_id(void);

#endif
