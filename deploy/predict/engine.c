/* The events of a prediction: a heap of them, connections, and threads. */
#include "deploy/predict/engine.h"

#include "deploy/predict/array.h"
#include "deploy/predict/flows.h"
#include "deploy/predict/heap.h"

#include <assert.h>
#include <float.h>
#include <stdlib.h>
#include <string.h>

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

struct connection {
    uint32_t from, to; // processes
    uint32_t class;    // of its flows
    uint32_t waiting;  // packet + 1, the first to go; 0: none
    double latency_s;
    double bytes; // that have gone over it
    bool is_busy;
};

struct thread {                     // of a process
    double busy_until;              // with what it was given so far
    double busy;                    // altogether
    double waited;                  // by packets that had arrived, altogether
    uint64_t taken;                 // packets
    uint32_t first, last;           // that wait, packet + 1; 0: none
    uint32_t sending, sending_last; // that it sends, the same
    bool is_taking;                 // or will, once it is free
};

struct engine {
    const struct network *network;
    const uint32_t *hosts;
    double now;
    struct engine_model model;
    struct event *events; // a heap, owned as the others
    uint32_t event_count, event_room;
    uint64_t order;
    struct packet *packets;
    uint32_t packet_count, packet_room, packet_free; // free: packet + 1
    struct flows *flows;
    struct connection *connections;
    uint32_t connection_count, connection_room;
    uint32_t *seats; // a table of connections, each + 1; 0: none
    uint32_t seat_count;
    struct thread *threads; // (model.threads)
    bool is_out_of_memory;
};

static void add_event_at(struct engine *engine, const struct event *event)
{
    if (!array_has_room((void **)&engine->events, engine->event_count, &engine->event_room,
                        sizeof(*engine->events))) {
        engine->is_out_of_memory = true;
        return;
    }
    heap_add(engine->events, &engine->event_count, event, sizeof(*event));
}

static void add_event(struct engine *engine, double time, enum event_kind kind, uint32_t a,
                      uint32_t b)
{
    add_event_at(engine, &(struct event){{time, engine->order++}, kind, a, b});
}

static struct event take_event(struct engine *engine)
{
    struct event first;
    heap_take(engine->events, &engine->event_count, &first, sizeof(first));
    return first;
}

/* A copy of it that the engine keeps; UINT32_MAX if there is no memory. */
static uint32_t keep(struct engine *engine, const struct packet *packet)
{
    uint32_t index = engine->packet_free - 1;
    if (engine->packet_free > 0) {
        engine->packet_free = engine->packets[index].next;
    } else if (array_has_room((void **)&engine->packets, engine->packet_count, &engine->packet_room,
                              sizeof(*packet))) {
        index = engine->packet_count++;
    } else {
        engine->is_out_of_memory = true;
        return UINT32_MAX;
    }
    engine->packets[index] = *packet;
    return index;
}

/* The place in the table where a connection is, or would be. */
static uint32_t *seat_of(struct engine *engine, uint32_t from, uint32_t to)
{
    uint64_t hash = ((uint64_t)from << 32 | to) * UINT64_C(0x9E3779B97F4A7C15);
    uint32_t at = (uint32_t)(hash >> 32) & (engine->seat_count - 1);
    for (; engine->seats[at] > 0; at = (at + 1) & (engine->seat_count - 1)) {
        const struct connection *connection = &engine->connections[engine->seats[at] - 1];
        if (connection->from == from && connection->to == to) {
            break;
        }
    }
    return &engine->seats[at];
}

/* Keeps at least half of the table empty. */
static bool grow_seats(struct engine *engine)
{
    if (2 * engine->connection_count < engine->seat_count) {
        return true;
    }
    uint32_t count = engine->seat_count > 0 ? 2 * engine->seat_count : 64;
    uint32_t *seats = calloc(count, sizeof(*seats));
    if (seats == NULL) {
        return false;
    }
    free(engine->seats);
    engine->seats = seats;
    engine->seat_count = count;
    for (uint32_t i = 0; i < engine->connection_count; i++) {
        *seat_of(engine, engine->connections[i].from, engine->connections[i].to) = i + 1;
    }
    return true;
}

/* Makes it if it is not there. NULL: no memory. */
static struct connection *connection_of(struct engine *engine, const struct packet *packet)
{
    if (!grow_seats(engine)) {
        return NULL;
    }
    uint32_t *seat = seat_of(engine, packet->from, packet->to);
    if (*seat > 0) {
        return &engine->connections[*seat - 1];
    }
    struct network_route route;
    network_find_route(engine->network, engine->hosts[packet->from], engine->hosts[packet->to],
                       &route);
    struct connection made = {.from = packet->from, .to = packet->to, .latency_s = route.latency_s};
    made.class = flows_class_of(engine->flows, &route);
    if (made.class == UINT32_MAX ||
        !array_has_room((void **)&engine->connections, engine->connection_count,
                        &engine->connection_room, sizeof(made))) {
        return NULL;
    }
    engine->connections[engine->connection_count] = made;
    *seat = ++engine->connection_count;
    return &engine->connections[*seat - 1];
}

static void begin_next(struct engine *engine, struct connection *connection)
{
    uint32_t packet = connection->waiting - 1;
    connection->is_busy = connection->waiting > 0;
    if (connection->is_busy) {
        connection->waiting = engine->packets[packet].next;
        if (!flows_begin(engine->flows, engine->now, connection->class,
                         engine->packets[packet].bytes, packet)) {
            engine->is_out_of_memory = true;
        }
    }
}

/* Behind those of its bucket and of higher ones. */
static void queue_packet(struct engine *engine, uint32_t packet)
{
    struct connection *connection = connection_of(engine, &engine->packets[packet]);
    if (connection == NULL) {
        engine->is_out_of_memory = true;
        return;
    }
    engine->packets[packet].connection = (uint32_t)(connection - engine->connections);
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

static void end_flow(struct engine *engine)
{
    uint32_t packet = flows_end_next(engine->flows, engine->now);
    struct connection *connection = &engine->connections[engine->packets[packet].connection];
    connection->bytes += engine->packets[packet].bytes;
    add_event(engine, engine->now + connection->latency_s, EVENT_ARRIVE, packet, 0);
    begin_next(engine, connection);
}

static uint32_t thread_of(const struct engine *engine, uint32_t process)
{
    return engine->model.threads > 1 ? process : 0;
}

void engine_occupy(struct engine *engine, uint32_t process, double seconds)
{
    struct thread *thread = &engine->threads[thread_of(engine, process)];
    double begin = thread->busy_until > engine->now ? thread->busy_until : engine->now;
    thread->busy_until = begin + seconds;
    thread->busy += seconds;
}

/* A thread's packets are ready in the order in which it was given them: only the first of them is
 * among the events. */
static void announce_first(struct engine *engine, const struct thread *thread)
{
    if (thread->sending > 0) {
        const struct packet *packet = &engine->packets[thread->sending - 1];
        add_event_at(
            engine,
            &(struct event){{packet->ready_s, packet->order}, EVENT_READY, thread->sending - 1, 0});
    }
}

static void queue_sending(struct engine *engine, struct thread *thread, uint32_t index)
{
    bool is_first = thread->sending == 0;
    engine->packets[index].next = 0;
    *(is_first ? &thread->sending : &engine->packets[thread->sending_last - 1].next) = index + 1;
    thread->sending_last = index + 1;
    if (is_first) {
        announce_first(engine, thread);
    }
}

static void send_first(struct engine *engine, uint32_t index)
{
    struct thread *thread = &engine->threads[thread_of(engine, engine->packets[index].from)];
    thread->sending = engine->packets[index].next;
    announce_first(engine, thread);
    queue_packet(engine, index);
}

void engine_send(struct engine *engine, const struct packet *packet)
{
    assert(packet->bytes > 0 && packet->from != packet->to);
    uint32_t index = keep(engine, packet);
    if (index != UINT32_MAX) {
        uint32_t thread = thread_of(engine, packet->from);
        engine_occupy(engine, packet->from, engine->model.message_s[thread]);
        engine->packets[index].ready_s = engine->threads[thread].busy_until;
        engine->packets[index].order = engine->order++;
        queue_sending(engine, &engine->threads[thread], index);
    }
}

void engine_send_small(struct engine *engine, const struct packet *packet)
{
    struct network_route route;
    uint32_t index = keep(engine, packet);
    network_find_route(engine->network, engine->hosts[packet->from], engine->hosts[packet->to],
                       &route);
    if (index != UINT32_MAX) {
        add_event(engine, engine->now + route.latency_s, EVENT_SMALL, index, 0);
    }
}

void engine_wake_after(struct engine *engine, double seconds, uint32_t process, uint32_t tag)
{
    add_event(engine, engine->now + seconds, EVENT_WAKE, process, tag);
}

/* Lets a thread that is free take the first packet that waits. */
static void take_first(struct engine *engine, uint32_t process)
{
    struct thread *thread = &engine->threads[process];
    thread->is_taking = thread->first > 0;
    if (!thread->is_taking) {
        return;
    }
    if (thread->busy_until > engine->now) {
        add_event(engine, thread->busy_until, EVENT_TURN, process, 0);
        return;
    }
    uint32_t index = thread->first - 1;
    const struct packet *packet = &engine->packets[index];
    thread->first = packet->next;
    thread->waited += engine->now - packet->arrived_s;
    thread->taken++;
    double work_s = engine->model.work_s(engine->model.owner, packet);
    engine_occupy(engine, process, engine->model.message_s[process] + work_s);
    add_event(engine, thread->busy_until, EVENT_HANDLED, index, 0);
}

static void arrive(struct engine *engine, uint32_t index)
{
    struct packet *packet = &engine->packets[index];
    struct thread *thread = &engine->threads[packet->to];
    packet->arrived_s = engine->now;
    packet->next = 0;
    *(thread->first > 0 ? &engine->packets[thread->last - 1].next : &thread->first) = index + 1;
    thread->last = index + 1;
    if (!thread->is_taking) {
        take_first(engine, packet->to);
    }
}

static void hand_over(struct engine *engine, uint32_t index)
{
    const struct packet packet = engine->packets[index]; // sends may move the others
    engine->packets[index].next = engine->packet_free;
    engine->packet_free = index + 1;
    engine->model.deliver(engine->model.owner, &packet);
}

static void handle_event(struct engine *engine, const struct event *event)
{
    uint32_t process = event->a;
    switch (event->kind) {
    case EVENT_READY:
        send_first(engine, event->a);
        break;
    case EVENT_ARRIVE:
        arrive(engine, event->a);
        break;
    case EVENT_TURN:
        take_first(engine, process);
        break;
    case EVENT_HANDLED:
        process = engine->packets[event->a].to;
        hand_over(engine, event->a);
        take_first(engine, process);
        break;
    case EVENT_SMALL:
        hand_over(engine, event->a);
        break;
    case EVENT_WAKE:
        engine->model.wake(engine->model.owner, process, event->b);
        break;
    }
}

enum status engine_step(struct engine *engine)
{
    double event_s = engine->event_count > 0 ? engine->events[0].key.at : DBL_MAX;
    // Rates last for some time only, so they are due when time goes on.
    if (event_s > engine->now && flows_next_end(engine->flows) > engine->now &&
        !flows_share(engine->flows, engine->now)) {
        engine->is_out_of_memory = true;
    }
    double flow_s = flows_next_end(engine->flows);
    if (engine->is_out_of_memory) {
        return STATUS_NO_MEMORY;
    }
    if (event_s < flow_s) {
        const struct event event = take_event(engine);
        engine->now = event.key.at;
        handle_event(engine, &event);
        return STATUS_OK;
    }
    if (flow_s >= DBL_MAX) {
        return STATUS_END_OF_DATA;
    }
    engine->now = flow_s > engine->now ? flow_s : engine->now;
    end_flow(engine);
    return STATUS_OK;
}

enum status engine_create(const struct network *network, const uint32_t *hosts,
                          const struct engine_model *model, struct engine **ret_engine)
{
    struct engine *engine = calloc(1, sizeof(*engine));
    if (engine == NULL) {
        return STATUS_NO_MEMORY;
    }
    engine->network = network;
    engine->hosts = hosts;
    engine->model = *model;
    engine->threads = calloc(model->threads, sizeof(*engine->threads));
    if (engine->threads == NULL || flows_create(network, &engine->flows) != STATUS_OK) {
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
    flows_destroy(engine->flows);
    free(engine->threads);
    free(engine->connections);
    free(engine->seats);
    free(engine->events);
    free(engine->packets);
    free(engine);
}

double engine_now(const struct engine *engine)
{
    return engine->now;
}

void engine_link_bytes(const struct engine *engine, double *ret_bytes)
{
    memset(ret_bytes, 0, engine->network->link_count * sizeof(*ret_bytes));
    for (uint32_t i = 0; i < engine->connection_count; i++) {
        const struct connection *connection = &engine->connections[i];
        struct network_route route;
        network_find_route(engine->network, engine->hosts[connection->from],
                           engine->hosts[connection->to], &route);
        for (uint32_t j = 0; j < route.link_count; j++) {
            ret_bytes[route.links[j]] += connection->bytes;
        }
    }
}

double engine_busy_s(const struct engine *engine, uint32_t process)
{
    return engine->threads[process].busy;
}

double engine_waited_s(const struct engine *engine, uint32_t process)
{
    return engine->threads[process].waited;
}

uint64_t engine_taken(const struct engine *engine, uint32_t process)
{
    return engine->threads[process].taken;
}
