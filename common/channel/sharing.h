/* Shares payloads that stay where they are: the sender lends them, the receiver reads them in
 * place.
 *
 * Between two processes of one host a payload need not travel. Each side may offer the other its
 * region (OFFER). A side that could map it says so (MAPPED). From then on values in the region are
 * sent as a loan: where they are, and a ticket. When the receiver has read them, it returns the
 * ticket (RETURN), and the sender's release is called. A side that cannot map, for example because
 * it runs in another container, says so, and values travel in messages as before.
 *
 * Two processes share a device's memory in the same way, if both share such memory. The offer then
 * says how the device maps it, and only devices read loans.
 *
 * The state belongs to one channel and its thread. Opens and closes the views of peers' regions.
 * Sends nothing. */
#ifndef COMMON_CHANNEL_SHARING_H
#define COMMON_CHANNEL_SHARING_H

#include "common/base/region.h"
#include "common/channel/wire.h"
#include "common/transport/transport.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What the channel keeps about a peer (peers.h). Zeroed: nothing is shared with it. */
struct sharing_peer {
    struct region_view view;      // of its region; empty if it has offered none
    struct vector_device *device; // borrowed; the device that mapped it; NULL: the host did
    bool was_offered;             // ours
    bool may_borrow;              // it has mapped ours
};

struct sharing_loan {
    bool is_out;
    const struct sharing_peer *peer; // borrowed
    struct payload payload;
};

/* A device whose memory is shared; the region has its address and its size. */
struct sharing_device {
    struct vector_device *vectors;
    unsigned char share[VECTOR_SHARE_BYTES];
};

/* Zeroed is empty: nothing is shared. */
struct sharing {
    const struct region *own; // borrowed; NULL: nothing is offered, and offers are refused
    const struct sharing_device *device; // borrowed; whose memory `own` is; NULL: the host's
    struct sharing_loan *loans;          // by ticket
    uint32_t loan_count;
    enum status refusal; // why a peer could not map `own`; STATUS_OK: none failed
};

/* Calls release for all loans: nobody will return them. */
void sharing_return_all(struct sharing *sharing);
void sharing_finish(struct sharing *sharing); // no loan may be left

/* Closes the view of its region. */
void sharing_forget(struct sharing_peer *peer);

/* Maps the peer's region. The status is the answer to the peer: STATUS_UNSUPPORTED if nothing is
 * shared here, STATUS_UNREACHABLE if the region cannot be mapped. */
enum status sharing_map(const struct sharing *sharing, struct sharing_peer *peer,
                        const struct wire_offer *offer);

/* Returns whether to offer this side's region to the peer: there is one, and it was not offered
 * before. Notes that it is offered. */
bool sharing_begin_offer(const struct sharing *sharing, struct sharing_peer *peer);

/* Takes the peer's answer to this side's offer. STATUS_MALFORMED: there was no offer. */
enum status sharing_note_answer(struct sharing *sharing, struct sharing_peer *peer,
                                enum status answer);

/* Notes a loan of the payload, if the peer may borrow it and it lies in this side's region. Returns
 * false otherwise; then the payload has to be sent. Its release must not be NULL, and is called
 * once the loan was returned. */
bool sharing_lend(struct sharing *sharing, const struct sharing_peer *peer,
                  const struct payload *payload, struct wire_loan *ret_loan);

/* Takes back a loan that could not be sent. Does not call release. */
void sharing_cancel_loan(struct sharing *sharing, uint32_t ticket);

/* Ends a loan and calls its release. STATUS_MALFORMED if the peer has no such loan. */
enum status sharing_end_loan(struct sharing *sharing, const struct sharing_peer *peer,
                             uint32_t ticket);

/* Finds the values that the peer lends. STATUS_MALFORMED if they do not lie in its region. */
enum status sharing_find(const struct sharing_peer *peer, const struct wire_loan *loan, size_t size,
                         const float **ret_values);

#endif
