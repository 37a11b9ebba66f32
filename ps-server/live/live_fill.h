/* Turns what the coordinator knows, and what ranks report, into a live state. Pure. */
#ifndef PS_SERVER_LIVE_LIVE_FILL_H
#define PS_SERVER_LIVE_LIVE_FILL_H

#include "common/live/live_state.h"
#include "ps-server/coordinator/coordinator.h"

#include <stdint.h>

/* What does not change in a job. */
void live_fill_job(struct live_state *state, const struct job *job);

/* Training begins, or goes on in another phase: what follows from members. */
void live_fill_start(struct live_state *state, const struct coordinator *coordinator);

/* REPORT of an interval. */
void live_fill_report(struct live_state *state, uint32_t rank, const struct message *message);

/* A period is closed. */
void live_fill_period(struct live_state *state, const struct coordinator *coordinator,
                      uint32_t period);

/* The job goes on at an earlier step. */
void live_fill_go_on(struct live_state *state, const struct coordinator *coordinator);

/* What follows from all ranks, and from members that were lost or came: the state as it is now. If
 * training has gone on since the last call, a point is added to the curve of progress. */
void live_fill_now(struct live_state *state, const struct coordinator *coordinator,
                   uint64_t now_ms);

/* The verdict is known. */
void live_fill_end(struct live_state *state, const struct coordinator *coordinator);

#endif
