/* Says which messages a timeline shows, and of which step of the job each is. */
#include "common/channel/channel_trace.h"

/* Of a phase's exchange, whose steps are rounds of that phase. */
static bool is_of_round(enum message_kind kind)
{
    return kind == MESSAGE_PUSH || kind == MESSAGE_PULL || kind == MESSAGE_TAKEN ||
           kind == MESSAGE_PARAMS || kind == MESSAGE_CHUNK;
}

/* What is left out belongs to the channel itself, to checkpoints, or to no step. */
static bool is_shown(enum message_kind kind)
{
    return is_of_round(kind) || kind == MESSAGE_SEED || kind == MESSAGE_SUM ||
           kind == MESSAGE_REPORT || kind == MESSAGE_DONE || kind == MESSAGE_PASSED ||
           kind == MESSAGE_PROCEED || kind == MESSAGE_CONNECTED || kind == MESSAGE_GO;
}

static uint64_t step_of(const struct channel *channel, const struct message *message)
{
    if (!is_of_round(message->kind)) {
        return message->step;
    }
    // A pull is for the step behind the one that it is part of.
    bool is_ahead = message->kind == MESSAGE_PULL || message->kind == MESSAGE_PARAMS;
    return trace_step_of(channel->trace, message->step - (is_ahead && message->step > 0));
}

uint64_t channel_trace_flow(struct channel *channel, const struct message *message)
{
    return channel->trace != NULL && is_shown(message->kind)
               ? trace_next_flow(channel->trace, step_of(channel, message))
               : 0;
}

void channel_trace_record(struct channel *channel, enum trace_kind kind,
                          const struct message *message, uint64_t begin_ns)
{
    bool has_bucket = is_of_round(message->kind) || message->kind == MESSAGE_SEED;
    const struct trace_tag tag = {
        .kind = kind,
        .bucket = has_bucket ? message->bucket : TRACE_NO_BUCKET,
        .step = step_of(channel, message),
        .flow = message->flow,
        .message = message_kind_name(message->kind),
        .rank = message->rank,
        .hop = message->hop,
        .bytes = message->kind == MESSAGE_PULL || message->kind == MESSAGE_TAKEN
                     ? 0
                     : message->span.count * sizeof(float),
    };
    trace_end(channel->trace, begin_ns, &tag);
}

void channel_trace_queued(struct channel *channel, const struct message *message, uint64_t bytes)
{
    if (channel->trace != NULL) {
        trace_note(channel->trace, &(struct trace_tag){.kind = TRACE_QUEUED,
                                                       .bucket = TRACE_NO_BUCKET,
                                                       .step = step_of(channel, message),
                                                       .value = (double)bytes});
    }
}
