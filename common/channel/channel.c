/* Encodes, seals and sends messages; receives, checks and decodes them; counts. */
#include "common/channel/channel.h"

#include "common/base/log.h"
#include "common/base/slice.h"
#include "common/channel/arrivals.h"
#include "common/channel/channel_trace.h"
#include "common/job/job_choices.h"

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

// After this many lines about dropped messages, only every thousandth is logged.
#define DROPPED_LOG_MAX 10

enum status channel_create(struct channel **ret_channel)
{
    struct channel *channel = malloc(sizeof(*channel));
    if (channel == NULL) {
        return STATUS_NO_MEMORY;
    }
    memset(channel, 0, offsetof(struct channel, header));
    enum status status = transport_create(&channel->transport);
    if (status != STATUS_OK) {
        free(channel);
        return status;
    }
    *ret_channel = channel;
    return STATUS_OK;
}

enum status channel_secure(struct channel *channel, const struct security *security)
{
    return transport_secure(channel->transport, security);
}

void channel_close(struct channel *channel, int linger_ms)
{
    if (channel->is_holding) {
        envelope_release(&channel->held);
        channel->is_holding = false;
    }
    transport_destroy(channel->transport, linger_ms);
    channel->transport = NULL;
    sharing_return_all(&channel->sharing);
    mail_finish(&channel->mail);
}

void channel_destroy(struct channel *channel, int linger_ms)
{
    if (channel == NULL) {
        return;
    }
    channel_close(channel, linger_ms);
    peers_finish(&channel->peers);
    sharing_finish(&channel->sharing);
    seals_finish(&channel->seals);
    free(channel);
}

void channel_seal(struct channel *channel, const unsigned char key[SEALS_KEY_BYTES],
                  uint64_t coordinator)
{
    seals_begin(&channel->seals, key, coordinator);
    transport_leave_clear(channel->transport);
}

enum status channel_listen(struct channel *channel, enum transport_kind kind,
                           const struct endpoints_wish *wish, char ret_place[ENDPOINTS_PLACE_BYTES])
{
    enum status status = endpoints_bind(channel->transport, kind, wish, ret_place);
    if (status == STATUS_OK && channel->seals.is_on) {
        endpoints_add_seal(ret_place, channel->seals.listener);
    }
    return status;
}

/* Begins the stream of a connection that this channel made. */
static enum status begin_stream(struct channel *channel, uint64_t number,
                                const unsigned char listener[SEALS_ID_BYTES])
{
    struct peer *peer = peers_find_or_add(&channel->peers, number);
    return peer != NULL ? seals_connect(&channel->seals, listener, &peer->stream)
                        : STATUS_NO_MEMORY;
}

enum status channel_meet(struct channel *channel, const char *place, enum transport_kind kind,
                         uint64_t *ret_peer)
{
    char endpoint[TRANSPORT_ENDPOINT_BYTES];
    unsigned char listener[SEALS_ID_BYTES];
    enum status status = endpoints_choose(place, kind, transport_host_id(), endpoint);
    if (status == STATUS_OK && channel->seals.is_on) {
        status = endpoints_seal(place, listener);
    }
    if (status != STATUS_OK) {
        log_error("no way to reach %s with --transport %s", place, transport_choices[kind].name);
        return status;
    }
    status = transport_connect(channel->transport, endpoint, ret_peer);
    if (status != STATUS_OK) {
        return status;
    }
    const struct message greeting = {.kind = MESSAGE_GREET};
    status = channel->seals.is_on ? begin_stream(channel, *ret_peer, listener) : STATUS_OK;
    return status == STATUS_OK ? channel_send(channel, *ret_peer, &greeting, NULL, NULL) : status;
}

void channel_share(struct channel *channel, const struct region *region)
{
    channel->sharing.own = region;
}

void channel_share_device(struct channel *channel, const struct region *region,
                          const struct sharing_device *device)
{
    channel->sharing.own = region;
    channel->sharing.device = device;
}

bool channel_lends(const struct channel *channel, uint64_t peer)
{
    const struct peer *found = peers_find(&channel->peers, peer);
    return found != NULL && found->sharing.may_borrow;
}

enum status channel_refusal(const struct channel *channel)
{
    return channel->sharing.refusal;
}

void channel_go_far(struct channel *channel)
{
    if (!channel->is_far) {
        (void)slice_shorten();
        channel->is_far = true;
    }
}

bool channel_has_view(const struct channel *channel, uint64_t peer)
{
    const struct peer *found = peers_find(&channel->peers, peer);
    return found != NULL && found->sharing.view.bytes != NULL;
}

bool channel_spares(const struct channel *channel, uint64_t peer)
{
    const struct peer *found = peers_find(&channel->peers, peer);
    return found != NULL && (found->sharing.view.bytes != NULL || found->sharing.may_borrow);
}

enum status channel_offer(struct channel *channel, uint64_t peer)
{
    if (channel->sharing.own == NULL) {
        return STATUS_OK;
    }
    struct peer *known = peers_find_or_add(&channel->peers, peer);
    if (known == NULL || !sharing_begin_offer(&channel->sharing, &known->sharing)) {
        return STATUS_OK; // without memory for it, values travel as before
    }
    struct wire_offer offer = {.region = channel->sharing.own->key};
    const struct message message = {.kind = MESSAGE_OFFER, .offer = &offer};
    if (channel->sharing.device != NULL) {
        offer.has_share = true;
        memcpy(offer.share, channel->sharing.device->share, sizeof(offer.share));
    }
    enum status status = mail_open(&channel->mail, &known->mail, &offer.mail);
    if (status == STATUS_OK) {
        transport_watch(channel->transport, channel->mail.bell);
        offer.has_mail = true;
    } else if (status != STATUS_UNSUPPORTED) {
        return status;
    }
    status = channel_send(channel, peer, &message, NULL, NULL);
    mail_offered(&known->mail);
    return status;
}

/* Where a message goes: the transport's number of the peer, and what is kept about the peer, if
 * anything. */
struct target {
    uint64_t number;
    struct peer *peer; // or NULL
};

/* Sends a message through shared memory if it can go there, otherwise by the peer's socket. */
static enum status send_frames(struct channel *channel, const struct target *to, size_t header_size,
                               const struct payload *payload)
{
    bool has_payload = payload != NULL && payload->size > 0;
    if (!has_payload && to->peer != NULL &&
        mail_post(&to->peer->mail, channel->header, header_size)) {
        return STATUS_OK;
    }
    enum status status =
        transport_send(channel->transport, to->number, channel->header, header_size, payload);
    if (status == STATUS_OK && to->peer != NULL) {
        mail_note_sent(&to->peer->mail);
    }
    return status;
}

static enum status encode_and_send(struct channel *channel, const struct target *to,
                                   const struct message *message, const struct payload *payload)
{
    size_t header_size;
    struct seal_stream *stream = to->peer != NULL ? to->peer->stream : NULL;
    bool has_seal = seals_apply(&channel->seals, to->number);
    enum status status = wire_encode(message, channel->header, WIRE_HEADER_BYTES, &header_size);
    if (status != STATUS_OK) {
        return status;
    }
    if (has_seal) {
        const struct sealed sealed = {channel->header, header_size,
                                      payload != NULL ? payload->size : 0};
        status = seals_make(&channel->seals, stream, &sealed, channel->header + header_size);
        if (status != STATUS_OK) {
            return status;
        }
        header_size += SEAL_BYTES;
    }
    status = send_frames(channel, to, header_size, payload);
    if (status != STATUS_OK) {
        return status;
    }
    if (has_seal) {
        seals_note_sent(stream);
    }
    if (message->kind != MESSAGE_PIECE) { // what a checkpoint takes is no part of a step
        atomic_fetch_add_explicit(&channel->bytes_sent, header_size + wire_payload(message).size,
                                  memory_order_relaxed);
    }
    return STATUS_OK;
}

enum status channel_send(struct channel *channel, uint64_t peer, const struct message *message,
                         void (*release)(void *hint), void *hint)
{
    struct message stamped = *message;
    uint64_t began_ns = trace_begin(channel->trace);
    // A peer that knows the job's id may belong to the job. One that is refused does not.
    stamped.job_id = message->kind == MESSAGE_REFUSE ? 0 : channel->job_id;
    const struct wire_payload values = wire_payload(message);
    struct payload payload = {
        .bytes = values.bytes, .size = values.size, .release = release, .hint = hint};
    const struct target to = {peer, peers_find(&channel->peers, peer)};
    struct wire_loan loan;
    bool is_lent = payload.size > 0 && release != NULL && to.peer != NULL &&
                   sharing_lend(&channel->sharing, &to.peer->sharing, &payload, &loan);
    stamped.flow = channel_trace_flow(channel, message);
    stamped.loan = is_lent ? &loan : message->loan;
    enum status status = encode_and_send(channel, &to, &stamped, is_lent ? NULL : &payload);
    if (status != STATUS_OK && is_lent) {
        sharing_cancel_loan(&channel->sharing, loan.ticket);
    }
    channel_trace_message(channel, TRACE_SEND, &stamped, began_ns);
    return status;
}

/* Counts a dropped message. Returns whether to log it. */
static bool note_dropped(struct channel *channel, struct envelope *envelope,
                         char ret_address[TRANSPORT_ADDRESS_BYTES])
{
    channel->dropped_count++;
    envelope_address(envelope, ret_address);
    return channel->dropped_count <= DROPPED_LOG_MAX || channel->dropped_count % 1000 == 0;
}

static void log_dropped(struct channel *channel, struct envelope *envelope, const char *what)
{
    char address[TRANSPORT_ADDRESS_BYTES];
    if (note_dropped(channel, envelope, address)) {
        log_warn("dropped %s: from=%s header_bytes=%zu payload_bytes=%zu dropped_so_far=%llu", what,
                 address, envelope->header_size, envelope->payload_size,
                 (unsigned long long)channel->dropped_count);
    }
}

/* What is wrong with a message that was dropped. */
static const char *why_dropped(const struct channel *channel, const struct message *message,
                               enum status why)
{
    if (message->job_id != channel->job_id) {
        return channel->has_gone_on ? "of before the job went on, or of another job"
                                    : "of another job";
    }
    return why == STATUS_DENIED ? "from a connection that does not belong to that rank"
                                : "that does not fit";
}

void channel_note_dropped(struct channel *channel, struct envelope *envelope,
                          const struct message *message, enum status why)
{
    char address[TRANSPORT_ADDRESS_BYTES];
    // Nor does a channel know its job before it is told.
    bool is_late =
        message->job_id != channel->job_id && (channel->has_gone_on || channel->job_id == 0);
    if (note_dropped(channel, envelope, address)) {
        log_write(is_late ? LOG_INFO : LOG_WARN,
                  "dropped a %s %s: from=%s rank=%u step=%llu bucket=%u dropped_so_far=%llu",
                  message_kind_name(message->kind), why_dropped(channel, message, why), address,
                  message->rank, (unsigned long long)message->step, message->bucket,
                  (unsigned long long)channel->dropped_count);
    }
}

/* The envelope's values have been read. */
static void return_loan(void *context, uint64_t peer, uint32_t ticket)
{
    struct channel *channel = context;
    if (channel->transport == NULL || ticket == WIRE_NO_TICKET) {
        return; // no process waits for it
    }
    struct wire_loan loan = {.ticket = ticket};
    struct message message = {.kind = MESSAGE_RETURN, .loan = &loan};
    if (channel_send(channel, peer, &message, NULL, NULL) != STATUS_OK) {
        log_debug("peer %llx left before its loan was returned", (unsigned long long)peer);
    }
}

/* Points the message and its envelope at what the peer lends. */
static enum status borrow(struct channel *channel, struct envelope *envelope,
                          struct message *message)
{
    const struct peer *peer = peers_find(&channel->peers, envelope->peer);
    size_t size = message->span.count * sizeof(float);
    enum status status = peer != NULL
                             ? sharing_find(&peer->sharing, message->loan, size, &message->values)
                             : STATUS_MALFORMED;
    if (status == STATUS_OK) {
        envelope->payload = message->values;
        envelope->payload_size = size;
        envelope->loan = (struct loan){return_loan, channel, message->loan->ticket};
        atomic_fetch_add_explicit(&channel->bytes_received, size, memory_order_relaxed);
    }
    return status;
}

/* Takes the peer's offer: its memory, and the queue in which it posts. */
static enum status map_offer(struct channel *channel, uint64_t number,
                             const struct wire_offer *offer)
{
    if (channel->sharing.own == NULL) {
        return STATUS_UNSUPPORTED;
    }
    struct peer *peer = peers_find_or_add(&channel->peers, number);
    if (peer == NULL) {
        return STATUS_NO_MEMORY;
    }
    enum status status = sharing_map(&channel->sharing, &peer->sharing, offer);
    return status == STATUS_OK && offer->has_mail ? mail_map(&peer->mail, &offer->mail) : status;
}

static enum status handle_offer(struct channel *channel, uint64_t peer,
                                const struct wire_offer *offer)
{
    enum status answer = map_offer(channel, peer, offer);
    struct message mapped = {.kind = MESSAGE_MAPPED, .reason = answer};
    if (channel_send(channel, peer, &mapped, NULL, NULL) != STATUS_OK) {
        log_debug("peer %llx left after its offer", (unsigned long long)peer);
    }
    return answer == STATUS_MALFORMED ? STATUS_MALFORMED : STATUS_OK;
}

/* Takes the peer's answer to this channel's offer. */
static enum status handle_mapped(struct channel *channel, struct peer *peer, enum status answer)
{
    enum status status = peer != NULL
                             ? sharing_note_answer(&channel->sharing, &peer->sharing, answer)
                             : STATUS_MALFORMED;
    if (status == STATUS_OK && answer == STATUS_OK) {
        mail_begin(&peer->mail);
    }
    return status;
}

/* Does what the channel itself has to do with a message. STATUS_INTERRUPTED: the message was for
 * the channel only. */
static enum status handle_own(struct channel *channel, struct envelope *envelope,
                              struct message *message)
{
    enum status status = STATUS_OK;
    bool is_ours = message->kind == MESSAGE_OFFER || message->kind == MESSAGE_MAPPED ||
                   message->kind == MESSAGE_RETURN || message->kind == MESSAGE_GREET;
    if (!is_ours && message->loan == NULL) {
        return STATUS_OK;
    }
    if (message->job_id != channel->job_id) {
        return STATUS_MALFORMED;
    }
    struct peer *peer = peers_find(&channel->peers, envelope->peer);
    if (message->kind == MESSAGE_OFFER) {
        status = handle_offer(channel, envelope->peer, message->offer);
    } else if (message->kind == MESSAGE_MAPPED) {
        status = handle_mapped(channel, peer, message->reason);
    } else if (message->kind == MESSAGE_RETURN) {
        status = peer != NULL
                     ? sharing_end_loan(&channel->sharing, &peer->sharing, message->loan->ticket)
                     : STATUS_MALFORMED;
    } else if (message->kind != MESSAGE_GREET) {
        return borrow(channel, envelope, message);
    }
    return status == STATUS_OK ? STATUS_INTERRUPTED : status;
}

/* Notes that the stream came by the peer's connection. What goes to the peer belongs to that stream
 * from now on; what goes to the stream's earlier connection no longer does. */
static enum status move_stream(struct channel *channel, uint64_t number, struct seal_stream *stream)
{
    struct peer *peer = peers_find_or_add(&channel->peers, number);
    if (peer == NULL) {
        return STATUS_NO_MEMORY;
    }
    for (uint32_t i = 0; i < channel->peers.count; i++) {
        struct peer *other = channel->peers.list[i];
        other->stream = other->stream == stream ? NULL : other->stream;
    }
    peer->stream = peer->stream == NULL ? stream : peer->stream;
    return STATUS_OK;
}

/* Takes the seal off a received header, if it should have one. STATUS_MALFORMED: the seal is
 * missing or wrong. */
static enum status open_seal(struct channel *channel, struct envelope *envelope)
{
    if (!seals_apply(&channel->seals, envelope->peer)) {
        return STATUS_OK;
    }
    if (envelope->header_size < SEAL_BYTES) {
        return STATUS_MALFORMED;
    }
    envelope->header_size -= SEAL_BYTES;
    const unsigned char *header = envelope->header;
    const struct sealed sealed = {header, envelope->header_size, envelope->payload_size};
    const struct peer *peer = peers_find(&channel->peers, envelope->peer);
    struct seal_stream *expected = peer != NULL ? peer->stream : NULL, *stream;
    enum status status =
        seals_check(&channel->seals, expected, &sealed, header + envelope->header_size, &stream);
    return status == STATUS_OK && stream != expected ? move_stream(channel, envelope->peer, stream)
                                                     : status;
}

enum status channel_receive(struct channel *channel, int timeout_ms, struct envelope *ret_envelope,
                            struct message *ret_message)
{
    struct envelope *envelope = ret_envelope;
    enum status status = arrivals_next(channel, timeout_ms, envelope);
    if (status != STATUS_OK) {
        return status;
    }
    atomic_fetch_add_explicit(&channel->bytes_received,
                              envelope->header_size + envelope->payload_size, memory_order_relaxed);
    if (open_seal(channel, envelope) != STATUS_OK) {
        log_dropped(channel, envelope, "a message whose seal is not the next one");
        envelope_release(envelope);
        return STATUS_INTERRUPTED;
    }
    uint32_t version = 0;
    const struct wire_frames frames = {envelope->header, envelope->header_size, envelope->payload,
                                       envelope->payload_size};
    status = wire_decode(&frames, &channel->scratch, &version, ret_message);
    if (status == STATUS_MISMATCH) {
        char address[TRANSPORT_ADDRESS_BYTES];
        if (note_dropped(channel, envelope, address)) {
            log_error("a peer speaks protocol version %u, this program %u: use the same build of "
                      "ringside everywhere: from=%s",
                      version, WIRE_VERSION, address);
        }
        envelope_release(envelope);
        return STATUS_MISMATCH;
    }
    if (status == STATUS_OK) {
        status = handle_own(channel, envelope, ret_message);
    }
    if (status == STATUS_OK) {
        return STATUS_OK;
    }
    if (status != STATUS_INTERRUPTED) {
        log_dropped(channel, envelope, "a malformed message");
    }
    envelope_release(envelope);
    return STATUS_INTERRUPTED; // as if no message had come
}
