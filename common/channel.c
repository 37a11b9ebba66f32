/* Encode and send, receive and decode, count. */
#include "common/channel.h"

#include "common/log.h"

#include <assert.h>
#include <stdlib.h>

// After so many lines on malformed messages, only every so many-th is logged.
#define DROPPED_LOG_MAX 10

enum status channel_create(struct channel **ret_channel)
{
    struct channel *channel = calloc(1, sizeof(*channel));
    if (channel == NULL) {
        return STATUS_NO_MEMORY;
    }
    enum status status = transport_create(&channel->transport);
    if (status != STATUS_OK) {
        free(channel);
        return status;
    }
    *ret_channel = channel;
    return STATUS_OK;
}

void channel_close(struct channel *channel, int linger_ms)
{
    transport_destroy(channel->transport, linger_ms);
    channel->transport = NULL;
    sharing_return_all(&channel->sharing);
}

void channel_destroy(struct channel *channel, int linger_ms)
{
    if (channel == NULL) {
        return;
    }
    channel_close(channel, linger_ms);
    sharing_finish(&channel->sharing);
    free(channel);
}

void channel_share(struct channel *channel, const struct region *region)
{
    channel->sharing.own = region;
}

enum status channel_offer(struct channel *channel, uint64_t peer)
{
    if (channel->sharing.own == NULL) {
        return STATUS_OK;
    }
    struct message offer = {.kind = MESSAGE_OFFER, .region = &channel->sharing.own->key};
    return channel_send(channel, peer, &offer, NULL, NULL);
}

static enum status encode_and_send(struct channel *channel, uint64_t peer,
                                   const struct message *message, const struct payload *payload)
{
    size_t header_size;
    enum status status =
        wire_encode(message, channel->header, sizeof(channel->header), &header_size);
    if (status == STATUS_OK) {
        status = transport_send(channel->transport, peer, channel->header, header_size, payload);
    }
    if (status == STATUS_OK) {
        size_t payload_size = message->code != NULL     ? message->code_bytes
                              : message->values != NULL ? message->span.count * sizeof(float)
                                                        : 0;
        atomic_fetch_add_explicit(&channel->bytes_sent, header_size + payload_size,
                                  memory_order_relaxed);
    }
    return status;
}

enum status channel_send(struct channel *channel, uint64_t peer, const struct message *message,
                         void (*release)(void *hint), void *hint)
{
    struct message stamped = *message;
    stamped.job_id = channel->job_id;
    struct payload payload = {.release = release, .hint = hint};
    if (message->code != NULL) {
        payload.bytes = message->code;
        payload.size = message->code_bytes;
    } else if (message->values != NULL) {
        payload.bytes = message->values;
        payload.size = message->span.count * sizeof(float);
    }
    struct wire_loan loan;
    bool is_lent = payload.size > 0 && release != NULL &&
                   sharing_lend(&channel->sharing, peer, &payload, &loan);
    if (!is_lent) {
        return encode_and_send(channel, peer, &stamped, &payload);
    }
    stamped.loan = &loan;
    enum status status = encode_and_send(channel, peer, &stamped, NULL);
    if (status != STATUS_OK) {
        sharing_cancel_loan(&channel->sharing, loan.ticket);
    }
    return status;
}

static void log_dropped(struct channel *channel, const struct envelope *envelope)
{
    channel->dropped_count++;
    if (channel->dropped_count <= DROPPED_LOG_MAX || channel->dropped_count % 1000 == 0) {
        log_warn("dropped a malformed message: peer=%llx header_bytes=%zu payload_bytes=%zu "
                 "dropped_so_far=%llu",
                 (unsigned long long)envelope->peer, envelope->header_size, envelope->payload_size,
                 (unsigned long long)channel->dropped_count);
    }
}

/* The envelope's values have been read. */
static void return_loan(void *context, uint64_t peer, uint32_t ticket)
{
    struct channel *channel = context;
    if (channel->transport == NULL || ticket == WIRE_NO_TICKET) {
        return; // nobody waits for it
    }
    struct wire_loan loan = {.ticket = ticket};
    struct message message = {.kind = MESSAGE_RETURN, .loan = &loan};
    if (channel_send(channel, peer, &message, NULL, NULL) != STATUS_OK) {
        log_debug("peer %llx has gone before its loan was returned", (unsigned long long)peer);
    }
}

/* Points the message and its envelope at what the peer lends. */
static enum status borrow(struct channel *channel, struct envelope *envelope,
                          struct message *message)
{
    size_t size = message->span.count * sizeof(float);
    enum status status =
        sharing_find(&channel->sharing, envelope->peer, message->loan, size, &message->values);
    if (status == STATUS_OK) {
        envelope->payload = message->values;
        envelope->payload_size = size;
        envelope->loan = (struct loan){return_loan, channel, message->loan->ticket};
        atomic_fetch_add_explicit(&channel->bytes_received, size, memory_order_relaxed);
    }
    return status;
}

static enum status handle_offer(struct channel *channel, uint64_t peer,
                                const struct message *message)
{
    enum status answer = sharing_map(&channel->sharing, peer, message->region);
    struct message mapped = {.kind = MESSAGE_MAPPED, .reason = answer};
    if (channel_send(channel, peer, &mapped, NULL, NULL) != STATUS_OK) {
        log_debug("peer %llx has gone after its offer", (unsigned long long)peer);
    }
    return answer == STATUS_MALFORMED ? STATUS_MALFORMED : STATUS_OK;
}

/* What the channel itself has to do with a message. STATUS_INTERRUPTED: it was for the channel
 * alone. */
static enum status handle_sharing(struct channel *channel, struct envelope *envelope,
                                  struct message *message)
{
    enum status status;
    bool is_ours = message->kind == MESSAGE_OFFER || message->kind == MESSAGE_MAPPED ||
                   message->kind == MESSAGE_RETURN;
    if (!is_ours && message->loan == NULL) {
        return STATUS_OK;
    }
    if (message->job_id != channel->job_id) {
        return STATUS_MALFORMED;
    }
    if (message->kind == MESSAGE_OFFER) {
        status = handle_offer(channel, envelope->peer, message);
    } else if (message->kind == MESSAGE_MAPPED) {
        status = sharing_note_answer(&channel->sharing, envelope->peer, message->reason);
    } else if (message->kind == MESSAGE_RETURN) {
        status = sharing_end_loan(&channel->sharing, envelope->peer, message->loan->ticket);
    } else {
        return borrow(channel, envelope, message);
    }
    return status == STATUS_OK ? STATUS_INTERRUPTED : status;
}

enum status channel_receive(struct channel *channel, int timeout_ms, struct envelope *ret_envelope,
                            struct message *ret_message)
{
    struct envelope *envelope = ret_envelope;
    enum status status = transport_receive(channel->transport, timeout_ms, envelope);
    if (status != STATUS_OK) {
        return status;
    }
    atomic_fetch_add_explicit(&channel->bytes_received,
                              envelope->header_size + envelope->payload_size, memory_order_relaxed);
    uint32_t version = 0;
    const struct wire_frames frames = {envelope->header, envelope->header_size, envelope->payload,
                                       envelope->payload_size};
    status = wire_decode(&frames, &channel->scratch, &version, ret_message);
    if (status == STATUS_MISMATCH) {
        log_error("peer %llx speaks protocol version %u, this program %u: use the same build of "
                  "ringside everywhere",
                  (unsigned long long)envelope->peer, version, WIRE_VERSION);
        envelope_release(envelope);
        return STATUS_MISMATCH;
    }
    if (status == STATUS_OK) {
        status = handle_sharing(channel, envelope, ret_message);
    }
    if (status == STATUS_OK) {
        return STATUS_OK;
    }
    if (status != STATUS_INTERRUPTED) {
        log_dropped(channel, envelope);
    }
    envelope_release(envelope);
    return STATUS_INTERRUPTED; // as if nothing had come
}
