/* What flows are: for the files that have a part of them. `flows` has when they begin and end, and
 * `flow_rates` how fast they are. */
#ifndef DEPLOY_PREDICT_ENGINE_FLOW_STATE_H
#define DEPLOY_PREDICT_ENGINE_FLOW_STATE_H

#include "deploy/predict/basis/network.h"
#include "deploy/predict/engine/array.h"
#include "deploy/predict/engine/heap.h"

#include <stdbool.h>
#include <stdint.h>

/* A token bucket (flow_bursts.h). */
struct flow_burst {
    double depth; // bytes; 0: none pass at once
    double given; // bytes, without those that its bandwidth has had the time for, until `since`
    double since;
};

struct flow {
    struct heap_key end; // `served` of its class when it ends
    uint32_t token;
};

struct flow_class {
    uint32_t links[NETWORK_ROUTE_MAX];  // those that may be full
    uint32_t places[NETWORK_ROUTE_MAX]; // in the lists of these links
    uint32_t link_count;
    struct flow *flows;                 // a heap, owned
    uint32_t count, room, shared_count; // shared: when rates were given last
    double most;                        // bytes per second of one flow
    double served;                      // bytes of each flow, until `since`
    double ends;                        // sum of those of its flows
    double rate, since;
    double end; // of its first flow
    uint32_t heap_place;
    uint32_t next;  // in its chain of the table, class + 1
    uint64_t mark;  // of the sharing that it takes part in
    bool is_frozen; // has its rate of this sharing
    bool is_dirty;  // is in the list of those that changed
    bool is_listed; // at its links
};

struct link_state {
    double bandwidth;  // that the job has of it
    uint32_t *classes; // that have flows; owned
    uint32_t count, room;
    double load, top;  // of the flows' rates: their sum, and the largest
    uint32_t unfrozen; // flows that take part
    double free;       // bandwidth that the other flows leave
    uint64_t mark;     // of the sharing that it takes part in
    struct flow_burst burst;
};

struct flows {
    const struct network *network;
    double most;                // bytes per second of one flow, where loss allows it
    bool has_limits;            // classes whose flows have less
    bool has_bursts;            // links that let some bytes pass at once
    struct flow_class *classes; // owned as the others
    uint32_t class_count, class_room;
    uint32_t *table; // chains of classes, by their links
    uint32_t table_size;
    uint32_t *heap; // of classes, by their ends
    uint32_t heap_count, heap_room;
    struct link_state *links;
    struct list dirty;    // classes that changed
    struct list sharing;  // classes whose rates are reckoned anew,
    struct list reached;  // their links,
    struct list unfilled; // and those of them that have unfrozen flows
    uint64_t order, mark;
    bool is_out_of_memory;
};

/* A class goes on at another rate. */
void flows_set_rate(struct flows *flows, uint32_t index, double rate, double now);

/* A class without flows is no longer at its links. */
void flows_leave_links(struct flows *flows, uint32_t index);

#endif
