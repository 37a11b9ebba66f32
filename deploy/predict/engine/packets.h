/* The packets that an engine keeps, by number, and queues of them. A queue links packet + 1; 0 is
 * none. */
#ifndef DEPLOY_PREDICT_ENGINE_PACKETS_H
#define DEPLOY_PREDICT_ENGINE_PACKETS_H

#include "deploy/predict/engine/array.h"
#include "deploy/predict/engine/engine.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#define PACKETS_NONE UINT32_MAX

struct packet_store {
    struct packet *list; // owned; moves when one is kept
    uint32_t count, room, free;
};

struct packet_queue {
    uint32_t first, last; // last: unless it is empty
};

/* The number of a copy; PACKETS_NONE if there is no memory. */
static inline uint32_t packets_keep(struct packet_store *store, const struct packet *packet)
{
    uint32_t index = store->free - 1;
    if (store->free > 0) {
        store->free = store->list[index].next;
    } else if (array_has_room((void **)&store->list, store->count, &store->room, sizeof(*packet))) {
        index = store->count++;
    } else {
        return PACKETS_NONE;
    }
    store->list[index] = *packet;
    return index;
}

static inline void packets_drop(struct packet_store *store, uint32_t index)
{
    store->list[index].next = store->free;
    store->free = index + 1;
}

/* Behind those of its bucket and of higher ones. */
static inline void packets_queue_by_bucket(struct packet_store *store, uint32_t *first,
                                           uint32_t index)
{
    uint32_t *at = first;
    while (*at > 0 && store->list[*at - 1].bucket >= store->list[index].bucket) {
        at = &store->list[*at - 1].next;
    }
    store->list[index].next = *at;
    *at = index + 1;
}

/* Behind all of them. True if there was none. */
static inline bool packets_append(struct packet_store *store, struct packet_queue *queue,
                                  uint32_t index)
{
    bool was_empty = queue->first == 0;
    store->list[index].next = 0;
    *(was_empty ? &queue->first : &store->list[queue->last - 1].next) = index + 1;
    queue->last = index + 1;
    return was_empty;
}

static inline double packets_bytes(const struct packet_store *store)
{
    return (double)store->count * sizeof(*store->list);
}

static inline void packets_finish(struct packet_store *store)
{
    free(store->list);
}

#endif
