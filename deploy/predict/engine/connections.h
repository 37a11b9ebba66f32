/* The connections of an engine, in a table by both ends. */
#ifndef DEPLOY_PREDICT_ENGINE_CONNECTIONS_H
#define DEPLOY_PREDICT_ENGINE_CONNECTIONS_H

#include "deploy/predict/basis/network.h"
#include "deploy/predict/engine/array.h"
#include "deploy/predict/engine/flows.h"
#include "deploy/predict/engine/packets.h"

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct connection {
    uint32_t from, to;        // processes
    uint32_t class;           // of its flows
    uint32_t waiting;         // packet + 1, the first to go; 0: none
    struct packet_queue held; // behind the one that goes, which others cannot overtake any more
    uint32_t held_count;      // with the one that goes
    double held_bytes;        // likewise
    double latency_s;
    double buffer; // of the sender's kernel
    double bytes;  // that have gone over it
    uint32_t sent; // packets with bytes that were announced; one less as each begins to go
    bool is_busy;
    bool is_expected; // by its links, to begin with one
};

/* Bytes that a connection holds whose path carries so many per second, 0: any number, and takes so
 * long there and back. */
typedef double (*connections_fit)(double rate, double rtt_s);

struct connection_table {
    const struct network *network;
    const uint32_t *hosts; // of each process
    struct flows *flows;
    connections_fit fit;     // NULL: the network's buffers
    struct connection *list; // (count), owned as the other
    uint32_t count, room;
    uint32_t *seats; // (seat_count) of the list, each + 1; 0: none
    uint32_t seat_count;
};

/* The seat where a connection is, or would be. */
static inline uint32_t *connections_seat(const struct connection_table *table, uint32_t from,
                                         uint32_t to)
{
    uint64_t hash = ((uint64_t)from << 32 | to) * UINT64_C(0x9E3779B97F4A7C15);
    uint32_t at = (uint32_t)(hash >> 32) & (table->seat_count - 1);
    for (; table->seats[at] > 0; at = (at + 1) & (table->seat_count - 1)) {
        const struct connection *connection = &table->list[table->seats[at] - 1];
        if (connection->from == from && connection->to == to) {
            break;
        }
    }
    return &table->seats[at];
}

/* NULL: there is none. */
static inline struct connection *connections_find(const struct connection_table *table,
                                                  uint32_t from, uint32_t to)
{
    uint32_t seat = table->seat_count > 0 ? *connections_seat(table, from, to) : 0;
    return seat > 0 ? &table->list[seat - 1] : NULL;
}

/* Keeps at least half of the seats empty. */
static inline bool connections_grow(struct connection_table *table)
{
    if (2 * table->count < table->seat_count) {
        return true;
    }
    uint32_t count = table->seat_count > 0 ? 2 * table->seat_count : 64;
    uint32_t *seats = calloc(count, sizeof(*seats));
    if (seats == NULL) {
        return false;
    }
    free(table->seats);
    table->seats = seats;
    table->seat_count = count;
    assert(table->count == 0 || table->list != NULL);
    for (uint32_t i = 0; i < table->count; i++) {
        *connections_seat(table, table->list[i].from, table->list[i].to) = i + 1;
    }
    return true;
}

/* One that is not there. NULL: no memory. */
static inline struct connection *connections_add(struct connection_table *table,
                                                 const struct connection *connection)
{
    if (!connections_grow(table) ||
        !array_has_room((void **)&table->list, table->count, &table->room, sizeof(*connection))) {
        return NULL;
    }
    assert(table->list != NULL);
    uint32_t *seat = connections_seat(table, connection->from, connection->to);
    table->list[table->count] = *connection;
    *seat = ++table->count;
    return &table->list[*seat - 1];
}

static inline double connections_latency_s(const struct connection_table *table, uint32_t from,
                                           uint32_t to)
{
    struct network_route route;
    network_find_route(table->network, table->hosts[from], table->hosts[to], &route);
    return route.latency_s;
}

/* Holds what is first of that which waits: as much as the buffer of the sender's kernel has room
 * for, and one packet at least. */
static inline void connections_hold(struct connection *connection, struct packet_store *store,
                                    double buffer)
{
    while (connection->waiting > 0 &&
           (connection->held_count == 0 || connection->held_bytes < buffer)) {
        uint32_t index = connection->waiting - 1;
        connection->waiting = store->list[index].next;
        connection->held_count++;
        connection->held_bytes += store->list[index].bytes;
        (void)packets_append(store, &connection->held, index);
    }
}

/* One without bytes, behind what is held. */
static inline void connections_hold_small(struct connection *connection, struct packet_store *store,
                                          uint32_t index)
{
    connection->held_count++;
    (void)packets_append(store, &connection->held, index);
}

/* The next one that goes; PACKETS_NONE: there is none, or the last one has not gone yet. */
static inline uint32_t connections_next(struct connection *connection,
                                        const struct packet_store *store)
{
    uint32_t index = connection->held.first - 1;
    if (connection->is_busy || connection->held.first == 0) {
        return PACKETS_NONE;
    }
    connection->is_busy = true;
    connection->sent -= connection->sent > 0 && store->list[index].bytes > 0;
    connection->held.first = store->list[index].next;
    return index;
}

/* Tells links whether its next packet has still to begin. */
static inline void connections_expect(struct connection *connection, struct flows *flows)
{
    bool is_expected = connection->sent > 0 && !connection->is_busy;
    if (is_expected != connection->is_expected) {
        connection->is_expected = is_expected;
        flows_expect(flows, connection->class, is_expected);
    }
}

/* One has gone. */
static inline void connections_release(struct connection *connection, double bytes)
{
    connection->is_busy = false;
    connection->held_count--;
    connection->held_bytes -= bytes;
}

/* What one connection over a route carries at most; 0: no limit. */
static inline double connections_rate(const struct network *network,
                                      const struct network_route *route)
{
    double rate = route->flow_bandwidth;
    for (uint32_t i = 0; i < route->link_count; i++) {
        double own = network_free(&network->links[route->links[i]]);
        rate = own > 0 && (rate <= 0 || own < rate) ? own : rate;
    }
    return rate;
}

/* Makes it if it is not there, for such a packet and others alike. NULL: no memory. */
static inline struct connection *connections_make(struct connection_table *table,
                                                  const struct packet *packet)
{
    uint32_t from = packet->from, to = packet->to;
    const struct network *network = table->network;
    const uint32_t *hosts = table->hosts;
    struct connection *found = connections_find(table, from, to);
    if (found != NULL) {
        return found;
    }
    struct network_route route;
    network_find_route(network, hosts[from], hosts[to], &route);
    struct connection made = {
        .from = from, .to = to, .latency_s = route.latency_s, .buffer = network->send_buffer};
    if (table->fit != NULL && network->send_buffer > 0 && hosts[from] != hosts[to]) {
        made.buffer = table->fit(connections_rate(network, &route), 2 * route.latency_s);
    }
    made.class = flows_class_of(table->flows, &route, packet_each(packet));
    return made.class != UINT32_MAX ? connections_add(table, &made) : NULL;
}

/* From when its sender begins to send a packet, links keep a share of what they let pass at once
 * for it. False if there is no memory. */
static inline bool connections_announce(struct connection_table *table, const struct packet *packet)
{
    if (!flows_have_bursts(table->flows)) {
        return true;
    }
    struct connection *connection = connections_make(table, packet);
    if (connection != NULL) {
        connection->sent++;
        connections_expect(connection, table->flows);
    }
    return connection != NULL;
}

/* What went over each link of the network. */
static inline void connections_link_bytes(const struct connection_table *table, double *ret_bytes)
{
    memset(ret_bytes, 0, table->network->link_count * sizeof(*ret_bytes));
    for (uint32_t i = 0; i < table->count; i++) {
        const struct connection *connection = &table->list[i];
        struct network_route route;
        network_find_route(table->network, table->hosts[connection->from],
                           table->hosts[connection->to], &route);
        for (uint32_t j = 0; j < route.link_count; j++) {
            ret_bytes[route.links[j]] += connection->bytes;
        }
    }
}

static inline double connections_bytes(const struct connection_table *table)
{
    return (double)table->count * sizeof(*table->list) +
           (double)table->seat_count * sizeof(*table->seats);
}

static inline void connections_finish(struct connection_table *table)
{
    free(table->list);
    free(table->seats);
}

#endif
