/* One queue for each peer, on the channel's thread; the transport's threads tell what was read. */
#include "common/pacer.h"

#include <stdlib.h>

enum status pacer_create(struct channel *channel, uint32_t peer_count, struct pacer **ret_pacer)
{
    struct pacer *pacer = calloc(1, sizeof(*pacer));
    if (pacer == NULL) {
        return STATUS_NO_MEMORY;
    }
    pacer->channel = channel;
    pacer->peer_count = peer_count;
    pacer->peers = calloc((size_t)peer_count + 1, sizeof(*pacer->peers));
    if (pacer->peers == NULL) {
        free(pacer);
        return STATUS_NO_MEMORY;
    }
    for (uint32_t i = 0; i < peer_count; i++) {
        pacer->peers[i].end = &pacer->peers[i].first;
    }
    for (uint32_t i = 0; i < PACER_SENDS_MAX; i++) {
        pacer->sends[i].next = pacer->unused;
        pacer->unused = &pacer->sends[i];
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

/* The transport has read a message. On any thread. */
static void note_read(void *data)
{
    struct pacer_send *send = data;
    struct pacer *pacer = send->pacer;
    void (*release)(void *) = send->release;
    void *hint = send->hint;
    pthread_mutex_lock(&pacer->mutex);
    struct pacer_peer *peer = &pacer->peers[send->to];
    peer->bytes_sent -= send->bytes;
    send->next = pacer->unused;
    pacer->unused = send;
    if (peer->first != NULL) {
        transport_wake(pacer->channel->transport);
    }
    pthread_mutex_unlock(&pacer->mutex);
    release(hint); // from here on the pacer may be gone
}

/* Takes the next message out of a queue. With the mutex held. */
static struct pacer_send *take_next(struct pacer *pacer, struct pacer_peer *peer)
{
    struct pacer_send **best = &peer->first;
    for (struct pacer_send **at = &peer->first; *at != NULL; at = &(*at)->next) {
        if ((*at)->message.bucket > (*best)->message.bucket) {
            best = at;
        }
    }
    struct pacer_send *send = *best;
    *best = send->next;
    if (send->next == NULL) {
        peer->end = best;
    }
    peer->bytes_sent += send->bytes;
    pacer->waiting_count--;
    return send;
}

/* Sends to a peer until its window is full. */
static enum status send_on(struct pacer *pacer, struct pacer_peer *peer)
{
    enum status status = STATUS_OK;
    while (status == STATUS_OK) {
        pthread_mutex_lock(&pacer->mutex);
        bool may_go = peer->first != NULL && peer->bytes_sent < PACER_WINDOW_BYTES;
        struct pacer_send *send = may_go ? take_next(pacer, peer) : NULL;
        pthread_mutex_unlock(&pacer->mutex);
        if (send == NULL) {
            break;
        }
        status = channel_send(pacer->channel, send->peer, &send->message, note_read, send);
        if (status != STATUS_OK) {
            note_read(send);
        }
    }
    return status;
}

/* Adds to the queue of a peer; false if there is no room. */
static bool add(struct pacer *pacer, const struct pacer_send *values)
{
    pthread_mutex_lock(&pacer->mutex);
    struct pacer_send *send = pacer->unused;
    if (send != NULL) {
        struct pacer_peer *peer = &pacer->peers[values->to];
        pacer->unused = send->next;
        *send = *values;
        *peer->end = send;
        peer->end = &send->next;
        pacer->waiting_count++;
    }
    pthread_mutex_unlock(&pacer->mutex);
    return send != NULL;
}

static uint64_t bytes_of(const struct message *message)
{
    return message->code != NULL ? message->code_bytes : message->span.count * sizeof(float);
}

enum status pacer_send(struct pacer *pacer, uint32_t to, uint64_t peer,
                       const struct message *message, void (*release)(void *hint), void *hint)
{
    const struct pacer_send send = {
        .pacer = pacer,
        .message = *message,
        .peer = peer,
        .bytes = bytes_of(message),
        .to = to,
        .release = release,
        .hint = hint,
    };
    if (add(pacer, &send)) {
        return send_on(pacer, &pacer->peers[to]);
    }
    enum status status = channel_send(pacer->channel, peer, message, release, hint);
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
