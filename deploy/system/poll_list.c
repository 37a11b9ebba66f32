/* Waits for any of several descriptors. */
#include "deploy/system/poll_list.h"

#include <stdlib.h>

void poll_list_finish(struct poll_list *list)
{
    free(list->items);
    *list = (struct poll_list){0};
}

void poll_list_clear(struct poll_list *list)
{
    list->count = 0;
}

void poll_list_add(struct poll_list *list, int fd, short events)
{
    if (list->count == list->size) {
        size_t size = list->size > 0 ? 2 * list->size : 64;
        struct pollfd *items = realloc(list->items, size * sizeof(*items));
        if (items == NULL) {
            return;
        }
        list->items = items;
        list->size = size;
    }
    list->items[list->count++] = (struct pollfd){.fd = fd, .events = events};
}

void poll_list_wait(struct poll_list *list, int timeout_ms)
{
    poll(list->items, (nfds_t)list->count, timeout_ms);
}
