/* Keeps a channel's peers in one table: for each peer the shared memory, the queues, and the stream
 * of seals. A message looks its peer up once.
 *
 * Only peers that share something with the channel are in it, so strangers cannot fill it. */
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

/* Returns NULL if it is not in the table. */
struct peer *peers_find(const struct peers *peers, uint64_t number);

/* Returns NULL if there is no memory. */
struct peer *peers_find_or_add(struct peers *peers, uint64_t number);

#endif
