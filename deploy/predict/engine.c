/* The events of a prediction: a heap of them, connections, and flows that share links. */
#include "deploy/predict/engine.h"

#include <assert.h>
#include <float.h>
#include <stdlib.h>
#include <string.h>

enum event_kind { EVENT_READY, EVENT_FLOW_END, EVENT_ARRIVE, EVENT_HANDLED, EVENT_WAKE };

struct event {
    double time;
    uint64_t order; // among those of one moment
    enum event_kind kind;
    uint32_t a, b; // packet; flow and its version; process and tag
};

struct connection {
    uint32_t waiting; // packet + 1, the first to go; 0: none
    bool is_busy;
};

struct flow {
    uint32_t packet, version;
    struct network_route route;
    uint32_t places[NETWORK_ROUTE_MAX]; // in the lists of its links
    double left, rate, since;
    uint64_t mark;
    bool is_frozen;
};

struct link_state {
    uint32_t *flows; // owned
    uint32_t count, room, unfrozen;
    double bytes, free;
    uint64_t mark;
};

struct list {
    uint32_t *items; // owned
    uint32_t count, room;
};

struct engine {
    const struct network *network;
    const uint32_t *hosts;
    uint32_t process_count;
    double message_s, now;
    struct engine_model model;
    struct event *events; // a heap, owned as the others
    uint32_t event_count, event_room;
    uint64_t order, mark;
    struct packet *packets;
    uint32_t packet_count, packet_room, packet_free; // free: packet + 1
    struct flow *flows;
    uint32_t flow_count, flow_room;
    struct list free_flows, dirty_links, component, reached;
    struct connection *connections; // (process_count, process_count)
    double *busy_until, *busy;      // (process_count)
    struct link_state *links;
    bool is_out_of_memory;
};

/* Makes room for one more. False, and marked, if there is none. */
static bool make_room(struct engine *engine, void **items, uint32_t count, uint32_t *room,
                      size_t size)
{
    if (count < *room) {
        return true;
    }
    uint32_t wanted = *room > 0 ? 2 * *room : 64;
    void *larger = realloc(*items, wanted * size);
    if (larger == NULL) {
        engine->is_out_of_memory = true;
        return false;
    }
    *items = larger;
    *room = wanted;
    return true;
}

static void list_add(struct engine *engine, struct list *list, uint32_t item)
{
    if (make_room(engine, (void **)&list->items, list->count, &list->room, sizeof(item))) {
        list->items[list->count++] = item;
    }
}

static bool is_before(const struct event *a, const struct event *b)
{
    return a->time < b->time || (a->time == b->time && a->order < b->order);
}

static void add_event(struct engine *engine, double time, enum event_kind kind, uint32_t a,
                      uint32_t b)
{
    if (!make_room(engine, (void **)&engine->events, engine->event_count, &engine->event_room,
                   sizeof(*engine->events))) {
        return;
    }
    const struct event event = {time, engine->order++, kind, a, b};
    uint32_t at = engine->event_count++;
    for (; at > 0 && is_before(&event, &engine->events[(at - 1) / 2]); at = (at - 1) / 2) {
        engine->events[at] = engine->events[(at - 1) / 2];
    }
    engine->events[at] = event;
}

static struct event take_event(struct engine *engine)
{
    struct event *events = engine->events, first = events[0];
    const struct event last = events[--engine->event_count];
    uint32_t at = 0;
    for (uint32_t child; (child = 2 * at + 1) < engine->event_count; at = child) {
        child += child + 1 < engine->event_count && is_before(&events[child + 1], &events[child]);
        if (!is_before(&events[child], &last)) {
            break;
        }
        events[at] = events[child];
    }
    events[at] = last;
    return first;
}

/* A copy of it that the engine keeps; UINT32_MAX if there is no memory. */
static uint32_t keep(struct engine *engine, const struct packet *packet)
{
    uint32_t index = engine->packet_free - 1;
    if (engine->packet_free > 0) {
        engine->packet_free = engine->packets[index].next;
    } else if (make_room(engine, (void **)&engine->packets, engine->packet_count,
                         &engine->packet_room, sizeof(*packet))) {
        index = engine->packet_count++;
    } else {
        return UINT32_MAX;
    }
    engine->packets[index] = *packet;
    return index;
}

static struct connection *connection_of(struct engine *engine, const struct packet *packet)
{
    return &engine->connections[(size_t)packet->from * engine->process_count + packet->to];
}

static void mark_links(struct engine *engine, const struct flow *flow)
{
    for (uint32_t i = 0; i < flow->route.link_count; i++) {
        list_add(engine, &engine->dirty_links, flow->route.links[i]);
    }
}

static void begin_flow(struct engine *engine, uint32_t packet)
{
    uint32_t index = engine->flow_count;
    if (engine->free_flows.count > 0) {
        index = engine->free_flows.items[--engine->free_flows.count];
    } else if (make_room(engine, (void **)&engine->flows, engine->flow_count, &engine->flow_room,
                         sizeof(*engine->flows))) {
        memset(&engine->flows[engine->flow_count++], 0, sizeof(*engine->flows));
    } else {
        return;
    }
    struct flow *flow = &engine->flows[index];
    const struct packet *kept = &engine->packets[packet];
    flow->packet = packet;
    flow->left = kept->bytes;
    flow->rate = 0;
    flow->since = engine->now;
    flow->version++;
    network_find_route(engine->network, engine->hosts[kept->from], engine->hosts[kept->to],
                       &flow->route);
    for (uint32_t i = 0; i < flow->route.link_count; i++) {
        struct link_state *link = &engine->links[flow->route.links[i]];
        if (!make_room(engine, (void **)&link->flows, link->count, &link->room, sizeof(index))) {
            return;
        }
        flow->places[i] = link->count;
        link->flows[link->count++] = index;
    }
    mark_links(engine, flow);
}

static void begin_next(struct engine *engine, struct connection *connection)
{
    uint32_t packet = connection->waiting - 1;
    connection->is_busy = connection->waiting > 0;
    if (connection->is_busy) {
        connection->waiting = engine->packets[packet].next;
        begin_flow(engine, packet);
    }
}

/* Behind those of its bucket and of higher ones. */
static void queue_packet(struct engine *engine, uint32_t packet)
{
    struct connection *connection = connection_of(engine, &engine->packets[packet]);
    uint32_t *at = &connection->waiting;
    while (*at > 0 && engine->packets[*at - 1].bucket >= engine->packets[packet].bucket) {
        at = &engine->packets[*at - 1].next;
    }
    engine->packets[packet].next = *at;
    *at = packet + 1;
    if (!connection->is_busy) {
        begin_next(engine, connection);
    }
}

static void end_flow(struct engine *engine, uint32_t index)
{
    struct flow *flow = &engine->flows[index];
    uint32_t packet = flow->packet;
    for (uint32_t i = 0; i < flow->route.link_count; i++) {
        struct link_state *link = &engine->links[flow->route.links[i]];
        uint32_t moved = link->flows[--link->count];
        link->flows[flow->places[i]] = moved;
        for (uint32_t j = 0; j < engine->flows[moved].route.link_count; j++) {
            if (engine->flows[moved].route.links[j] == flow->route.links[i]) {
                engine->flows[moved].places[j] = flow->places[i];
            }
        }
        link->bytes += engine->packets[packet].bytes;
    }
    mark_links(engine, flow);
    flow->version++;
    add_event(engine, engine->now + flow->route.latency_s, EVENT_ARRIVE, packet, 0);
    list_add(engine, &engine->free_flows, index);
    begin_next(engine, connection_of(engine, &engine->packets[packet]));
}

static void reach(struct engine *engine, uint32_t link)
{
    if (engine->links[link].mark != engine->mark) {
        engine->links[link].mark = engine->mark;
        list_add(engine, &engine->reached, link);
    }
}

/* Adds the flows of a link that may have other rates now, and reaches their links. */
static void add_flows_of(struct engine *engine, uint32_t index)
{
    const struct link_state *link = &engine->links[index];
    bool may_saturate = engine->network->links[index].may_saturate;
    for (uint32_t i = 0; i < link->count; i++) {
        struct flow *flow = &engine->flows[link->flows[i]];
        // New ones have no rate. Without a limit anywhere they are found by their own links.
        if (flow->mark == engine->mark || (!may_saturate && flow->rate > 0)) {
            continue;
        }
        flow->mark = engine->mark;
        flow->is_frozen = false;
        list_add(engine, &engine->component, link->flows[i]);
        for (uint32_t j = 0; j < flow->route.link_count; j++) {
            reach(engine, flow->route.links[j]);
        }
    }
}

/* The flows and links that are connected with those that changed, by links that may be full. */
static void find_component(struct engine *engine)
{
    engine->mark++;
    engine->component.count = engine->reached.count = 0;
    for (uint32_t i = 0; i < engine->dirty_links.count; i++) {
        reach(engine, engine->dirty_links.items[i]);
    }
    engine->dirty_links.count = 0;
    for (uint32_t r = 0; r < engine->reached.count; r++) {
        uint32_t index = engine->reached.items[r];
        engine->links[index].free = engine->network->links[index].bandwidth;
        engine->links[index].unfrozen = 0;
        add_flows_of(engine, index);
    }
}

static void set_rate(struct engine *engine, uint32_t index, double rate)
{
    struct flow *flow = &engine->flows[index];
    flow->is_frozen = true;
    for (uint32_t i = 0; i < flow->route.link_count; i++) {
        struct link_state *link = &engine->links[flow->route.links[i]];
        link->unfrozen--;
        link->free -= rate;
    }
    if (rate == flow->rate) {
        return;
    }
    flow->left -= flow->rate * (engine->now - flow->since);
    flow->left = flow->left > 0 ? flow->left : 0;
    flow->since = engine->now;
    flow->rate = rate;
    flow->version++;
    add_event(engine, engine->now + flow->left / rate, EVENT_FLOW_END, index, flow->version);
}

/* What each unfrozen flow of a link may have, or `limit` if that is less. */
static double share_of(const struct engine *engine, uint32_t index, double limit)
{
    const struct link_state *link = &engine->links[index];
    if (!engine->network->links[index].may_saturate || link->unfrozen == 0) {
        return limit;
    }
    double share = link->free / link->unfrozen;
    return share < limit ? share : limit;
}

/* Sets the rates of the unfrozen flows of a link. How many there were. */
static uint32_t freeze(struct engine *engine, uint32_t index, double rate)
{
    const struct link_state *link = &engine->links[index];
    uint32_t count = 0;
    for (uint32_t i = 0; i < link->count; i++) {
        const struct flow *flow = &engine->flows[link->flows[i]];
        if (flow->mark == engine->mark && !flow->is_frozen) {
            set_rate(engine, link->flows[i], rate);
            count++;
        }
    }
    return count;
}

/* Progressive filling, of the flows whose rates may have changed. */
static void share_links(struct engine *engine)
{
    double flow_bandwidth = engine->network->flow_bandwidth;
    double most = flow_bandwidth > 0 ? flow_bandwidth : DBL_MAX / 4;
    find_component(engine);
    for (uint32_t i = 0; i < engine->component.count; i++) {
        const struct flow *flow = &engine->flows[engine->component.items[i]];
        for (uint32_t j = 0; j < flow->route.link_count; j++) {
            engine->links[flow->route.links[j]].unfrozen++;
        }
    }
    for (uint32_t left = engine->component.count; left > 0;) {
        double limit = most;
        for (uint32_t r = 0; r < engine->reached.count; r++) {
            limit = share_of(engine, engine->reached.items[r], limit);
        }
        double rate = limit > 1 ? limit : 1; // rounding may leave nothing
        for (uint32_t r = 0; r < engine->reached.count; r++) {
            uint32_t index = engine->reached.items[r];
            bool is_full = share_of(engine, index, DBL_MAX) <= limit * (1 + 1e-12);
            if (is_full || limit >= most) {
                left -= freeze(engine, index, rate);
            }
        }
    }
}

void engine_occupy(struct engine *engine, uint32_t process, double seconds)
{
    double begin = engine->busy_until[process];
    begin = begin > engine->now ? begin : engine->now;
    engine->busy_until[process] = begin + seconds;
    engine->busy[process] += seconds;
}

void engine_send(struct engine *engine, const struct packet *packet)
{
    assert(packet->bytes > 0 && packet->from != packet->to);
    uint32_t index = keep(engine, packet);
    if (index != UINT32_MAX) {
        engine_occupy(engine, packet->from, engine->message_s);
        add_event(engine, engine->busy_until[packet->from], EVENT_READY, index, 0);
    }
}

void engine_send_small(struct engine *engine, const struct packet *packet)
{
    struct network_route route;
    uint32_t index = keep(engine, packet);
    network_find_route(engine->network, engine->hosts[packet->from], engine->hosts[packet->to],
                       &route);
    if (index != UINT32_MAX) {
        add_event(engine, engine->now + route.latency_s, EVENT_HANDLED, index, 0);
    }
}

void engine_wake_after(struct engine *engine, double seconds, uint32_t process, uint32_t tag)
{
    add_event(engine, engine->now + seconds, EVENT_WAKE, process, tag);
}

static void arrive(struct engine *engine, uint32_t index)
{
    const struct packet *packet = &engine->packets[index];
    double work_s = engine->model.work_s(engine->model.owner, packet);
    engine_occupy(engine, packet->to, engine->message_s + work_s);
    add_event(engine, engine->busy_until[packet->to], EVENT_HANDLED, index, 0);
}

static void hand_over(struct engine *engine, uint32_t index)
{
    const struct packet packet = engine->packets[index]; // sends may move the others
    engine->packets[index].next = engine->packet_free;
    engine->packet_free = index + 1;
    engine->model.deliver(engine->model.owner, &packet);
}

enum status engine_step(struct engine *engine)
{
    if (engine->dirty_links.count > 0 &&
        (engine->event_count == 0 || engine->events[0].time > engine->now)) {
        share_links(engine);
    }
    if (engine->is_out_of_memory) {
        return STATUS_NO_MEMORY;
    }
    if (engine->event_count == 0) {
        return STATUS_END_OF_DATA;
    }
    const struct event event = take_event(engine);
    engine->now = event.time;
    switch (event.kind) {
    case EVENT_READY:
        queue_packet(engine, event.a);
        break;
    case EVENT_FLOW_END:
        if (engine->flows[event.a].version == event.b) {
            end_flow(engine, event.a);
        }
        break;
    case EVENT_ARRIVE:
        arrive(engine, event.a);
        break;
    case EVENT_HANDLED:
        hand_over(engine, event.a);
        break;
    case EVENT_WAKE:
        engine->model.wake(engine->model.owner, event.a, event.b);
        break;
    }
    return STATUS_OK;
}

enum status engine_create(const struct network *network, const uint32_t *hosts,
                          uint32_t process_count, double message_s,
                          const struct engine_model *model, struct engine **ret_engine)
{
    struct engine *engine = calloc(1, sizeof(*engine));
    if (engine == NULL) {
        return STATUS_NO_MEMORY;
    }
    engine->network = network;
    engine->hosts = hosts;
    engine->process_count = process_count;
    engine->message_s = message_s;
    engine->model = *model;
    engine->connections =
        calloc((size_t)process_count * process_count, sizeof(*engine->connections));
    engine->busy_until = calloc(process_count, sizeof(double));
    engine->busy = calloc(process_count, sizeof(double));
    engine->links = calloc(network->link_count, sizeof(*engine->links));
    if (engine->connections == NULL || engine->busy_until == NULL || engine->busy == NULL ||
        engine->links == NULL) {
        engine_destroy(engine);
        return STATUS_NO_MEMORY;
    }
    *ret_engine = engine;
    return STATUS_OK;
}

void engine_destroy(struct engine *engine)
{
    if (engine == NULL) {
        return;
    }
    for (uint32_t i = 0; engine->links != NULL && i < engine->network->link_count; i++) {
        free(engine->links[i].flows);
    }
    free(engine->links);
    free(engine->busy);
    free(engine->busy_until);
    free(engine->connections);
    free(engine->events);
    free(engine->packets);
    free(engine->flows);
    free(engine->free_flows.items);
    free(engine->dirty_links.items);
    free(engine->component.items);
    free(engine->reached.items);
    free(engine);
}

double engine_now(const struct engine *engine)
{
    return engine->now;
}

double engine_link_bytes(const struct engine *engine, uint32_t link)
{
    return engine->links[link].bytes;
}

double engine_busy_s(const struct engine *engine, uint32_t process)
{
    return engine->busy[process];
}
