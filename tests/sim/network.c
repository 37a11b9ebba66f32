/* Delays messages, keeps their order, cuts hosts off, and tells who has left. */
#include "tests/sim/network.h"

#include "tests/sim/transport_sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RETRY_NS UINT64_C(100000000) // of a connection that nobody listens to

/* Something on its way: a message, or the end of the connection. */
struct flight {
    struct flight *next; // of its direction, in order
    struct direction *direction;
    struct parcel *parcel;   // NULL: the sender has closed the connection
    struct payload borrowed; // not yet read from the sender's memory; bytes NULL: it was
    bool is_due;             // would have arrived, but for those before it
};

/* One way of a connection. */
struct direction {
    struct connection *connection;
    uint32_t to; // side
    struct flight *first, *last;
    uint64_t free_ns, arrives_ns; // of the last message: when it has left, and when it arrives
};

/* Side 0 has connected to side 1. Peers are numbers of sides. */
struct connection {
    uint64_t number;            // from 1
    struct transport *sides[2]; // NULL: not there yet, or not any more
    uint32_t hosts[2];
    bool has_closed[2];                      // the side knows that the other one has closed it
    bool is_pending;                         // nobody has listened to side 0 yet
    bool is_met;                             // side 1 has had a message
    bool is_broken;                          // nothing that is sent arrives any more
    char endpoint[TRANSPORT_ENDPOINT_BYTES]; // that side 0 wants to reach, or reaches
    struct direction ways[2];                // by the side that sends
};

struct listener {
    struct listener *next;
    struct transport *transport; // NULL: not any more
    char endpoint[TRANSPORT_ENDPOINT_BYTES];
};

struct network {
    struct transport *transports;
    struct connection **connections; // (connection_count) of connection_size, by number
    struct listener *listeners;
    uint64_t message_count, bytes;
    uint32_t connection_count, connection_size, port_count;
    bool is_cut[NETWORK_HOSTS_MAX][NETWORK_HOSTS_MAX]; // from, to
};

static void *must_allocate(size_t bytes)
{
    void *memory = calloc(1, bytes);
    if (memory == NULL) {
        abort();
    }
    return memory;
}

void parcel_destroy(struct parcel *parcel)
{
    if (parcel != NULL) {
        free(parcel->header);
        free(parcel->payload);
        free(parcel);
    }
}

/* ============================================================================================
 * Sides
 * ========================================================================================== */

static uint64_t peer_of(const struct connection *connection, uint32_t side)
{
    return 2 * connection->number + side;
}

/* The connection that this transport calls by the number; NULL: there is none. */
static struct connection *find(const struct network *network, const struct transport *transport,
                               uint64_t peer, uint32_t *ret_side)
{
    uint32_t side = 1 - (uint32_t)(peer % 2);
    uint64_t number = peer / 2;
    bool is_known = number > 0 && number <= network->connection_count;
    struct connection *connection = is_known ? network->connections[number - 1] : NULL;
    *ret_side = side;
    return is_known && connection->sides[side] == transport ? connection : NULL;
}

bool network_is_connected(const struct network *network, const struct transport *transport,
                          uint64_t peer)
{
    uint32_t side;
    const struct connection *connection = find(network, transport, peer, &side);
    return connection != NULL && connection->sides[1 - side] != NULL && !connection->is_broken;
}

bool network_has_left(const struct network *network, const struct transport *transport,
                      uint64_t peer)
{
    uint32_t side;
    const struct connection *connection = find(network, transport, peer, &side);
    return connection != NULL && connection->has_closed[side];
}

/* ============================================================================================
 * What is on its way
 * ========================================================================================== */

/* Reads the payload from the sender's memory, and gives that back. */
static void read_payload(struct flight *flight)
{
    const struct payload borrowed = flight->borrowed;
    if (borrowed.bytes == NULL) {
        return;
    }
    const struct direction *way = flight->direction;
    flight->borrowed.bytes = NULL;
    memcpy(flight->parcel->payload, borrowed.bytes, borrowed.size);
    struct sim_process *before = world_act_as(way->connection->sides[1 - way->to]->process);
    borrowed.release(borrowed.hint);
    world_act_as(before);
}

static void wake_owner(const struct transport *transport)
{
    world_wake(transport->process, transport, true);
}

static void deliver(struct network *network, struct connection *connection, uint32_t to,
                    struct parcel *parcel)
{
    struct transport *transport = connection->sides[to];
    if (transport == NULL || connection->is_broken) {
        parcel_destroy(parcel);
        return;
    }
    parcel->peer = peer_of(connection, 1 - to);
    if (to == 1 && !connection->is_met && transport->notes_departures) {
        departures_note(&transport->departures, (int)connection->number, parcel->peer);
    }
    connection->is_met = connection->is_met || to == 1;
    network->message_count++;
    network->bytes += parcel->header_size + parcel->payload_size;
    if (transport->last != NULL) {
        transport->last->next = parcel;
    } else {
        transport->first = parcel;
    }
    transport->last = parcel;
    wake_owner(transport);
}

static void close_side(struct connection *connection, uint32_t side)
{
    struct transport *transport = connection->sides[side];
    connection->has_closed[side] = true;
    if (transport != NULL && side == 1) {
        departures_close(&transport->departures, (int)connection->number);
    }
    if (transport != NULL) {
        wake_owner(transport);
    }
}

static void free_flight(struct flight *flight)
{
    parcel_destroy(flight->parcel);
    free(flight);
}

/* All that is due and not behind something that is not, where the hosts reach each other. */
static void arrive(struct network *network, struct direction *way)
{
    struct connection *connection = way->connection;
    bool is_cut = network->is_cut[connection->hosts[1 - way->to]][connection->hosts[way->to]];
    bool is_held = is_cut || (connection->is_pending && way->to == 1);
    while (!is_held && way->first != NULL && way->first->is_due) {
        struct flight *flight = way->first;
        way->first = flight->next;
        way->last = way->first != NULL ? way->last : NULL;
        if (flight->parcel == NULL) {
            close_side(connection, way->to);
        } else {
            read_payload(flight);
            deliver(network, connection, way->to, flight->parcel);
            flight->parcel = NULL;
        }
        free_flight(flight);
    }
}

static void note_due(void *data)
{
    struct flight *flight = data;
    flight->is_due = true;
    arrive(world_network(), flight->direction);
}

static void note_read(void *data)
{
    struct direction *way = data;
    struct flight *flight = way->first;
    while (flight != NULL && flight->borrowed.bytes == NULL) {
        flight = flight->next;
    }
    if (flight != NULL) {
        read_payload(flight);
    }
}

/* Queues it behind those before it. It becomes due on its own, so it is freed only after that. */
static void launch(struct direction *way, struct parcel *parcel, const struct payload *borrowed)
{
    const struct world_costs *costs = world_costs();
    const struct connection *connection = way->connection;
    uint32_t from = connection->hosts[1 - way->to], to = connection->hosts[way->to];
    uint64_t latency_ns = world_latency_ns(from, to);
    uint64_t jitter_ns = from == to ? costs->near_ns : costs->jitter_ns;
    uint64_t bytes = parcel != NULL ? parcel->header_size + parcel->payload_size : 0;
    uint64_t now_ns = world_now_ns();
    struct flight *flight = must_allocate(sizeof(*flight));
    flight->direction = way;
    flight->parcel = parcel;
    way->free_ns = way->free_ns > now_ns ? way->free_ns : now_ns;
    if (costs->bytes_per_ns > 0) {
        way->free_ns += (uint64_t)((double)bytes / costs->bytes_per_ns);
    }
    uint64_t arrives_ns = way->free_ns + latency_ns + (jitter_ns > 0 ? world_draw(jitter_ns) : 0);
    way->arrives_ns = arrives_ns > way->arrives_ns ? arrives_ns : way->arrives_ns;
    if (way->last != NULL) {
        way->last->next = flight;
    } else {
        way->first = flight;
    }
    way->last = flight;
    if (borrowed != NULL && borrowed->release != NULL) {
        flight->borrowed = *borrowed;
        world_at(now_ns + world_draw(way->arrives_ns - now_ns + 1), note_read, way);
    }
    world_at(way->arrives_ns, note_due, flight);
}

enum status network_send(struct network *network, const struct transport *transport, uint64_t peer,
                         const struct parcel *header, const struct payload *payload)
{
    uint32_t side;
    struct connection *connection = find(network, transport, peer, &side);
    bool is_lost = connection == NULL || connection->has_closed[side];
    if (is_lost && (connection == NULL || side == 1)) {
        return STATUS_UNREACHABLE;
    }
    struct parcel *parcel = must_allocate(sizeof(*parcel));
    parcel->header = must_allocate(header->header_size);
    parcel->header_size = header->header_size;
    memcpy(parcel->header, header->header, header->header_size);
    if (payload != NULL && payload->size > 0) {
        parcel->payload_size = payload->size;
        parcel->payload = aligned_alloc(64, (payload->size + 63) / 64 * 64);
        if (parcel->payload == NULL) {
            abort();
        }
        if (payload->release == NULL) {
            memcpy(parcel->payload, payload->bytes, payload->size);
        }
    }
    launch(&connection->ways[side], parcel, payload);
    return STATUS_OK;
}

/* ============================================================================================
 * Connections
 * ========================================================================================== */

static void try_to_connect(void *data)
{
    struct connection *connection = data;
    const struct listener *listener = world_network()->listeners;
    while (listener != NULL &&
           (listener->transport == NULL || strcmp(listener->endpoint, connection->endpoint) != 0)) {
        listener = listener->next;
    }
    if (connection->sides[0] == NULL) {
        return;
    }
    if (listener == NULL) {
        world_at(world_now_ns() + RETRY_NS, try_to_connect, connection);
        return;
    }
    connection->sides[1] = listener->transport;
    connection->hosts[1] = listener->transport->process->host;
    connection->is_pending = false;
    arrive(world_network(), &connection->ways[0]);
}

uint64_t network_connect(struct network *network, struct transport *transport, const char *endpoint)
{
    struct connection *connection = must_allocate(sizeof(*connection));
    if (network->connection_count == network->connection_size) {
        network->connections = world_grow(network->connections, &network->connection_size,
                                          sizeof(struct connection *));
    }
    network->connections[network->connection_count++] = connection;
    connection->number = network->connection_count;
    connection->is_pending = true;
    connection->sides[0] = transport;
    connection->hosts[0] = connection->hosts[1] = transport->process->host;
    snprintf(connection->endpoint, sizeof(connection->endpoint), "%s", endpoint);
    for (uint32_t side = 0; side < 2; side++) {
        connection->ways[side] = (struct direction){.connection = connection, .to = 1 - side};
    }
    try_to_connect(connection);
    return peer_of(connection, 1);
}

void network_listen(struct network *network, struct transport *transport, const char *endpoint)
{
    struct listener *listener = must_allocate(sizeof(*listener));
    listener->transport = transport;
    snprintf(listener->endpoint, sizeof(listener->endpoint), "%s", endpoint);
    listener->next = network->listeners;
    network->listeners = listener;
}

uint32_t network_new_port(struct network *network)
{
    return 40000 + network->port_count++;
}

void network_add(struct network *network, struct transport *transport)
{
    transport->next = network->transports;
    network->transports = transport;
}

/* What the kernel has not read of a process that has ended is lost, with all behind it. The events
 * of what is dropped are still to come, so it stays where it is, and says nothing. */
static void drop(struct flight *first)
{
    for (struct flight *flight = first; flight != NULL; flight = flight->next) {
        flight->borrowed.bytes = NULL;
        parcel_destroy(flight->parcel);
        flight->parcel = NULL;
    }
}

static void lose_unread(const struct direction *way)
{
    struct flight *flight = way->first;
    while (flight != NULL && flight->borrowed.bytes == NULL) {
        flight = flight->next;
    }
    drop(flight);
}

static void read_all(struct direction *way)
{
    for (struct flight *flight = way->first; flight != NULL; flight = flight->next) {
        read_payload(flight);
    }
}

static void leave_connection(struct connection *connection, uint32_t side, bool is_orderly)
{
    if (is_orderly) {
        read_all(&connection->ways[side]);
    } else {
        lose_unread(&connection->ways[side]);
    }
    connection->sides[side] = NULL;
    launch(&connection->ways[side], NULL, NULL);
}

void network_disconnect(struct network *network, struct transport *transport, uint64_t peer)
{
    uint32_t side;
    struct connection *connection = find(network, transport, peer, &side);
    if (connection != NULL) {
        leave_connection(connection, side, true);
    }
}

static void leave(struct network *network, struct transport *transport, bool is_orderly)
{
    for (uint32_t i = 0; i < network->connection_count; i++) {
        struct connection *connection = network->connections[i];
        for (uint32_t side = 0; side < 2; side++) {
            if (connection->sides[side] == transport) {
                leave_connection(connection, side, is_orderly);
            }
        }
    }
    for (struct listener *listener = network->listeners; listener != NULL;
         listener = listener->next) {
        listener->transport = listener->transport == transport ? NULL : listener->transport;
    }
    struct transport **at = &network->transports;
    while (*at != NULL && *at != transport) {
        at = &(*at)->next;
    }
    if (*at != NULL) {
        *at = transport->next;
    }
}

void network_remove(struct network *network, struct transport *transport)
{
    leave(network, transport, true);
}

void network_process_ended(struct network *network, const struct sim_process *process)
{
    struct transport *transport = network->transports;
    while (transport != NULL) {
        struct transport *next = transport->next;
        if (transport->process == process) {
            leave(network, transport, false);
        }
        transport = next;
    }
}

void network_cut(struct network *network, uint32_t from, uint32_t to)
{
    network->is_cut[from][to] = true;
}

void network_heal(struct network *network, uint32_t from, uint32_t to)
{
    network->is_cut[from][to] = false;
    for (uint32_t i = 0; i < network->connection_count; i++) {
        arrive(network, &network->connections[i]->ways[0]);
        arrive(network, &network->connections[i]->ways[1]);
    }
}

void network_break(struct network *network, uint32_t host, uint32_t other)
{
    for (uint32_t i = 0; i < network->connection_count; i++) {
        struct connection *connection = network->connections[i];
        uint32_t first = connection->hosts[0], second = connection->hosts[1];
        bool is_between = (first == host && second == other) || (first == other && second == host);
        for (uint32_t side = 0; side < 2 && is_between && !connection->is_broken; side++) {
            read_all(&connection->ways[side]); // the sender gets its memory back
            drop(connection->ways[side].first);
            launch(&connection->ways[side], NULL, NULL);
        }
        connection->is_broken = connection->is_broken || is_between;
    }
}

uint64_t network_message_count(const struct network *network)
{
    return network->message_count;
}

uint64_t network_bytes(const struct network *network)
{
    return network->bytes;
}

struct network *network_create(void)
{
    return must_allocate(sizeof(struct network));
}

static void destroy_connection(struct connection *connection)
{
    for (uint32_t side = 0; side < 2; side++) {
        while (connection->ways[side].first != NULL) {
            struct flight *flight = connection->ways[side].first;
            connection->ways[side].first = flight->next;
            free_flight(flight);
        }
    }
    free(connection);
}

void network_destroy(struct network *network)
{
    if (network == NULL) {
        return;
    }
    for (uint32_t i = 0; i < network->connection_count; i++) {
        destroy_connection(network->connections[i]);
    }
    free(network->connections);
    while (network->listeners != NULL) {
        struct listener *listener = network->listeners;
        network->listeners = listener->next;
        free(listener);
    }
    free(network);
}
