/* Binary heaps in arrays: of items that begin with their key, and of numbers with keys, which know
 * their places and may go up or down. What comes first is at 0. */
#ifndef DEPLOY_PREDICT_ENGINE_HEAP_H
#define DEPLOY_PREDICT_ENGINE_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct heap_key {
    double at;
    uint64_t order; // among those at the same place
};

static inline bool heap_is_before(const void *a, const void *b)
{
    const struct heap_key *first = a, *second = b;
    return first->at < second->at || (first->at == second->at && first->order < second->order);
}

/* `items` (count + 1) has room for the item, of `size` bytes. */
static inline void heap_add(void *items, uint32_t *count, const void *item, size_t size)
{
    char *heap = items;
    uint32_t at = (*count)++;
    for (; at > 0 && heap_is_before(item, heap + (at - 1) / 2 * size); at = (at - 1) / 2) {
        memcpy(heap + at * size, heap + (at - 1) / 2 * size, size);
    }
    memcpy(heap + at * size, item, size);
}

/* Puts an item in the place of the first one, and from there to where it belongs. `item` may be the
 * one behind the last. */
static inline void heap_sink(void *items, uint32_t count, const void *item, size_t size)
{
    char *heap = items;
    uint32_t at = 0;
    for (uint32_t child; (child = 2 * at + 1) < count; at = child) {
        child +=
            child + 1 < count && heap_is_before(heap + (child + 1) * size, heap + child * size);
        if (!heap_is_before(heap + child * size, item)) {
            break;
        }
        memcpy(heap + at * size, heap + child * size, size);
    }
    memmove(heap + at * size, item, size); // the same place if it was the only one
}

/* There is one at least. */
static inline void heap_take(void *items, uint32_t *count, void *ret_first, size_t size)
{
    char *heap = items;
    memcpy(ret_first, heap, size);
    --*count;
    heap_sink(heap, *count, heap + (size_t)*count * size, size);
}

/* A heap of some of many numbers. It holds their keys, since looking these up elsewhere would take
 * most of the time. Each number has its place in the heap; HEAP_NOWHERE: it is not in it. */
#define HEAP_NOWHERE UINT32_MAX

struct heap_entry {
    struct heap_key key;
    uint32_t index;
};

/* Puts an entry where it belongs, above or below the free place `at`. */
static inline void heap_settle(struct heap_entry *heap, uint32_t count, uint32_t at,
                               const struct heap_entry *entry, uint32_t *places)
{
    for (; at > 0 && heap_is_before(entry, &heap[(at - 1) / 2]); at = (at - 1) / 2) {
        heap[at] = heap[(at - 1) / 2];
        places[heap[at].index] = at;
    }
    for (uint32_t child; (child = 2 * at + 1) < count; at = child) {
        child += child + 1 < count && heap_is_before(&heap[child + 1], &heap[child]);
        if (!heap_is_before(&heap[child], entry)) {
            break;
        }
        heap[at] = heap[child];
        places[heap[at].index] = at;
    }
    heap[at] = *entry;
    places[entry->index] = at;
}

/* Gives a number another key, and a place if it has none; `heap` (count + 1) has room for it. */
static inline void heap_enter(struct heap_entry *heap, uint32_t *count, uint32_t *places,
                              const struct heap_entry *entry)
{
    uint32_t at = places[entry->index];
    at = at == HEAP_NOWHERE ? (*count)++ : at;
    heap_settle(heap, *count, at, entry, places);
}

/* Takes a number out, if it is in the heap. */
static inline void heap_leave(struct heap_entry *heap, uint32_t *count, uint32_t *places,
                              uint32_t index)
{
    uint32_t at = places[index];
    if (at == HEAP_NOWHERE) {
        return;
    }
    const struct heap_entry last = heap[--*count];
    if (at < *count) {
        heap_settle(heap, *count, at, &last, places);
    }
    places[index] = HEAP_NOWHERE;
}

#endif
