/* A list of predictions that were made or are being made. */
#include "deploy/predict/advise/memo.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct memo_entry {
    struct memo_entry *next; // owned
    char key[MEMO_KEY_BYTES];
    bool is_made; // otherwise a thread is about it
    enum status status;
    struct prediction made;
};

struct memo {
    pthread_mutex_t mutex;
    pthread_cond_t has_made;
    struct memo_entry *first; // guarded by the mutex, as all entries are
};

struct memo *memo_create(void)
{
    struct memo *memo = calloc(1, sizeof(*memo));
    if (memo != NULL) {
        pthread_mutex_init(&memo->mutex, NULL);
        pthread_cond_init(&memo->has_made, NULL);
    }
    return memo;
}

void memo_destroy(struct memo *memo)
{
    if (memo == NULL) {
        return;
    }
    for (struct memo_entry *entry = memo->first, *next; entry != NULL; entry = next) {
        next = entry->next;
        free(entry);
    }
    pthread_cond_destroy(&memo->has_made);
    pthread_mutex_destroy(&memo->mutex);
    free(memo);
}

static struct memo_entry *find(const struct memo *memo, const char *key)
{
    struct memo_entry *entry = memo->first;
    while (entry != NULL && strcmp(entry->key, key) != 0) {
        entry = entry->next;
    }
    return entry;
}

/* An entry that this thread is about to make. With the mutex. */
static struct memo_entry *begin(struct memo *memo, const char *key)
{
    struct memo_entry *entry = calloc(1, sizeof(*entry));
    if (entry != NULL) {
        snprintf(entry->key, sizeof(entry->key), "%s", key);
        entry->next = memo->first;
        memo->first = entry;
    }
    return entry;
}

enum status memo_predict(struct memo *memo, const char *key,
                         enum status (*make)(const void *context, struct prediction *ret_made),
                         const void *context, struct prediction *ret_made)
{
    pthread_mutex_lock(&memo->mutex);
    struct memo_entry *entry = find(memo, key);
    if (entry == NULL) {
        entry = begin(memo, key);
        pthread_mutex_unlock(&memo->mutex);
        if (entry == NULL) {
            return STATUS_NO_MEMORY;
        }
        enum status status = make(context, &entry->made);
        pthread_mutex_lock(&memo->mutex);
        entry->status = status;
        entry->is_made = true;
        pthread_cond_broadcast(&memo->has_made);
    }
    while (!entry->is_made) {
        pthread_cond_wait(&memo->has_made, &memo->mutex);
    }
    enum status status = entry->status;
    if (status == STATUS_OK) {
        *ret_made = entry->made;
    }
    pthread_mutex_unlock(&memo->mutex);
    return status;
}
