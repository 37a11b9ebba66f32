/* How a job, or a phase of it, begins: what workers have to find out, where everybody is, and GO.
 */
#ifndef PS_SERVER_COORDINATOR_COORDINATOR_STATES_H
#define PS_SERVER_COORDINATOR_COORDINATOR_STATES_H

#include "ps-server/coordinator/coordinator.h"

#include <stdint.h>

/* Asks workers what is possible between them. */
void connecting_try(struct coordinator *coordinator, uint64_t now_ms);

/* Begins a phase: tells everybody where the others are. */
void connecting_start(struct coordinator *coordinator, uint64_t now_ms);

/* Everybody can take data messages. */
void connecting_go(struct coordinator *coordinator, uint64_t now_ms);

#endif
