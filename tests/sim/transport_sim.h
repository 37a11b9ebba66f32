/* What network.c and transport_sim.c share: a transport as the network sees it, and its messages.
 */
#ifndef TESTS_SIM_TRANSPORT_SIM_H
#define TESTS_SIM_TRANSPORT_SIM_H

#include "common/base/departures.h"
#include "common/transport/transport.h"
#include "tests/sim/network.h"

/* The bytes of a message; header and payload are allocated. */
struct parcel {
    struct parcel *next; // of an inbox, or of what waits
    uint64_t peer;       // as the receiver calls the sender
    void *header, *payload;
    size_t header_size, payload_size;
};

struct transport {
    struct transport *next; // of the network
    struct sim_process *process;
    struct parcel *first, *last; // the inbox
    bool is_woken;
    bool notes_departures;
    struct departures departures;
};

void parcel_destroy(struct parcel *parcel); // NULL is fine

void network_add(struct network *network, struct transport *transport);

/* Closes what it has, orderly: what was sent still arrives. */
void network_remove(struct network *network, struct transport *transport);

/* Who connects to this name from now on gets there. */
void network_listen(struct network *network, struct transport *transport, const char *endpoint);
uint32_t network_new_port(struct network *network);

/* Returns what the transport calls the other side. */
uint64_t network_connect(struct network *network, struct transport *transport,
                         const char *endpoint);

/* Closes it on the side that calls the other one by this number. */
void network_disconnect(struct network *network, struct transport *transport, uint64_t peer);

/* As transport_send. */
enum status network_send(struct network *network, const struct transport *transport, uint64_t peer,
                         const struct parcel *header, const struct payload *payload);

bool network_is_connected(const struct network *network, const struct transport *transport,
                          uint64_t peer);
bool network_has_left(const struct network *network, const struct transport *transport,
                      uint64_t peer);

#endif
