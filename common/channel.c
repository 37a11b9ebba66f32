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

void channel_destroy(struct channel *channel, int linger_ms)
{
    if (channel == NULL) {
        return;
    }
    transport_destroy(channel->transport, linger_ms);
    free(channel);
}

enum status channel_send(struct channel *channel, uint64_t peer, const struct message *message,
                         void (*release)(void *hint), void *hint)
{
    struct message stamped = *message;
    stamped.job_id = channel->job_id;
    size_t header_size;
    enum status status =
        wire_encode(&stamped, channel->header, sizeof(channel->header), &header_size);
    if (status != STATUS_OK) {
        return status;
    }
    struct payload payload = {.release = release, .hint = hint};
    if (message->values != NULL) {
        payload.bytes = message->values;
        payload.size = message->span.count * sizeof(float);
    }
    status = transport_send(channel->transport, peer, channel->header, header_size, &payload);
    if (status == STATUS_OK) {
        atomic_fetch_add_explicit(&channel->bytes_sent, header_size + payload.size,
                                  memory_order_relaxed);
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
    if (status != STATUS_OK) {
        log_dropped(channel, envelope);
        envelope_release(envelope);
        return STATUS_INTERRUPTED; // as if nothing had come
    }
    return STATUS_OK;
}
