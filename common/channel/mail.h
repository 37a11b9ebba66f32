/* Passes headers of messages through shared memory, between two processes of one host and past the
 * kernel.
 *
 * A message by a socket passes through a thread of the sender's library and one of the receiver's,
 * and wakes both. Where two channels have mapped each other's memory (see sharing.h), a header
 * without a payload is **posted** instead: written into a queue that lies in the sender's region,
 * where the receiver takes it. The sender learns from the receiver's region how many the receiver
 * has taken, so neither writes into the other's memory. A sleeping receiver is woken by its
 * **bell**; if it is awake, the sender makes no system call. The bell is an unnamed pipe, which the
 * sender opens through /proc, like the region. The kernel lets only processes of the same user open
 * it, so no stranger can ring or fill it.
 *
 * What cannot be posted (a payload, a long header, a message to a full queue) goes by the socket.
 * The order stays: each posted message says how many were sent by the socket before it, and is not
 * taken sooner, and what was posted before a message by the socket is taken before it.
 *
 * A peer's region may hold anything at any time, so its contents are copied before they are looked
 * at. The state belongs to one channel and its thread. Zeroed, it is empty: nothing is posted. */
#ifndef COMMON_CHANNEL_MAIL_H
#define COMMON_CHANNEL_MAIL_H

#include "common/base/region.h"
#include "common/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MAIL_BYTES     112 // longest header
#define MAIL_PEERS_MAX 64  // of one channel; the others get their messages by sockets

struct mail_box; // a queue in shared memory, and how far its owner has read the peer's

/* What the channel keeps about a peer (peers.h). If only its number is set, nothing is posted. It
 * must not move once it has a queue. */
struct mail_peer {
    uint64_t peer;           // its number
    struct mail_box *out;    // this side's queue, in mail.region; NULL: none was offered
    struct region_view view; // view of the peer's region; empty if it has offered none
    struct mail_box *in;     // the peer's queue for this side, in the view
    bool may_post;           // the peer reads this side's queue
    uint64_t sent, received; // messages by the socket, since either side's offer
    int bell;                // writes to the peer's bell; owned if there is a view
    uint32_t rung;           // the sleep that the last ring ended
    bool is_broken;          // its queue made no sense, and is no longer read
};

struct mail {
    struct region region; // has all of this side's queues; empty before the first offer
    struct mail_peer *peers[MAIL_PEERS_MAX]; // the peers that have queues; borrowed
    uint32_t peer_count, next_peer;
    int bell, bell_end; // reads it, writes to it (else it would look closed); with the region
    bool is_asleep;
    unsigned char bytes[MAIL_BYTES]; // of the message that was taken last
};

/* Says where a peer finds what is posted to it. */
struct mail_offer {
    struct region_key region;
    uint32_t index; // of its queue
};

/* A message that was posted. */
struct mail_taken {
    uint64_t peer;
    const void *header; // borrowed, until the next is taken
    size_t size;        // 0: it claims more bytes than possible
};

void mail_finish(struct mail *mail);

/* Closes what was opened of the peer's. */
void mail_forget(struct mail_peer *peer);

/* Makes a queue for the peer. STATUS_UNSUPPORTED: no queue is left, or the peer has one. Logs other
 * failures. */
enum status mail_open(struct mail *mail, struct mail_peer *peer, struct mail_offer *ret_offer);

/* Begins to count messages to the peer: those up to the offer do not count. */
void mail_offered(struct mail_peer *peer);

/* Takes the peer's offer. May return STATUS_UNREACHABLE or STATUS_MALFORMED. */
enum status mail_map(struct mail_peer *peer, const struct mail_offer *offer);

/* Notes that the peer has taken this side's offer. */
void mail_begin(struct mail_peer *peer);

/* Posts a message. Returns false if it has to go by the socket. */
bool mail_post(struct mail_peer *to, const void *header, size_t size);

/* Counts a message that went to the peer, or came from it, by the socket. */
void mail_note_sent(struct mail_peer *peer);
void mail_note_received(struct mail_peer *peer);

/* Takes the next message that is due, from any peer or from one. Returns false if there is none. */
bool mail_take(struct mail *mail, struct mail_taken *ret_taken);
bool mail_take_of(struct mail *mail, struct mail_peer *from, struct mail_taken *ret_taken);

bool mail_is_due(struct mail *mail); // whether mail_take has one

/* From now on posted messages ring the bell. Returns false, and changes nothing, if a message is
 * due already. */
bool mail_sleep(struct mail *mail);
void mail_wake(struct mail *mail);    // if it sleeps
void mail_silence(struct mail *mail); // the bell, which may have been rung

#endif
