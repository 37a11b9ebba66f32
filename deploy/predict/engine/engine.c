/* The events of a prediction: a heap of them, connections, and threads. */
#include "deploy/predict/engine/engine.h"

#include "deploy/predict/engine/connections.h"
#include "deploy/predict/engine/events.h"
#include "deploy/predict/engine/flows.h"
#include "deploy/predict/engine/packets.h"
#include "deploy/predict/engine/threads.h"

#include <assert.h>
#include <float.h>
#include <stdlib.h>
#include <string.h>

struct engine {
    double now;
    struct engine_model model;
    struct event_heap events; // owned as the others
    uint64_t order;
    struct packet_store store;
    struct flows *flows;
    struct connection_table connections;
    struct thread *threads; // (model.threads)
    struct cores *cores;
    bool is_out_of_memory;
};

static void add_event_at(struct engine *engine, const struct event *event)
{
    engine->is_out_of_memory = !events_add(&engine->events, event) || engine->is_out_of_memory;
}

static void add_event(struct engine *engine, double time, enum event_kind kind, uint32_t a,
                      uint32_t b)
{
    add_event_at(engine, &(struct event){{time, engine->order++}, kind, a, b});
}

/* A copy of it that the engine keeps; PACKETS_NONE if there is no memory. */
static uint32_t keep(struct engine *engine, const struct packet *packet)
{
    uint32_t index = packets_keep(&engine->store, packet);
    engine->is_out_of_memory = engine->is_out_of_memory || index == PACKETS_NONE;
    return index;
}

static uint32_t thread_of(const struct engine *engine, uint32_t process)
{
    return process % engine->model.threads;
}

static void add_work(struct engine *engine, const struct cores_work *work, double seconds)
{
    if (!cores_add(engine->cores, engine->now, work, seconds)) {
        engine->is_out_of_memory = true;
    }
}

/* Of a thread for messages. */
static void give_work(struct engine *engine, uint32_t thread, enum work_kind kind, uint32_t token,
                      double seconds)
{
    engine->threads[thread].busy += seconds;
    add_work(engine, &(struct cores_work){thread, CORES_MESSAGES, kind, token}, seconds);
}

bool engine_shares_cores(const struct engine *engine, uint32_t process)
{
    return cores_are_limited(engine->cores, thread_of(engine, process));
}

/* Lets the thread of a process carry its end of a packet. False if that takes no time. */
static bool carry(struct engine *engine, uint32_t process, enum cores_thread side, uint32_t index)
{
    uint32_t thread = thread_of(engine, process);
    const struct packet *packet = &engine->store.list[index];
    double bytes = packet->is_lent || packet->is_copied ? 0 : packet->bytes;
    double seconds = engine->model.work_scale[thread] * packet_each(packet) *
                     (engine->model.carriage_message_s + bytes * engine->model.carriage_byte_s);
    bool takes_time = seconds > 0 && engine_shares_cores(engine, thread);
    if (takes_time) {
        engine->store.list[index].awaited++;
        add_work(engine, &(struct cores_work){thread, side, WORK_CARRY, index}, seconds);
    }
    return takes_time;
}

/* Counts its way and those who carry it at both ends. Whether its sender's end takes time. */
static bool carry_both_ends(struct engine *engine, uint32_t index)
{
    struct packet *packet = &engine->store.list[index];
    packet->awaited = 1;
    bool takes_time = carry(engine, packet->from, CORES_OUT, index);
    (void)carry(engine, packet->to, CORES_IN, index);
    return takes_time;
}

/* Sends a packet that no link carries. */
static void send_aside(struct engine *engine, uint32_t index)
{
    const struct packet *packet = &engine->store.list[index];
    double latency_s = connections_latency_s(&engine->connections, packet->from, packet->to);
    bool is_carried = packet->is_lent || engine_shares_cores(engine, packet->from);
    if (is_carried) {
        (void)carry_both_ends(engine, index);
    }
    add_event(engine, engine->now + latency_s, is_carried ? EVENT_ARRIVE : EVENT_SMALL, index, 0);
}

/* The next packet of a connection that links carry; small ones before it go aside. */
static uint32_t take_next(struct engine *engine, struct connection *connection)
{
    for (;;) {
        connections_hold(connection, &engine->store, connection->buffer);
        uint32_t index = connections_next(connection, &engine->store);
        if (index == PACKETS_NONE || engine->store.list[index].bytes > 0) {
            return index;
        }
        connections_release(connection, 0);
        send_aside(engine, index);
    }
}

/* Lets the next packet of a connection go, once the last one has gone. */
static void go_on(struct engine *engine, struct connection *connection)
{
    uint32_t index = take_next(engine, connection);
    connections_expect(connection, engine->flows);
    if (index == PACKETS_NONE) {
        return;
    }
    const struct packet *packet = &engine->store.list[index];
    if (packet->is_moved || !carry_both_ends(engine, index)) {
        connections_encrypted(&engine->connections, &engine->store, index);
    }
    if (!flows_begin(engine->flows, engine->now, connection->class, packet->bytes, index,
                     packet->is_paced)) {
        engine->is_out_of_memory = true;
    }
}

/* Behind those of its bucket and of higher ones. */
static void queue_packet(struct engine *engine, uint32_t packet)
{
    const struct packet *queued = &engine->store.list[packet];
    struct connection *connection = connections_make(&engine->connections, queued);
    if (connection == NULL) {
        engine->is_out_of_memory = true;
        return;
    }
    engine->store.list[packet].connection = (uint32_t)(connection - engine->connections.list);
    packets_queue_by_bucket(&engine->store, &connection->waiting, packet);
    go_on(engine, connection);
}

static void end_flow(struct engine *engine)
{
    uint32_t index = flows_end_next(engine->flows, engine->now);
    const struct packet packet = engine->store.list[index];
    struct connection *connection = &engine->connections.list[packet.connection];
    connection->bytes +=
        packet_each(&packet) * (packet.counted_bytes > 0 ? packet.counted_bytes : packet.bytes);
    if (packet.is_moved) {
        add_event(engine, engine->now, EVENT_SMALL, index, 0);
    } else {
        add_event(engine, engine->now + connection->latency_s, EVENT_ARRIVE, index, 0);
    }
    connections_release(connection, packet.bytes);
    go_on(engine, connection);
}

void engine_occupy(struct engine *engine, uint32_t process, double seconds)
{
    uint32_t index = thread_of(engine, process);
    struct thread *thread = &engine->threads[index];
    if (engine_shares_cores(engine, index)) {
        give_work(engine, index, WORK_OWN, 0, seconds);
        return;
    }
    double begin = thread->busy_until > engine->now ? thread->busy_until : engine->now;
    thread->busy_until = begin + seconds;
    thread->busy += seconds;
}

/* A thread's packets are ready in the order in which it was given them: only the first of them is
 * among the events. */
static void announce_first(struct engine *engine, const struct thread *thread)
{
    if (thread->sending.first > 0) {
        uint32_t first = thread->sending.first - 1;
        const struct packet *packet = &engine->store.list[first];
        const struct event event = {{packet->ready_s, packet->order}, EVENT_READY, first, 0};
        add_event_at(engine, &event);
    }
}

/* Lets a packet go, once its sender has sent it. */
static void launch(struct engine *engine, uint32_t index)
{
    const struct packet *packet = &engine->store.list[index];
    struct connection *connection =
        packet->is_in_turn ? connections_find(&engine->connections, packet->from, packet->to)
                           : NULL;
    if (connection != NULL && connection->held_count > 0) {
        connections_hold_small(connection, &engine->store, index);
    } else if (packet->is_lent || packet->bytes <= 0) {
        send_aside(engine, index);
    } else {
        queue_packet(engine, index);
    }
}

static void send_first(struct engine *engine, uint32_t index)
{
    const struct packet *packet = &engine->store.list[index];
    struct thread *thread = &engine->threads[thread_of(engine, packet->from)];
    thread->sending.first = packet->next;
    announce_first(engine, thread);
    launch(engine, index);
}

/* Behind what the thread of the sender does and sends. */
static void send_behind(struct engine *engine, uint32_t index)
{
    struct packet *packet = &engine->store.list[index];
    struct thread *thread = &engine->threads[thread_of(engine, packet->from)];
    packet->ready_s = thread->busy_until > engine->now ? thread->busy_until : engine->now;
    packet->order = engine->order++;
    if (packets_append(&engine->store, &thread->sending, index)) {
        announce_first(engine, thread);
    }
}

void engine_send(struct engine *engine, const struct packet *packet)
{
    assert(packet->bytes > 0 && packet->from != packet->to);
    uint32_t index = keep(engine, packet), thread = thread_of(engine, packet->from);
    double seconds = threads_message_s(&engine->model, thread, packet, true);
    if (index != PACKETS_NONE && !packet->is_lent && !packet->is_paced &&
        !connections_announce(&engine->connections, packet)) {
        engine->is_out_of_memory = true;
    }
    if (index != PACKETS_NONE && engine_shares_cores(engine, thread)) {
        give_work(engine, thread, WORK_SEND, index, seconds);
    } else if (index != PACKETS_NONE) {
        engine_occupy(engine, packet->from, seconds);
        send_behind(engine, index);
    }
}

void engine_send_small(struct engine *engine, const struct packet *packet)
{
    uint32_t index = keep(engine, packet), thread = thread_of(engine, packet->from);
    if (index == PACKETS_NONE) {
        return;
    }
    struct packet *small = &engine->store.list[index];
    small->bytes = 0;
    if (engine_shares_cores(engine, thread)) {
        give_work(engine, thread, WORK_SEND, index,
                  threads_message_s(&engine->model, thread, small, true));
    } else if (small->is_in_turn) {
        send_behind(engine, index);
    } else {
        send_aside(engine, index);
    }
}

void engine_move(struct engine *engine, const struct packet *packet)
{
    uint32_t index = keep(engine, packet);
    if (index != PACKETS_NONE) {
        engine->store.list[index].is_moved = true;
        queue_packet(engine, index);
    }
}

void engine_wake_after(struct engine *engine, double seconds, uint32_t process, uint32_t tag)
{
    add_event(engine, engine->now + seconds, EVENT_WAKE, process, tag);
}

void engine_run(struct engine *engine, enum cores_thread thread, double seconds, uint32_t process,
                uint32_t tag)
{
    uint32_t index = thread_of(engine, process);
    if (engine_shares_cores(engine, index)) {
        add_work(engine, &(struct cores_work){index, thread, WORK_RUN, tag}, seconds);
    } else {
        engine_wake_after(engine, seconds, process, tag);
    }
}

/* Lets a thread that is free take the first packet that waits. */
static void take_first(struct engine *engine, uint32_t process)
{
    struct thread *thread = &engine->threads[process];
    bool shares_cores = engine_shares_cores(engine, process);
    thread->is_taking = thread->waiting.first > 0;
    if (!thread->is_taking) {
        return;
    }
    if (shares_cores && !cores_is_idle(engine->cores, process, CORES_MESSAGES)) {
        return; // the end of what it does comes here again
    }
    if (!shares_cores && thread->busy_until > engine->now) {
        add_event(engine, thread->busy_until, EVENT_TURN, process, 0);
        return;
    }
    uint32_t index = thread->waiting.first - 1;
    const struct packet *packet = &engine->store.list[index];
    thread->waiting.first = packet->next;
    thread->waited += engine->now - packet->arrived_s;
    thread->taken++;
    double work_s = threads_message_s(&engine->model, process, packet, false) +
                    engine->model.work_scale[process] * packet_each(packet) *
                        engine->model.work_s(engine->model.owner, packet);
    if (shares_cores) {
        give_work(engine, process, WORK_HANDLE, index, work_s);
        return;
    }
    engine_occupy(engine, process, work_s);
    add_event(engine, thread->busy_until, EVENT_HANDLED, index, 0);
}

/* Of what a packet awaits, the last comes here, too. */
static void arrive(struct engine *engine, uint32_t index)
{
    struct packet *packet = &engine->store.list[index];
    if (--packet->awaited > 0) {
        return;
    }
    struct thread *thread = &engine->threads[packet->to];
    packet->arrived_s = engine->now;
    (void)packets_append(&engine->store, &thread->waiting, index);
    if (!thread->is_taking) {
        take_first(engine, packet->to);
    }
}

static void hand_over(struct engine *engine, uint32_t index)
{
    const struct packet packet = engine->store.list[index]; // sends may move the others
    packets_drop(&engine->store, index);
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
        process = engine->store.list[event->a].to;
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

static void end_work(struct engine *engine)
{
    const struct cores_work work = cores_end_next(engine->cores, engine->now);
    if (work.process == CORES_NOBODY) {
        return; // another thread has the core
    }
    switch ((enum work_kind)work.kind) {
    case WORK_OWN:
        break;
    case WORK_SEND:
        launch(engine, work.token);
        break;
    case WORK_HANDLE:
        hand_over(engine, work.token);
        break;
    case WORK_CARRY:
        if (work.thread == CORES_OUT) {
            connections_encrypted(&engine->connections, &engine->store, work.token);
        }
        arrive(engine, work.token);
        break;
    case WORK_RUN:
        engine->model.wake(engine->model.owner, work.process, work.token);
        break;
    }
    if (work.thread == CORES_MESSAGES) {
        take_first(engine, work.process);
    }
}

enum status engine_step(struct engine *engine)
{
    double event_s = events_next(&engine->events);
    bool is_over = event_s > engine->now && flows_next_end(engine->flows) > engine->now;
    double work_s = is_over ? cores_next_end(engine->cores) : DBL_MAX; // nothing else is due
    bool is_work = work_s < event_s;
    event_s = is_work ? work_s : event_s;
    // Rates last for some time only, so they are due when time goes on.
    if (event_s > engine->now && flows_next_end(engine->flows) > engine->now &&
        !flows_share(engine->flows, engine->now)) {
        engine->is_out_of_memory = true;
    }
    double flow_s = flows_next_end(engine->flows);
    if (engine->is_out_of_memory) {
        return STATUS_NO_MEMORY;
    }
    if (event_s < flow_s && is_work) {
        engine->now = work_s > engine->now ? work_s : engine->now;
        end_work(engine);
        return STATUS_OK;
    }
    if (event_s < flow_s) {
        const struct event event = events_take(&engine->events);
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
    engine->model = *model;
    engine->threads = calloc(model->threads, sizeof(*engine->threads));
    if (engine->threads == NULL || flows_create(network, &engine->flows) != STATUS_OK ||
        cores_create(network, hosts, model->threads, &model->cores, &engine->cores) != STATUS_OK) {
        engine_destroy(engine);
        return STATUS_NO_MEMORY;
    }
    engine->connections = connections_none(network, hosts, engine->flows, model);
    *ret_engine = engine;
    return STATUS_OK;
}

void engine_destroy(struct engine *engine)
{
    if (engine == NULL) {
        return;
    }
    flows_destroy(engine->flows);
    cores_destroy(engine->cores);
    free(engine->threads);
    connections_finish(&engine->connections);
    free(engine->events.list);
    packets_finish(&engine->store);
    free(engine);
}

double engine_now(const struct engine *engine)
{
    return engine->now;
}

double engine_bytes(const struct engine *engine)
{
    return packets_bytes(&engine->store) + connections_bytes(&engine->connections) +
           flows_bytes(engine->flows) + cores_bytes(engine->cores) +
           (double)engine->events.count * sizeof(*engine->events.list);
}

void engine_link_bytes(const struct engine *engine, double *ret_bytes)
{
    connections_link_bytes(&engine->connections, ret_bytes);
}

struct engine_usage engine_usage(const struct engine *engine, uint32_t process)
{
    const struct thread *thread = &engine->threads[process];
    return (struct engine_usage){thread->busy, thread->waited, thread->taken};
}
