/* Two channels of one process, for tests: a client that has connected to a server. */
#ifndef TESTS_SUPPORT_COMMON_CHANNEL_PAIR_H
#define TESTS_SUPPORT_COMMON_CHANNEL_PAIR_H

#include "common/channel/channel.h"

struct channel_pair {
    struct channel *server, *client;
    uint64_t to_server; // the client's number for it
};

/* Fails the test if it cannot. */
void channel_pair_open(struct channel_pair *pair);
void channel_pair_close(struct channel_pair *pair);

/* What the next message does; a wake counts for nothing. */
enum status channel_pair_receive(struct channel *channel, struct envelope *envelope,
                                 struct message *message);

#endif
