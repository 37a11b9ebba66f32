/* Queues messages for each peer on the channel's thread. The transport's threads report which were
 * read. */
#include "common/channel/pacer.h"

#include "common/channel/channel_trace.h"

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum status pacer_create(struct channel *channel, uint32_t peer_count, enum pacer_lane lane,
                         struct pacer **ret_pacer)
{
    struct pacer *pacer = malloc(sizeof(*pacer));
    if (pacer == NULL) {
        return STATUS_NO_MEMORY;
    }
    memset(pacer, 0, offsetof(struct pacer, sends));
    pacer->channel = channel;
    pacer->lane = lane;
    pacer->peer_count = peer_count;
    pacer->peers = calloc((size_t)peer_count + 1, sizeof(*pacer->peers));
    if (pacer->peers == NULL) {
        free(pacer);
        return STATUS_NO_MEMORY;
    }
    for (uint32_t i = 0; i < peer_count; i++) {
        pacer->peers[i].end = &pacer->peers[i].first;
    }
    pthread_mutex_init(&pacer->mutex, NULL);
    *ret_pacer = pacer;
    return STATUS_OK;
}

void pacer_destroy(struct pacer *pacer)
{
    if (pacer != NULL) {
        pthread_mutex_destroy(&pacer->mutex);
        free(pacer->peers);
        free(pacer);
    }
}

/* Notes that the transport has read a message. Any thread. */
static void note_read(void *data)
{
    struct pacer_send *send = data;
    struct pacer *pacer = send->pacer;
    void (*release)(void *) = send->release;
    void *hint = send->hint;
    pthread_mutex_lock(&pacer->mutex);
    struct pacer_peer *peer = &pacer->peers[send->to];
    peer->bytes_sent[send->lane] -= send->bytes;
    send->next = pacer->unused;
    pacer->unused = send;
    if (peer->first != NULL) {
        transport_wake(pacer->channel->transport);
    }
    pthread_mutex_unlock(&pacer->mutex);
    release(hint); // after this the pacer may be gone
}

/* Returns the lane with the fewest bytes on it. With the mutex held. */
static uint32_t quietest_lane(const struct pacer_peer *peer)
{
    uint32_t best = UINT32_MAX;
    for (uint32_t i = 0; i < peer->lanes->count; i++) {
        bool is_better = best == UINT32_MAX || peer->bytes_sent[i] < peer->bytes_sent[best];
        best = peer->lanes->peers[i] != LANES_NONE && is_better ? i : best;
    }
    assert(best != UINT32_MAX);
    return best;
}

/* Finds the most urgent message whose lane has room; NULL: there is none. With the mutex held. */
static struct pacer_send **find_next(const struct pacer *pacer, struct pacer_peer *peer,
                                     uint32_t *ret_lane)
{
    struct pacer_send **best = NULL;
    uint32_t quietest = quietest_lane(peer);
    for (struct pacer_send **at = &peer->first; *at != NULL; at = &(*at)->next) {
        uint32_t bucket = (*at)->message.bucket;
        uint32_t lane = pacer->lane == PACER_LANE_OF_BUCKET
                            ? lanes_index_of_bucket(peer->lanes, bucket)
                            : quietest;
        bool has_room = peer->bytes_sent[lane] < PACER_WINDOW_BYTES;
        if (has_room && (best == NULL || bucket > (*best)->message.bucket)) {
            best = at;
            *ret_lane = lane;
        }
    }
    return best;
}

/* Takes the next message to a peer out of its queue; NULL: there is none, or its window is full. */
static struct pacer_send *take_next(struct pacer *pacer, struct pacer_peer *peer)
{
    struct pacer_send *send = NULL;
    uint32_t lane;
    pthread_mutex_lock(&pacer->mutex);
    struct pacer_send **place = peer->first != NULL ? find_next(pacer, peer, &lane) : NULL;
    if (place != NULL) {
        send = *place;
        *place = send->next;
        if (send->next == NULL) {
            peer->end = place;
        }
        send->lane = lane;
        peer->bytes_sent[lane] += send->bytes;
        pacer->waiting_count--;
    }
    pthread_mutex_unlock(&pacer->mutex);
    if (send != NULL) {
        pacer->waiting_bytes -= send->bytes;
        channel_trace_queued(pacer->channel, &send->message, pacer->waiting_bytes);
    }
    return send;
}

/* Sends to a peer until its windows are full. */
static enum status send_on(struct pacer *pacer, struct pacer_peer *peer)
{
    enum status status = STATUS_OK;
    struct pacer_send *send;
    while (status == STATUS_OK && (send = take_next(pacer, peer)) != NULL) {
        status = channel_send(pacer->channel, peer->lanes->peers[send->lane], &send->message,
                              note_read, send);
        if (status != STATUS_OK) {
            note_read(send);
        }
    }
    return status;
}

/* One that is not in use; NULL: there is none. With the mutex held. */
static struct pacer_send *take_unused(struct pacer *pacer)
{
    struct pacer_send *send = pacer->unused;
    if (send != NULL) {
        pacer->unused = send->next;
    } else if (pacer->used_count < PACER_SENDS_MAX) {
        send = &pacer->sends[pacer->used_count++];
    }
    return send;
}

/* Adds to a peer's queue. Returns false if there is no room. */
static bool add(struct pacer *pacer, const struct pacer_send *values, const struct lanes *lanes)
{
    pthread_mutex_lock(&pacer->mutex);
    struct pacer_send *send = take_unused(pacer);
    if (send != NULL) {
        struct pacer_peer *peer = &pacer->peers[values->to];
        peer->lanes = lanes;
        *send = *values;
        if (values->message.outcome != NULL) { // its owner does not keep it until it leaves
            send->outcome = *values->message.outcome;
            send->message.outcome = &send->outcome;
        }
        *peer->end = send;
        peer->end = &send->next;
        pacer->waiting_count++;
    }
    pthread_mutex_unlock(&pacer->mutex);
    if (send != NULL) {
        pacer->waiting_bytes += values->bytes;
        channel_trace_queued(pacer->channel, &values->message, pacer->waiting_bytes);
    }
    return send != NULL;
}

static uint64_t bytes_of(const struct message *message)
{
    return message->encoded != NULL ? message->encoded_bytes : message->span.count * sizeof(float);
}

enum status pacer_send(struct pacer *pacer, uint32_t to, const struct lanes *lanes,
                       const struct message *message, void (*release)(void *hint), void *hint)
{
    const struct pacer_send send = {
        .pacer = pacer,
        .message = *message,
        .bytes = bytes_of(message),
        .to = to,
        .release = release,
        .hint = hint,
    };
    if (add(pacer, &send, lanes)) {
        return send_on(pacer, &pacer->peers[to]);
    }
    enum status status = channel_send(pacer->channel, lanes_of_bucket(lanes, message->bucket),
                                      message, release, hint);
    if (status != STATUS_OK) {
        release(hint);
    }
    return status;
}

enum status pacer_go_on(struct pacer *pacer)
{
    pthread_mutex_lock(&pacer->mutex);
    bool is_waiting = pacer->waiting_count > 0;
    pthread_mutex_unlock(&pacer->mutex);
    enum status status = STATUS_OK;
    for (uint32_t i = 0; is_waiting && i < pacer->peer_count && status == STATUS_OK; i++) {
        status = send_on(pacer, &pacer->peers[i]);
    }
    return status;
}
