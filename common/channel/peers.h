/* The peers of a channel, and what it keeps of each: the memory that it shares with it, the queues
 * between them, the stream of its seals. One table, in which a message looks its peer up once.
 *
 * Only peers of whom there is something to keep are in it, so that strangers cannot fill it. */
#ifndef COMMON_CHANNEL_PEERS_H
#define COMMON_CHANNEL_PEERS_H

#include "common/channel/mail.h"
#include "common/channel/sharing.h"
#include "common/security/seals.h"

#include <stdint.h>

struct peer {
    uint64_t number; // the transport's
    struct sharing_peer sharing;
    struct mail_peer mail;
    struct seal_stream *stream; // borrowed from the channel's seals; NULL: none so far
};

/* Zeroed is empty. */
struct peers {
    struct peer **list; // (count); each is owned, and stays where it is
    uint32_t count;
};

void peers_finish(struct peers *peers);

/* NULL if it is not in the table. */
struct peer *peers_find(const struct peers *peers, uint64_t number);

/* NULL if there is no memory. */
struct peer *peers_find_or_add(struct peers *peers, uint64_t number);

#endif
