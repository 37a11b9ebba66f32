/* Payloads that stay where they are: the sender lends them, the receiver reads them in place.
 *
 * Between two processes of one host a payload need not travel. Each side may offer the other its
 * region (OFFER); who could map it says so (MAPPED), and from then on values that lie in the region
 * are sent as a loan: where they are, and a ticket. When the receiver has read them it returns the
 * ticket (RETURN), and the sender's release is called. Who cannot map, because it runs in another
 * container, says so, and values go on travelling in messages.
 *
 * The state of one channel, and of its thread. Opens and closes the views of peers' regions; sends
 * nothing. */
#ifndef COMMON_CHANNEL_SHARING_H
#define COMMON_CHANNEL_SHARING_H

#include "common/base/region.h"
#include "common/channel/wire.h"
#include "common/transport/transport.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What the channel keeps of a peer (peers.h). Zeroed: nothing is shared with it. */
struct sharing_peer {
    struct region_view view; // of its region; empty if it has offered none
    bool was_offered;        // ours
    bool may_borrow;         // it has mapped ours
};

struct sharing_loan {
    bool is_out;
    const struct sharing_peer *peer; // borrowed
    struct payload payload;
};

/* Zeroed is empty: nothing is shared. */
struct sharing {
    const struct region *own; // borrowed; NULL: nothing of ours is offered, and offers are refused
    struct sharing_loan *loans; // by ticket
    uint32_t loan_count;
    enum status refusal; // of a peer that could not map our region; STATUS_OK if there was none
};

/* Calls release for all that is out: nobody will return it. */
void sharing_return_all(struct sharing *sharing);
void sharing_finish(struct sharing *sharing); // nothing may be out

/* Closes the view of its region. */
void sharing_forget(struct sharing_peer *peer);

/* Maps the peer's region. STATUS_UNSUPPORTED if nothing is shared here, STATUS_UNREACHABLE if it
 * cannot be mapped: the answer to the peer. */
enum status sharing_map(const struct sharing *sharing, struct sharing_peer *peer,
                        const struct region_key *key);

/* Whether our region is to be offered to the peer: there is one, and it has not been. Notes that it
 * is. */
bool sharing_begin_offer(const struct sharing *sharing, struct sharing_peer *peer);

/* The peer's answer to our offer. STATUS_MALFORMED: there was none. */
enum status sharing_note_answer(struct sharing *sharing, struct sharing_peer *peer,
                                enum status answer);

/* Notes a loan of the payload, if the peer may borrow it and it lies in our region: false
 * otherwise, and it has to be sent. Its release, which there must be, is called once it was
 * returned. */
bool sharing_lend(struct sharing *sharing, const struct sharing_peer *peer,
                  const struct payload *payload, struct wire_loan *ret_loan);

/* Takes a loan back that could not be sent: release is not called. */
void sharing_cancel_loan(struct sharing *sharing, uint32_t ticket);

/* Ends a loan and calls its release. STATUS_MALFORMED if the peer has no such loan. */
enum status sharing_end_loan(struct sharing *sharing, const struct sharing_peer *peer,
                             uint32_t ticket);

/* Where the values are that the peer lends. STATUS_MALFORMED if they do not lie in its region. */
enum status sharing_find(const struct sharing_peer *peer, const struct wire_loan *loan, size_t size,
                         const float **ret_values);

#endif
