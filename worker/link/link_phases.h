/* Handles TRY, START and GO, by which a link meets the other workers and servers. For the
 * communication thread. */
#ifndef WORKER_LINK_LINK_PHASES_H
#define WORKER_LINK_LINK_PHASES_H

#include "common/channel/wire.h"
#include "worker/link/link_state.h"

#include <stdbool.h>

#define LINK_RANKS_BYTES 64

/* "ranks 2 to 3 of 4": those of the job that this process carries. */
void link_describe_ranks(const struct link *link, char ret_text[LINK_RANKS_BYTES]);

/* TRY: maps the other workers' memory if that is to be tried, and measures the path to the next
 * one. Answers with TRIED, at once or after some PROBEs. */
enum status link_try(struct link *link, const struct message *message);

/* Handles another worker's PROBE. */
enum status link_probe(struct link *link, uint64_t peer, const struct message *message);

/* START: begins a phase, and says that this worker is connected. The exchange gets post_ready. */
enum status link_begin_phase(struct link *link, const struct message *message,
                             void (*post_ready)(void *context, uint32_t first, uint32_t count));

/* GO: all members are ready for the phase. */
enum status link_run_phase(struct link *link);

/* Before a heartbeat: looks whether a connection was closed that the phase uses. */
void link_note_broken(struct link *link, uint64_t now_ms);

/* Returns the transports that values take in the phase, between this worker and all that it
 * exchanges with: a sum of enum wire_transport. 0 if there are none, and before the first phase. */
uint32_t link_transports(const struct link *link);

#endif
