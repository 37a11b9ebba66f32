/* Sends and receives messages over a transport: encodes, seals, checks, decodes and counts them.
 *
 * Belongs to the thread of its transport; any thread may read the byte counters. */
#ifndef COMMON_CHANNEL_CHANNEL_H
#define COMMON_CHANNEL_CHANNEL_H

#include "common/base/region.h"
#include "common/channel/peers.h"
#include "common/channel/wire.h"
#include "common/trace/trace.h"
#include "common/transport/endpoints.h"
#include "common/transport/transport.h"

#include <stdatomic.h>
#include <stdint.h>

struct channel {
    struct transport *transport;                 // owned
    uint64_t job_id;                             // put into messages that are sent; 0 until known
    _Atomic uint64_t bytes_sent, bytes_received; // headers and payloads; without checkpoints sent
    bool has_gone_on;       // its job has lost or gained processes: some may not know of it yet
    uint64_t dropped_count; // malformed messages, and those that do not belong here
    struct peers peers;
    struct seals seals;
    struct sharing sharing;
    struct mail mail;
    uint32_t mail_turns; // messages through shared memory since a socket was last checked
    bool is_holding;     // holds a socket's message until one that was posted before it is taken
    bool is_far;         // see channel_go_far
    struct envelope held;
    struct trace_tape *trace; // of its thread; borrowed, set by its owner; NULL: none

    // Large, and written before they are read: not zeroed.
    unsigned char header[WIRE_HEADER_BYTES + SEAL_BYTES]; // of the message that is sent
    struct wire_scratch scratch;                          // of the one that was received
};

enum status channel_create(struct channel **ret_channel);

/* Guards its connections, before it has any: see transport_secure. */
enum status channel_secure(struct channel *channel, const struct security *security);

/* Sends what is queued for at most linger_ms, then stops: after that, nothing that was lent or sent
 * without a copy is read. Envelopes may still be released. */
void channel_close(struct channel *channel, int linger_ms);
void channel_destroy(struct channel *channel, int linger_ms); // closes it; NULL is fine

/* From now on data travel in clear, and their headers are sealed with this key. New connections
 * have no keys. The coordinator's connection stays encrypted, and only its messages have no
 * seals. */
void channel_seal(struct channel *channel, const unsigned char key[SEALS_KEY_BYTES],
                  uint64_t coordinator);

/* Listens for data. Writes the place that others are told. Logs. */
enum status channel_listen(struct channel *channel, enum transport_kind kind,
                           const struct endpoints_wish *wish,
                           char ret_place[ENDPOINTS_PLACE_BYTES]);

/* Connects to another process's place, as --transport allows, and greets it: a process that
 * connects and says nothing counts as a stranger. Logs. */
enum status channel_meet(struct channel *channel, const char *place, enum transport_kind kind,
                         uint64_t *ret_peer);

/* Shares a region: values in it need not travel to peers on this host (see sharing.h). Borrowed
 * until channel_close. */
void channel_share(struct channel *channel, const struct region *region);

/* The same for a device's memory, of which the region has the address and size. Both are borrowed
 * until channel_destroy. */
void channel_share_device(struct channel *channel, const struct region *region,
                          const struct sharing_device *device);

/* Says that some peers are behind a network, and that the calling thread, which owns the channel,
 * runs beside threads that compute. From now on it takes short turns (slice.h), and sleeps whenever
 * it waits, so that a message wakes it at once. Where all peers are on one host, a wait lets others
 * run before it sleeps. */
void channel_go_far(struct channel *channel);

/* Offers the shared region, if there is one, to a peer, together with queues for headers (see
 * mail.h). Calling it again does nothing. */
enum status channel_offer(struct channel *channel, uint64_t peer);

/* Whether the peer's region is mapped here. */
bool channel_has_view(const struct channel *channel, uint64_t peer);

/* Whether the peer has mapped this channel's region, so that it can read it. */
bool channel_lends(const struct channel *channel, uint64_t peer);

/* Returns why a peer did not map this channel's region: the last such peer's reason. STATUS_OK:
 * there was none. */
enum status channel_refusal(const struct channel *channel);

/* Whether values to the peer, or from it, stay where they are. */
bool channel_spares(const struct channel *channel, uint64_t peer);

/* Sends a message, and fills in the job id, except for REFUSE, which goes to strangers. Copies the
 * values if release is NULL; otherwise borrows them until release(hint), which may come from
 * another thread. Lends values in the shared region to a peer that has mapped it. */
enum status channel_send(struct channel *channel, uint64_t peer, const struct message *message,
                         void (*release)(void *hint), void *hint);

/* Counts a message that does not belong here and that the caller has dropped. STATUS_DENIED: the
 * rank that it names belongs to another connection. Logs a few of many, as warnings but where a
 * process may have sent it that does not know yet that the others have gone on without it. */
void channel_note_dropped(struct channel *channel, struct envelope *envelope,
                          const struct message *message, enum status why);

/* Receives one message. The caller owns *ret_envelope. *ret_message borrows from it, and from the
 * channel until the next receive. Malformed messages are dropped, counted and logged.
 * STATUS_TIMED_OUT and STATUS_INTERRUPTED are as in transport_receive. STATUS_MISMATCH: a peer has
 * another protocol version (logged; ret_envelope->peer is the peer to refuse, and no frames are
 * owned). */
enum status channel_receive(struct channel *channel, int timeout_ms, struct envelope *ret_envelope,
                            struct message *ret_message);

#endif
