/* Records the messages of a channel for a timeline: a send and its receive have the same number,
 * which the header carries. */
#ifndef COMMON_CHANNEL_CHANNEL_TRACE_H
#define COMMON_CHANNEL_CHANNEL_TRACE_H

#include "common/channel/channel.h"

/* The number that a message gets; 0: its kind or its step is not recorded. */
uint64_t channel_trace_flow(struct channel *channel, const struct message *message);

/* Records a message that has a number, from begin_ns to now. */
void channel_trace_record(struct channel *channel, enum trace_kind kind,
                          const struct message *message, uint64_t begin_ns);

/* Notes the bytes of values that wait to be sent, when a message has come to them or has left. */
void channel_trace_queued(struct channel *channel, const struct message *message, uint64_t bytes);

/* As channel_trace_record; one branch without a timeline. */
static inline void channel_trace_message(struct channel *channel, enum trace_kind kind,
                                         const struct message *message, uint64_t begin_ns)
{
    if (channel->trace != NULL && message->flow != 0) {
        channel_trace_record(channel, kind, message, begin_ns);
    }
}

#endif
