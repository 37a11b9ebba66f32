/* How a link gets to know the other workers and servers: TRY, START and GO. For the communication
 * thread. */
#ifndef WORKER_LINK_LINK_PHASES_H
#define WORKER_LINK_LINK_PHASES_H

#include "common/channel/wire.h"
#include "worker/link/link_state.h"

#include <stdbool.h>

/* TRY: maps the memory of the others if that is what is tried, and measures the path to the next
 * one. Answers with TRIED, now or after some PROBEs. */
enum status link_try(struct link *link, const struct message *message);

/* A PROBE of another worker. */
enum status link_probe(struct link *link, uint64_t peer, const struct message *message);

/* START: a phase begins; says that it is connected. post_ready is the exchange's. */
enum status link_begin_phase(struct link *link, const struct message *message,
                             void (*post_ready)(void *context, uint32_t bucket));

/* GO: everybody is ready for the phase. */
enum status link_run_phase(struct link *link);

/* What values travel over in the phase, to and from all with whom this worker exchanges: a sum of
 * enum wire_transport. 0 if there is nobody, and before the first phase. */
uint32_t link_transports(const struct link *link);

#endif
