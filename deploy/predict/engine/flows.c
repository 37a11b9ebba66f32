/* Classes of flows, and a heap of the times at which they end. */
#include "deploy/predict/engine/flows.h"

#include "deploy/predict/engine/flow_bursts.h"
#include "deploy/predict/engine/flow_state.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

/* Reckons anew when the first flow of a class ends. */
static void update_end(struct flows *flows, uint32_t index)
{
    const struct flow_class *class = &flows->classes[index];
    const struct flow_pace *pace = &flows->paces[index];
    if (pace->count == 0 || pace->rate <= 0) {
        heap_leave(flows->heap, &flows->heap_count, flows->heap_places, index);
        return;
    }
    double left = class->first.at - class->served;
    const struct heap_key end = {class->since + (left > 0 ? left / pace->rate : 0),
                                 class->first.order};
    heap_enter(flows->heap, &flows->heap_count, flows->heap_places,
               &(struct heap_entry){end, index});
}

/* Brings what each flow has had up to now. */
static void serve(struct flows *flows, uint32_t index, double now)
{
    struct flow_class *class = &flows->classes[index];
    class->served += flows->paces[index].rate * (now - class->since);
    class->since = now;
}

static void mark_dirty(struct flows *flows, uint32_t index)
{
    if (!flows->classes[index].is_dirty) {
        flows->classes[index].is_dirty = true;
        flows->is_out_of_memory = !list_add(&flows->dirty, index) || flows->is_out_of_memory;
    }
}

static uint32_t *chain_of(struct flows *flows, const uint32_t *links, uint32_t count, double most)
{
    uint64_t hash = count;
    memcpy(&hash, &most, sizeof(hash));
    hash += count;
    for (uint32_t i = 0; i < count; i++) {
        hash = (hash ^ links[i]) * UINT64_C(0x9E3779B97F4A7C15);
        hash ^= hash >> 32;
    }
    return &flows->table[hash % flows->table_size];
}

/* Makes the table larger, when its chains would be long. */
static bool grow_table(struct flows *flows)
{
    if (flows->class_count < flows->table_size) {
        return true;
    }
    uint32_t size = flows->table_size > 0 ? 2 * flows->table_size : 64;
    uint32_t *table = calloc(size, sizeof(*table));
    if (table == NULL) {
        return false;
    }
    free(flows->table);
    flows->table = table;
    flows->table_size = size;
    for (uint32_t i = 0; i < flows->class_count; i++) {
        struct flow_class *class = &flows->classes[i];
        uint32_t *chain = chain_of(flows, class->links, class->link_count, class->most);
        class->next = *chain;
        *chain = i + 1;
    }
    return true;
}

/* All arrays of classes have the same room. */
static bool has_room_for_class(struct flows *flows)
{
    const struct {
        void **items;
        size_t size;
    } arrays[] = {{(void **)&flows->classes, sizeof(*flows->classes)},
                  {(void **)&flows->paces, sizeof(*flows->paces)},
                  {(void **)&flows->heap, sizeof(*flows->heap)},
                  {(void **)&flows->heap_places, sizeof(*flows->heap_places)}};
    uint32_t room = flows->class_room;
    for (size_t i = 0; i < sizeof(arrays) / sizeof(arrays[0]); i++) {
        room = flows->class_room;
        if (!array_has_room(arrays[i].items, flows->class_count, &room, arrays[i].size)) {
            return false;
        }
    }
    flows->class_room = room;
    return true;
}

static uint32_t add_class(struct flows *flows, const uint32_t *links, uint32_t count, double most,
                          double each)
{
    uint32_t index = flows->class_count;
    if (!grow_table(flows) || !has_room_for_class(flows)) {
        return UINT32_MAX;
    }
    uint32_t *chain = chain_of(flows, links, count, most);
    struct flow_class *class = &flows->classes[index];
    *class = (struct flow_class){.link_count = count, .most = most, .next = *chain};
    memcpy(class->links, links, count * sizeof(*links));
    flows->paces[index] = (struct flow_pace){.each = each, .limit = FLOW_LIMIT_NONE};
    flows->heap_places[index] = HEAP_NOWHERE;
    flows->class_count++;
    flows->has_limits = flows->has_limits || most < flows->most || most > flows->most;
    flows->most = most > flows->most ? most : flows->most;
    *chain = index + 1;
    return index;
}

uint32_t flows_class_of(struct flows *flows, const struct network_route *route, double each)
{
    uint32_t links[NETWORK_ROUTE_MAX], count = 0;
    double most = route->flow_bandwidth > 0 ? route->flow_bandwidth : FLOW_NO_LIMIT;
    for (uint32_t i = 0; i < route->link_count; i++) {
        links[count] = route->links[i];
        count += flows->network->links[route->links[i]].may_saturate;
    }
    if (flows->table_size > 0) {
        for (uint32_t at = *chain_of(flows, links, count, most); at > 0;
             at = flows->classes[at - 1].next) {
            const struct flow_class *class = &flows->classes[at - 1];
            if (class->link_count == count && class->most == most &&
                flows->paces[at - 1].each == each &&
                memcmp(class->links, links, count * sizeof(*links)) == 0) {
                return at - 1;
            }
        }
    }
    return add_class(flows, links, count, most, each);
}

/* Makes room in a list that belongs to a class or a link, and counts it. */
static bool grow_list(struct flows *flows, void **items, uint32_t count, uint32_t *room,
                      size_t size)
{
    uint32_t before = *room;
    bool has_room = array_has_room(items, count, room, size);
    flows->listed_bytes += (double)(*room - before) * (double)size;
    return has_room;
}

/* Puts a class into the lists of its links, as it has flows now. */
static bool join_links(struct flows *flows, uint32_t index)
{
    struct flow_class *class = &flows->classes[index];
    for (uint32_t i = 0; i < class->link_count; i++) {
        struct link_state *link = &flows->links[class->links[i]];
        if (!grow_list(flows, (void **)&link->classes, link->count, &link->room, sizeof(index))) {
            return false;
        }
        class->places[i] = link->count;
        link->classes[link->count++] = index;
    }
    class->is_listed = true;
    return true;
}

void flows_set_limit(struct flows *flows, uint32_t index, uint32_t limit)
{
    struct flow_pace *pace = &flows->paces[index];
    if (pace->limit == limit) {
        return;
    }
    if (pace->limit != FLOW_LIMIT_NONE) {
        flows->links[pace->limit].limited--;
    }
    if (limit != FLOW_LIMIT_NONE) {
        flows->links[limit].limited++;
    }
    pace->limit = limit;
}

void flows_leave_links(struct flows *flows, uint32_t index)
{
    struct flow_class *class = &flows->classes[index];
    flows_set_limit(flows, index, FLOW_LIMIT_NONE);
    class->is_listed = false;
    flows->paces[index].rate = 0;
    for (uint32_t i = 0; i < class->link_count; i++) {
        struct link_state *link = &flows->links[class->links[i]];
        uint32_t last = link->classes[--link->count];
        link->load = link->count > 0 ? link->load : 0; // without what rounding has left
        struct flow_class *moved = &flows->classes[last];
        link->classes[class->places[i]] = last;
        for (uint32_t j = 0; j < moved->link_count; j++) {
            if (moved->links[j] == class->links[i]) {
                moved->places[j] = class->places[i];
            }
        }
    }
}

bool flows_begin(struct flows *flows, double now, uint32_t index, double bytes, uint32_t token,
                 bool is_paced)
{
    struct flow_class *class = &flows->classes[index];
    uint32_t *count = &flows->paces[index].count;
    if (!grow_list(flows, (void **)&class->flows, *count, &class->room, sizeof(*class->flows))) {
        return false;
    }
    serve(flows, index, now);
    if (*count == 0) {
        class->served = class->ends = 0; // it keeps its rate if it was empty for no time
    }
    if (!class->is_listed && !join_links(flows, index)) {
        return false;
    }
    bytes -= flow_bursts_take(flows, class, bytes, now, is_paced);
    const struct flow flow = {{class->served + bytes, flows->order++}, token};
    class->ends += flow.end.at;
    heap_add(class->flows, count, &flow, sizeof(flow));
    class->first = class->flows[0].end;
    mark_dirty(flows, index);
    update_end(flows, index);
    return true;
}

bool flows_have_bursts(const struct flows *flows)
{
    return flows->has_bursts;
}

void flows_expect(struct flows *flows, uint32_t index, bool is_expected)
{
    flow_bursts_expect(flows, &flows->classes[index], is_expected);
}

double flows_bytes(const struct flows *flows)
{
    size_t each = sizeof(*flows->classes) + sizeof(*flows->paces) + sizeof(*flows->heap) +
                  sizeof(*flows->heap_places);
    return (double)flows->class_count * (double)each + flows->listed_bytes +
           (double)flows->table_size * sizeof(*flows->table);
}

double flows_next_end(const struct flows *flows)
{
    return flows->heap_count > 0 ? flows->heap[0].key.at : DBL_MAX;
}

uint32_t flows_end_next(struct flows *flows, double now)
{
    uint32_t index = flows->heap[0].index;
    struct flow_class *class = &flows->classes[index];
    struct flow flow;
    heap_take(class->flows, &flows->paces[index].count, &flow, sizeof(flow));
    class->served = flow.end.at; // rounding would leave flows behind that end together
    class->ends -= flow.end.at;
    class->since = now;
    class->first = flows->paces[index].count > 0 ? class->flows[0].end : class->first;
    mark_dirty(flows, index);
    update_end(flows, index);
    return flow.token;
}

void flows_set_rate(struct flows *flows, uint32_t index, double rate, double now)
{
    if (rate != flows->paces[index].rate) {
        serve(flows, index, now);
        flows->paces[index].rate = rate;
    }
}

void flows_find_end(struct flows *flows, uint32_t index, double now)
{
    if (flows->classes[index].since == now) {
        update_end(flows, index);
    }
}

enum status flows_create(const struct network *network, struct flows **ret_flows)
{
    struct flows *flows = calloc(1, sizeof(*flows));
    if (flows == NULL) {
        return STATUS_NO_MEMORY;
    }
    flows->network = network;
    flows->most = network->flow_bandwidth > 0 ? network->flow_bandwidth : FLOW_NO_LIMIT;
    flows->links = calloc(network->link_count, sizeof(*flows->links));
    flows->queue = calloc(network->link_count, sizeof(*flows->queue));
    flows->queue_places = calloc(network->link_count, sizeof(*flows->queue_places));
    if (flows->links == NULL || flows->queue == NULL || flows->queue_places == NULL) {
        flows_destroy(flows);
        return STATUS_NO_MEMORY;
    }
    for (uint32_t i = 0; i < network->link_count; i++) {
        flows->queue_places[i] = HEAP_NOWHERE;
        flows->links[i].level = FLOW_LEVEL_NONE;
        flows->links[i].bandwidth = network_free(&network->links[i]);
        flows->links[i].burst.depth = network->links[i].burst;
        flows->has_bursts = flows->has_bursts || network->links[i].burst > 0;
    }
    *ret_flows = flows;
    return STATUS_OK;
}

void flows_destroy(struct flows *flows)
{
    if (flows == NULL) {
        return;
    }
    for (uint32_t i = 0; flows->links != NULL && i < flows->network->link_count; i++) {
        free(flows->links[i].classes);
    }
    for (uint32_t i = 0; i < flows->class_count; i++) {
        free(flows->classes[i].flows);
    }
    free(flows->links);
    free(flows->classes);
    free(flows->paces);
    free(flows->heap_places);
    free(flows->table);
    free(flows->heap);
    free(flows->dirty.items);
    free(flows->changed.items);
    free(flows->queue);
    free(flows->queue_places);
    free(flows);
}
