/* Takes the next message of a channel, which came by a socket or was posted in shared memory.
 * Messages of one peer come in the order in which it sent them. Part of channel.c. */
#ifndef COMMON_CHANNEL_ARRIVALS_H
#define COMMON_CHANNEL_ARRIVALS_H

#include "common/channel/channel.h"

/* Waits at most timeout_ms; -1: forever. Gives the envelope as it came. Statuses are those of
 * transport_receive. */
enum status arrivals_next(struct channel *channel, int timeout_ms, struct envelope *envelope);

#endif
