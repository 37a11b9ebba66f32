/* Passes headers of messages through shared memory, between two processes of one host and past the
 * kernel.
 *
 * A message by a socket passes through a thread of the sender's library and one of the receiver's,
 * and wakes both. Where two channels have mapped each other's memory (see sharing.h), a header
 * without a payload is **posted** instead: written into a queue that lies in the sender's region,
 * where the receiver takes it. The sender learns from the receiver's region how far that has got,
 * so neither writes into the other's memory. A receiver that sleeps is woken by its **bell**; one
 * that is awake costs the sender no call of the kernel. The bell is a pipe without a name, which
 * the sender opens through /proc as it does the region: the kernel lets nobody but processes of the
 * same user have it, so no stranger can ring it, or fill it.
 *
 * What does not fit (a payload, a long header, a full queue) goes by the socket, and the order
 * stays: each posted message says how many were sent by the socket before it, and is not taken
 * sooner; and what was posted before a message of the socket is taken before that.
 *
 * What a peer's region holds may be anything, at any time: it is copied before it is looked at.
 * The state of one channel, and of its thread. Zeroed is empty: nothing is posted. */
#ifndef COMMON_CHANNEL_MAIL_H
#define COMMON_CHANNEL_MAIL_H

#include "common/base/region.h"
#include "common/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MAIL_BYTES     112 // longest header
#define MAIL_PEERS_MAX 64  // of one channel; with more, the others are sent to as before

struct mail_box; // a queue in shared memory, and how far its owner has read the peer's

/* What the channel keeps of a peer (peers.h). Zeroed but for its number: nothing is posted. It
 * stays where it is, once it has a queue. */
struct mail_peer {
    uint64_t peer;           // its number
    struct mail_box *out;    // ours, in mail.region; NULL: it was not offered any
    struct region_view view; // of the peer's region; empty if it has offered none
    struct mail_box *in;     // in the view, for us
    bool may_post;           // the peer reads ours
    uint64_t sent, received; // by the socket, since the offer of either
    int bell;                // writes to the peer's; owned where there is a view
    uint32_t rung;           // the sleep that the last ring ended
    bool is_broken;          // its queue made no sense: not read any more
};

struct mail {
    struct region region;                    // of all queues of ours; empty before the first offer
    struct mail_peer *peers[MAIL_PEERS_MAX]; // whose queues they are; borrowed
    uint32_t peer_count, next_peer;
    int bell, bell_end; // reads it, writes to it (else it would look closed); with the region
    bool is_asleep;
    unsigned char bytes[MAIL_BYTES]; // of the message that was taken last
};

/* Where a peer finds what is posted to it. */
struct mail_offer {
    struct region_key region;
    uint32_t index; // of its queue
};

/* A message that was posted. */
struct mail_taken {
    uint64_t peer;
    const void *header; // borrowed, until the next is taken
    size_t size;        // 0: more bytes than there can be
};

void mail_finish(struct mail *mail);

/* Closes what there is of the peer's. */
void mail_forget(struct mail_peer *peer);

/* Makes a queue for the peer. STATUS_UNSUPPORTED: there is none left, or it has one. Logs other
 * failures. */
enum status mail_open(struct mail *mail, struct mail_peer *peer, struct mail_offer *ret_offer);

/* The offer was the last message to the peer that counts for nothing: from here on they count. */
void mail_offered(struct mail_peer *peer);

/* Takes the peer's offer. STATUS_UNREACHABLE, STATUS_MALFORMED. */
enum status mail_map(struct mail_peer *peer, const struct mail_offer *offer);

/* The peer has taken ours. */
void mail_begin(struct mail_peer *peer);

/* False if it has to go by the socket. */
bool mail_post(struct mail_peer *to, const void *header, size_t size);

/* A message went to the peer, or came from it, by the socket. */
void mail_note_sent(struct mail_peer *peer);
void mail_note_received(struct mail_peer *peer);

/* The next message that is due, of anybody, or of one peer. False if there is none. */
bool mail_take(struct mail *mail, struct mail_taken *ret_taken);
bool mail_take_of(struct mail *mail, struct mail_peer *from, struct mail_taken *ret_taken);

bool mail_is_due(struct mail *mail); // whether mail_take has one

/* From here on the bell rings for what is posted. False if something is due already: then not. */
bool mail_sleep(struct mail *mail);
void mail_wake(struct mail *mail);    // if it sleeps
void mail_silence(struct mail *mail); // the bell, which may have been rung

#endif
