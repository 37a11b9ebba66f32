/* Arrays that grow. */
#ifndef DEPLOY_PREDICT_ENGINE_ARRAY_H
#define DEPLOY_PREDICT_ENGINE_ARRAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* Makes room for one more. False if there is no memory. */
static inline bool array_has_room(void **items, uint32_t count, uint32_t *room, size_t size)
{
    if (count < *room) {
        return true;
    }
    uint32_t wanted = *room > 0 ? 2 * *room : 4;
    void *larger = realloc(*items, wanted * size);
    if (larger == NULL) {
        return false;
    }
    *items = larger;
    *room = wanted;
    return true;
}

struct list {
    uint32_t *items; // owned
    uint32_t count, room;
};

static inline bool list_add(struct list *list, uint32_t item)
{
    bool is_there = array_has_room((void **)&list->items, list->count, &list->room, sizeof(item));
    if (is_there) {
        list->items[list->count++] = item;
    }
    return is_there;
}

#endif
