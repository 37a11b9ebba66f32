/* Connections between simulated processes, and what may happen to them.
 *
 * A connection keeps the order of its messages, as TCP does. Messages to a host that is cut off
 * wait until it is reached again, as TCP sends them again and again. A process that ends closes its
 * connections: what it has sent and the kernel has read still arrives, then the other side hears of
 * the end. A connection may also break between two that live: both hear of the end then, and what
 * was on its way is lost. */
#ifndef TESTS_SIM_NETWORK_H
#define TESTS_SIM_NETWORK_H

#include "tests/sim/world.h"

#include <stdbool.h>
#include <stdint.h>

#define NETWORK_HOSTS_MAX 16

struct network;

struct network *network_create(void);
void network_destroy(struct network *network); // NULL is fine

/* Of the world. */
void network_process_ended(struct network *network, const struct sim_process *process);

/* From now on messages of one host to another wait, or travel again. */
void network_cut(struct network *network, uint32_t from, uint32_t to);
void network_heal(struct network *network, uint32_t from, uint32_t to);

/* The connections between two hosts break, as if a firewall had forgotten them. Whoever wants to be
 * heard has to connect again, and is somebody else then. */
void network_break(struct network *network, uint32_t host, uint32_t other);

/* Messages that have arrived so far, and their bytes. */
uint64_t network_message_count(const struct network *network);
uint64_t network_bytes(const struct network *network);

#endif
