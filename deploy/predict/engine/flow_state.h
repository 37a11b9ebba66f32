/* What flows are: for the files that have a part of them. `flows` has when they begin and end, and
 * `flow_rates` how fast they are. */
#ifndef DEPLOY_PREDICT_ENGINE_FLOW_STATE_H
#define DEPLOY_PREDICT_ENGINE_FLOW_STATE_H

#include "deploy/predict/basis/network.h"
#include "deploy/predict/engine/array.h"
#include "deploy/predict/engine/heap.h"

#include <float.h>
#include <stdbool.h>
#include <stdint.h>

/* A token bucket (flow_bursts.h). */
struct flow_burst {
    double depth; // bytes; 0: none pass at once
    double given; // bytes, without those that its bandwidth has had the time for, until `since`
    double since;
    int expected; // flows that begin soon, and have their share of it
};

struct flow {
    struct heap_key end; // `served` of its class when it ends
    uint32_t token;
};

#define FLOW_LIMIT_NONE UINT32_MAX    // no link limits a class: it has no rate, or all it may have
#define FLOW_LEVEL_NONE DBL_MAX       // of a link that limits no class
#define FLOW_NO_LIMIT   (DBL_MAX / 4) // the most that a flow may have, where only links limit it

/* What sharing looks at, of each class that a link has. It looks at many, so this is apart from the
 * rest of a class: that of thousands fits in a core's cache. */
struct flow_pace {
    double rate;
    double each;    // flows that one stands for
    uint64_t mark;  // of the last sharing that changed its rate
    uint32_t count; // of flows
    uint32_t limit; // the link that gives it its rate
};

/* What sharing looks at of a class comes first here and below, so that it is in one line of a
 * cache, or two. */
struct flow_class {
    double since;          // when it got its rate
    double before;         // its rate before this sharing, if that has changed it
    double served;         // bytes of each flow, until then
    struct heap_key first; // when its first flow ends; unless it has none
    bool is_dirty;         // is in the list of those that changed
    bool is_listed;        // at its links
    uint32_t link_count;
    uint32_t links[NETWORK_ROUTE_MAX];  // those that may be full
    uint32_t places[NETWORK_ROUTE_MAX]; // in the lists of these links
    struct flow *flows;                 // a heap, owned
    uint32_t room, shared_count;        // of flows; shared: when rates were given last
    double most;                        // bytes per second of one flow
    double ends;                        // sum of those of its flows
    uint32_t next;                      // in its chain of the table, class + 1
};

struct link_state {
    double bandwidth;  // that the job has of it
    double load;       // the sum of all flows' rates
    double level;      // the rate of the classes that it limits
    uint32_t *classes; // (count) that have flows; owned
    uint32_t count, room;
    uint32_t limited; // how many of these it limits
    uint32_t sharing; // while it is open: how many of these want `parted` or more,
    double sharers;   // the flows that they stand for,
    double free;      // what the others leave them of the bandwidth,
    double parted;    // and the rate that parts the two
    double next;      // its level from now on, or a lower bound of it
    uint64_t mark;    // of the last sharing in which it was open
    bool is_found;    // `next` is its level
    struct flow_burst burst;
};

struct flows {
    const struct network *network;
    double most;                // bytes per second of one flow, where loss allows it
    bool has_limits;            // classes whose flows have less
    bool has_bursts;            // links that let some bytes pass at once
    struct flow_class *classes; // (class_count) owned, as all others
    struct flow_pace *paces;    // (class_count)
    struct heap_entry *heap;    // (heap_count) classes that have a first flow to end, by that
    uint32_t *heap_places;      // (class_count) of each class in it
    uint32_t heap_count;
    uint32_t class_count, class_room;
    uint32_t *table; // chains of classes, by their links
    uint32_t table_size;
    struct link_state *links;
    struct list dirty;        // classes that may have changed
    struct list changed;      // classes whose rates this sharing has changed
    struct heap_entry *queue; // (queue_count) open links that have a turn still, by level
    uint32_t *queue_places;   // (links of the network) of each link in it
    uint32_t queue_count;
    double filled;       // the level of this turn: lower ones do not change any more
    uint64_t order;      // of the next flow
    uint64_t mark;       // of this sharing
    double listed_bytes; // of the lists of flows, of all classes, and of those of classes
    bool is_out_of_memory;
};

/* A class goes on at another rate. When its first flow ends is not known before flows_find_end. */
void flows_set_rate(struct flows *flows, uint32_t index, double rate, double now);

/* Reckons anew when the first flow of a class ends, if its rate is another one from now on. */
void flows_find_end(struct flows *flows, uint32_t index, double now);

/* That link gives a class its rate from now on. */
void flows_set_limit(struct flows *flows, uint32_t index, uint32_t limit);

/* A class without flows is no longer at its links. */
void flows_leave_links(struct flows *flows, uint32_t index);

#endif
