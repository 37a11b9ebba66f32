/* The network that a prediction assumes: a JSON file that people can write
 * (docs/PREDICT-FILES.md).
 *
 * Hosts are leaves of a tree of switches. Every host and every switch has a link up and one down,
 * to what is above it; processes of one host share its memory, which is a link as well. */
#ifndef DEPLOY_PREDICT_BASIS_NETWORK_H
#define DEPLOY_PREDICT_BASIS_NETWORK_H

#include "common/base/status.h"
#include "deploy/predict/basis/conditions.h"
#include "deploy/predict/basis/network_pacing.h"

#include <jansson.h>

#include <stdbool.h>
#include <stdint.h>

#define NETWORK_NAME_BYTES   64
#define NETWORK_HOSTS_MAX    (16384 + 256) // of the most workers and servers
#define NETWORK_SWITCHES_MAX 4096
#define NETWORK_DEPTH_MAX    8                           // switches above a host
#define NETWORK_ROUTE_MAX    (2 * NETWORK_DEPTH_MAX + 2) // links
#define NETWORK_NONE         UINT32_MAX

struct network_link {
    char name[NETWORK_NAME_BYTES + 16];
    double bandwidth;  // bytes per second; 0: no limit
    double background; // of it, that others always use
    double loss;       // share of packets
    double burst;      // bytes that pass at once where it was idle before
    bool may_saturate; // false: all that can come to it is no more than it carries
};

struct network_switch {
    char name[NETWORK_NAME_BYTES];
    uint32_t above, up, down;    // a switch, links; NETWORK_NONE at the top
    double latency_s;            // of its links to what is above
    double bandwidth;            // to what is above; 0: no limit
    double oversubscription;     // or: what is below it has so many times that; 0: not said
    struct network_link traffic; // of others, and loss
};

struct network_host {
    char name[NETWORK_NAME_BYTES], machine_name[NETWORK_NAME_BYTES]; // "": a machine of its own
    uint32_t above, up, down, memory;                                // a switch, and links
    uint32_t workers, servers;                                       // places for processes
    uint32_t cores;   // of its machine; 0: not said, and nobody waits for one
    uint32_t machine; // the first host on it: itself, unless some share one
    double latency_s, memory_latency_s;
};

struct network {
    struct network_host *hosts; // owned, as the others
    struct network_switch *switches;
    struct network_link *links;
    uint32_t host_count, switch_count, link_count;
    double flow_bandwidth;                 // of one connection between hosts; 0: no limit
    double send_buffer;                    // bytes of one connection that nothing overtakes
    double bandwidth_error, latency_error; // standard errors, as shares; 0: not known
    struct network_pacing pacing;          // what links let pass at once
    bool has_server_places;                // otherwise servers run beside workers
    bool is_measured;                      // the file says from what,
    struct conditions conditions;          // and under what
};

/* Of the object that a file has; messages call it by the name. Logs what is wrong. network_finish
 * frees it. */
enum status network_take(json_t *object, const char *name, struct network *ret_network);

/* Reads a file; otherwise the same. */
enum status network_read(const char *file, struct network *ret_network);
void network_finish(struct network *network);

/* A copy with lists of its own. network_finish frees it, also behind STATUS_NO_MEMORY. */
enum status network_copy(const struct network *network, struct network *ret_copy);

/* Gives the links of switches what follows from the bandwidths of hosts and switches, after a
 * change of these. STATUS_INVALID if others use all of a link, which is logged. */
enum status network_relink(struct network *network);

/* Where processes run: the workers, then the servers, in the order of the hosts. Servers without
 * places of their own go to the hosts of the workers, one after the other. Logs if there are not
 * enough places. */
enum status network_place(const struct network *network, uint32_t workers, uint32_t servers,
                          uint32_t *ret_hosts);

struct network_route {
    uint32_t links[NETWORK_ROUTE_MAX];
    uint32_t link_count;
    double latency_s;      // one way
    double flow_bandwidth; // that one connection has at most; 0: no limit
};

#define NETWORK_SEGMENT_BYTES 1448.0 // of an Ethernet frame, behind headers and a timestamp

/* Bytes per second that one connection has at most, if its path loses such a share of the packets
 * and a round trip takes so long: a window of
 *
 *     max(1.054 (RTT / loss)^(3/4), (3/2 / loss)^(1/2))
 *
 * segments each round trip: CUBIC (RFC 9438, section 5.1, with C = 0.4 and beta = 0.7) and its
 * Reno-friendly region (Mathis et al. 1997). 0: no limit. */
double network_loss_limit(double loss, double rtt_s);

/* What the job has of a link: what others leave of it, without what is sent again. 0: no limit. */
double network_free(const struct network_link *link);

/* Whether any link lets bytes pass at once (burst-kib): who comes first has them. */
bool network_has_bursts(const struct network *network);

/* The links from a host to another, or within one. */
void network_find_route(const struct network *network, uint32_t from, uint32_t to,
                        struct network_route *ret_route);

/* How many switches are on the way from a host up to where another branches off; 0: it is the same.
 */
uint32_t network_distance(const struct network *network, uint32_t from, uint32_t to);

#endif
