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
    uint32_t going;           // packet + 1; 0: none
    uint32_t unread;          // packet + 1 of these, the first that is not encrypted; 0: none
    double unread_bytes;      // of it and of those behind it
    bool is_encrypted;
    double latency_s;
    double buffer; // of the sender's kernel
    double bytes;  // that have gone over it
    uint32_t sent; // packets with bytes that were announced; one less as each begins to go
    bool is_busy;
    bool is_expected; // by its links, to begin with one
};

// That the pacer gives to the transport beyond what the kernel holds: PACER_WINDOW_BYTES.
#define CONNECTIONS_WINDOW_BYTES 65536.0

/* Bytes that a connection holds whose path carries so many per second, 0: any number, and takes so
 * long there and back. */
typedef double (*connections_fit)(double rate, double rtt_s);

struct connection_table {
    const struct network *network;
    const uint32_t *hosts; // of each process
    struct flows *flows;
    connections_fit fit;              // NULL: the network's buffers
    bool encrypts_near, encrypts_far; // within a host, between hosts
    struct connection *list;          // (count), owned as the other
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

static inline void connections_append(struct connection *connection, struct packet_store *store,
                                      uint32_t index)
{
    double bytes = store->list[index].bytes;
    connection->held_count++;
    connection->held_bytes += bytes;
    if (connection->is_encrypted) {
        connection->unread_bytes += bytes;
        connection->unread = connection->unread > 0 ? connection->unread : index + 1;
    }
    (void)packets_append(store, &connection->held, index);
}

/* Encrypts what the kernel has room for behind others, once these are encrypted. */
static inline void connections_encrypt(struct connection *connection,
                                       const struct packet_store *store, double buffer)
{
    double kernel = buffer - CONNECTIONS_WINDOW_BYTES;
    while (connection->unread > 0) {
        double ahead = connection->held_bytes - connection->unread_bytes;
        if (ahead <= 0 || ahead >= kernel) {
            return; // the first of all is encrypted while it goes
        }
        const struct packet *packet = &store->list[connection->unread - 1];
        connection->unread = packet->next;
        connection->unread_bytes -=
            connection->unread > 0 ? packet->bytes : connection->unread_bytes;
    }
}

/* Whether one more packet is held. */
static inline bool connections_has_room(const struct connection *connection, double buffer)
{
    return connection->is_encrypted
               ? connection->unread_bytes < CONNECTIONS_WINDOW_BYTES
               : connection->held_count == 0 || connection->held_bytes < buffer;
}

/* Holds what is first of that which waits: as much as the buffer of the sender's kernel has room
 * for, and one packet at least. With keys it is what the pacer hands over (pacer.h), to which a
 * packet has been sent once it is encrypted. That is done to all of it as its turn comes, so one
 * packet of any size is held behind one that goes. */
static inline void connections_hold(struct connection *connection, struct packet_store *store,
                                    double buffer)
{
    connections_encrypt(connection, store, buffer);
    while (connection->waiting > 0 && connections_has_room(connection, buffer)) {
        uint32_t index = connection->waiting - 1;
        connection->waiting = store->list[index].next;
        connections_append(connection, store, index);
        connections_encrypt(connection, store, buffer);
    }
}

/* One without bytes, behind what is held. */
static inline void connections_hold_small(struct connection *connection, struct packet_store *store,
                                          uint32_t index)
{
    connections_append(connection, store, index);
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
    connection->going = index + 1;
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

/* The one that goes, which has `bytes`, is encrypted. */
static inline void connections_read_going(struct connection *connection, double bytes)
{
    if (connection->unread > 0 && connection->unread == connection->going) {
        connection->unread = connection->held.first;
        connection->unread_bytes -= connection->unread > 0 ? bytes : connection->unread_bytes;
    }
}

/* One has gone. */
static inline void connections_release(struct connection *connection, double bytes)
{
    connections_read_going(connection, bytes);
    connection->is_busy = false;
    connection->going = 0;
    connection->held_count--;
    connection->held_bytes -= connection->held_count > 0 ? bytes : connection->held_bytes;
}

/* A packet is encrypted: if it is one that goes, the pacer may hand over more. */
static inline void connections_encrypted(const struct connection_table *table,
                                         struct packet_store *store, uint32_t index)
{
    const struct packet *packet = &store->list[index];
    struct connection *connection = connections_find(table, packet->from, packet->to);
    if (connection != NULL && connection->going == index + 1) {
        connections_read_going(connection, packet->bytes);
        connections_hold(connection, store, connection->buffer);
    }
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
    bool is_near = hosts[from] == hosts[to];
    made.is_encrypted = made.buffer > 0 && (is_near ? table->encrypts_near : table->encrypts_far);
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

/* Without connections. */
static inline struct connection_table connections_none(const struct network *network,
                                                       const uint32_t *hosts, struct flows *flows,
                                                       const struct engine_model *model)
{
    return (struct connection_table){.network = network,
                                     .hosts = hosts,
                                     .flows = flows,
                                     .fit = model->fit_buffer,
                                     .encrypts_near = model->encrypts_near,
                                     .encrypts_far = model->encrypts_far};
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
