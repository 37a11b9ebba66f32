/* Messages over a transport: encode, seal and send; receive, check and decode; count.
 *
 * Belongs to the thread of its transport; the byte counters may be read by any. */
#ifndef COMMON_CHANNEL_CHANNEL_H
#define COMMON_CHANNEL_CHANNEL_H

#include "common/base/region.h"
#include "common/channel/peers.h"
#include "common/channel/wire.h"
#include "common/transport/endpoints.h"
#include "common/transport/transport.h"

#include <stdatomic.h>
#include <stdint.h>

struct channel {
    struct transport *transport;                 // owned
    uint64_t job_id;                             // put into messages that are sent; 0 until known
    _Atomic uint64_t bytes_sent, bytes_received; // headers and payloads
    uint64_t dropped_count;                      // messages that are none, or do not belong here
    unsigned char header[WIRE_HEADER_BYTES + SEAL_BYTES];
    struct peers peers;
    struct seals seals;
    struct sharing sharing;
    struct mail mail;
    uint32_t mail_turns; // messages by shared memory since a socket was looked at
    bool is_holding;     // a message that came by a socket, for one that was posted before it
    bool is_far;         // see channel_go_far
    struct envelope held;
    struct wire_scratch scratch;
};

enum status channel_create(struct channel **ret_channel);

/* As transport_secure: guards its connections, before it has any. */
enum status channel_secure(struct channel *channel, const struct security *security);

/* Sends what is queued, for at most linger_ms, and then no more: nothing that was lent or sent
 * without a copy is read any more. Envelopes may still be released. */
void channel_close(struct channel *channel, int linger_ms);
void channel_destroy(struct channel *channel, int linger_ms); // closes it; NULL is fine

/* From here on data travel in clear, and their headers are sealed with this key: connections that
 * are made or accepted from now on have no keys, and only messages of the coordinator's connection,
 * which stays encrypted, have no seals. */
void channel_seal(struct channel *channel, const unsigned char key[SEALS_KEY_BYTES],
                  uint64_t coordinator);

/* Listens for data; writes the place that others are told. Logs. */
enum status channel_listen(struct channel *channel, enum transport_kind kind,
                           const struct endpoints_wish *wish,
                           char ret_place[ENDPOINTS_PLACE_BYTES]);

/* Connects to a place of others, by what --transport allows, and greets it: who connects and says
 * nothing is taken for a stranger. Logs. */
enum status channel_meet(struct channel *channel, const char *place, enum transport_kind kind,
                         uint64_t *ret_peer);

/* Values that lie in this region need not travel to peers of this host: see sharing.h. Borrowed
 * until channel_close. */
void channel_share(struct channel *channel, const struct region *region);

/* Some peers are behind a network, and the calling thread, which owns the channel, works beside
 * others that compute: from now on it takes short turns (slice.h), and sleeps whenever it waits, so
 * that it is woken for a message at once. Where all are on one host it first lets others run. */
void channel_go_far(struct channel *channel);

/* Offers the shared region to a peer, if there is one, and with it a way for headers: see mail.h.
 * Once: after that it does nothing. */
enum status channel_offer(struct channel *channel, uint64_t peer);

/* Whether the peer's region is mapped here. */
bool channel_has_view(const struct channel *channel, uint64_t peer);

/* Whether values stay where they are on the way to the peer, or from it. */
bool channel_spares(const struct channel *channel, uint64_t peer);

/* Sends; fills in the job id, but for REFUSE, which goes to strangers. The values are copied if
 * release is NULL; otherwise they are borrowed until release(hint), which may come from another
 * thread. To a peer that has mapped the shared region, values in it are lent. */
enum status channel_send(struct channel *channel, uint64_t peer, const struct message *message,
                         void (*release)(void *hint), void *hint);

/* Takes note of a message that does not belong here, of which the caller has dropped the rest.
 * STATUS_DENIED: the rank that it names belongs to another connection. Logs: a few of many. */
void channel_note_dropped(struct channel *channel, struct envelope *envelope,
                          const struct message *message, enum status why);

/* One message; the caller owns *ret_envelope, from which *ret_message borrows, as it does from the
 * channel until the next receive. Malformed messages are dropped, counted and logged.
 * STATUS_TIMED_OUT, STATUS_INTERRUPTED as transport_receive; STATUS_MISMATCH: a peer of another
 * protocol version (logged; ret_envelope->peer says whom to refuse, no frames are owned). */
enum status channel_receive(struct channel *channel, int timeout_ms, struct envelope *ret_envelope,
                            struct message *ret_message);

#endif
