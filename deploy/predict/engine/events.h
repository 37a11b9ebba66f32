/* What an engine has to do, and when: a heap of it. */
#ifndef DEPLOY_PREDICT_ENGINE_EVENTS_H
#define DEPLOY_PREDICT_ENGINE_EVENTS_H

#include "deploy/predict/engine/array.h"
#include "deploy/predict/engine/heap.h"

#include <float.h>
#include <stdbool.h>
#include <stdint.h>

enum event_kind {
    EVENT_READY,   // a packet may go
    EVENT_ARRIVE,  // it has come
    EVENT_TURN,    // the thread of a process may be free
    EVENT_HANDLED, // it has taken a packet
    EVENT_SMALL,   // a packet comes that needs no thread
    EVENT_WAKE,
};

struct event {
    struct heap_key key; // its time
    enum event_kind kind;
    uint32_t a, b; // packet; process, and its tag
};

struct event_heap {
    struct event *list; // owned
    uint32_t count, room;
};

/* False if there is no memory. */
static inline bool events_add(struct event_heap *events, const struct event *event)
{
    if (!array_has_room((void **)&events->list, events->count, &events->room,
                        sizeof(*events->list))) {
        return false;
    }
    heap_add(events->list, &events->count, event, sizeof(*event));
    return true;
}

/* When the first is due; DBL_MAX: there is none. */
static inline double events_next(const struct event_heap *events)
{
    return events->count > 0 ? events->list[0].key.at : DBL_MAX;
}

/* There has to be one. */
static inline struct event events_take(struct event_heap *events)
{
    struct event event;
    heap_take(events->list, &events->count, &event, sizeof(event));
    return event;
}

#endif
