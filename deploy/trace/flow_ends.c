/* Sorted lists of beginnings and of ends. */
#include "deploy/trace/flow_ends.h"

#include <stdlib.h>

enum status flow_ends_add(struct flow_ends *ends, uint64_t flow, bool ends_flow)
{
    struct flow_list *list = ends_flow ? &ends->ended : &ends->begun;
    if (list->count == list->room) {
        size_t room = list->room > 0 ? 2 * list->room : 1024;
        uint64_t *flows = reallocarray(list->flows, room, sizeof(*flows));
        if (flows == NULL) {
            return STATUS_NO_MEMORY;
        }
        list->flows = flows;
        list->room = room;
    }
    list->flows[list->count++] = flow;
    return STATUS_OK;
}

static int compare(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

static void sort(struct flow_list *list)
{
    if (list->count > 0) {
        qsort(list->flows, list->count, sizeof(*list->flows), compare);
    }
}

void flow_ends_sort(struct flow_ends *ends)
{
    sort(&ends->begun);
    sort(&ends->ended);
}

static bool has(const struct flow_list *list, uint64_t flow)
{
    return list->count > 0 &&
           bsearch(&flow, list->flows, list->count, sizeof(flow), compare) != NULL;
}

bool flow_ends_has_both(const struct flow_ends *ends, uint64_t flow)
{
    return has(&ends->begun, flow) && has(&ends->ended, flow);
}

void flow_ends_finish(struct flow_ends *ends)
{
    free(ends->begun.flows);
    free(ends->ended.flows);
    *ends = (struct flow_ends){0};
}
