/* A list, last in and first out, under a lock. */
#include "worker/data/idle_list.h"

#include <stddef.h>

void idle_list_init(struct idle_list *list)
{
    list->first = NULL;
    pthread_mutex_init(&list->lock, NULL); // which never fails on Linux
}

void idle_list_finish(struct idle_list *list)
{
    pthread_mutex_destroy(&list->lock);
}

struct idle_entry *idle_list_take(struct idle_list *list)
{
    pthread_mutex_lock(&list->lock);
    struct idle_entry *entry = list->first;
    if (entry != NULL) {
        list->first = entry->next;
    }
    pthread_mutex_unlock(&list->lock);
    return entry;
}

void idle_list_return(struct idle_list *list, struct idle_entry *entry)
{
    pthread_mutex_lock(&list->lock);
    entry->next = list->first;
    list->first = entry;
    pthread_mutex_unlock(&list->lock);
}
