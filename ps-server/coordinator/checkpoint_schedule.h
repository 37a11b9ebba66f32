/* When a checkpoint is due that follows from time: those of --checkpoint-every MINUTESm, and those
 * for memory alone. Pure.
 *
 * The coordinator names a step ahead of everybody, by the pace so far. One that turns out to be too
 * near for somebody is named anew, further ahead. */
#ifndef PS_SERVER_COORDINATOR_CHECKPOINT_SCHEDULE_H
#define PS_SERVER_COORDINATOR_CHECKPOINT_SCHEDULE_H

#include <stdint.h>

struct coordinator;

/* Training begins. */
void checkpoint_schedule_begin(struct coordinator *coordinator, uint64_t now_ms);

/* Several times a second: asks members for the next one, if it is due. */
void checkpoint_schedule_tick(struct coordinator *coordinator, uint64_t now_ms);

/* The checkpoint of a step has ended, well or not. */
void checkpoint_schedule_note(struct coordinator *coordinator, uint64_t step, uint64_t now_ms);

#endif
