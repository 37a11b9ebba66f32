/* Queues messages for the coordinator. */
#include "worker/link/outbox.h"

#include <stdio.h>

void outbox_init(struct outbox *outbox)
{
    pthread_mutex_init(&outbox->mutex, NULL);
    pthread_cond_init(&outbox->changed, NULL);
}

void outbox_finish(struct outbox *outbox)
{
    pthread_cond_destroy(&outbox->changed);
    pthread_mutex_destroy(&outbox->mutex);
}

static void fill(struct outbox_entry *entry, const struct message *message)
{
    entry->message = *message;
    if (message->kind != MESSAGE_CHOICES) {
        snprintf(entry->text, sizeof(entry->text), "%s",
                 message->text != NULL ? message->text : "");
        entry->message.text = entry->text;
    }
    if (message->report != NULL) {
        entry->report = *message->report;
        entry->message.report = &entry->report;
    }
    if (message->slices != NULL) {
        entry->slices = *message->slices;
        entry->message.slices = &entry->slices;
    }
    if (message->passed != NULL) {
        entry->passed = *message->passed;
        entry->message.passed = &entry->passed;
    }
    if (message->sum != NULL) {
        entry->sum = *message->sum;
        entry->message.sum = &entry->sum;
    }
    if (message->member != NULL) {
        snprintf(entry->digest, sizeof(entry->digest), "%s", message->member->params_digest);
        entry->member = (struct wire_member){.role = message->member->role,
                                             .has_rank = message->member->has_rank,
                                             .rank = message->member->rank,
                                             .params_digest = entry->digest};
        entry->message.member = &entry->member;
    }
}

void outbox_add(struct outbox *outbox, const struct message *message)
{
    pthread_mutex_lock(&outbox->mutex);
    while (outbox->count == OUTBOX_MAX && !outbox->is_closed) {
        pthread_cond_wait(&outbox->changed, &outbox->mutex);
    }
    if (!outbox->is_closed) {
        fill(&outbox->entries[(outbox->head + outbox->count) % OUTBOX_MAX], message);
        outbox->count++;
    }
    pthread_mutex_unlock(&outbox->mutex);
}

void outbox_entry_copy(struct outbox_entry *to, const struct outbox_entry *from)
{
    fill(to, &from->message);
}

void outbox_flush(struct outbox *outbox, uint32_t transports,
                  void (*take)(void *context, const struct outbox_entry *entry), void *context)
{
    pthread_mutex_lock(&outbox->mutex);
    while (outbox->count > 0) {
        // The writer only appends after the counted entries, so this one stays as it is.
        struct outbox_entry *entry = &outbox->entries[outbox->head];
        pthread_mutex_unlock(&outbox->mutex);
        entry->report.transports = transports;
        take(context, entry);
        pthread_mutex_lock(&outbox->mutex);
        outbox->head = (outbox->head + 1) % OUTBOX_MAX;
        outbox->count--;
        pthread_cond_broadcast(&outbox->changed);
    }
    pthread_mutex_unlock(&outbox->mutex);
}

bool outbox_is_empty(struct outbox *outbox)
{
    pthread_mutex_lock(&outbox->mutex);
    bool is_empty = outbox->count == 0;
    pthread_mutex_unlock(&outbox->mutex);
    return is_empty;
}

void outbox_close(struct outbox *outbox)
{
    pthread_mutex_lock(&outbox->mutex);
    outbox->is_closed = true;
    pthread_cond_broadcast(&outbox->changed);
    pthread_mutex_unlock(&outbox->mutex);
}
