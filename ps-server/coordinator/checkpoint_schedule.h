/* When a checkpoint is due that follows from time: those of --checkpoint-every MINUTESm, and those
 * for memory alone. Also how long the end of the job waits for its last one. Pure.
 *
 * The coordinator names a step ahead of everybody, by the pace so far. One that turns out to be too
 * near for somebody is named anew, further ahead. */
#ifndef PS_SERVER_COORDINATOR_CHECKPOINT_SCHEDULE_H
#define PS_SERVER_COORDINATOR_CHECKPOINT_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

struct checkpointing;
struct coordinator;
struct sender;

/* Training begins. */
void checkpoint_schedule_begin(struct coordinator *coordinator, uint64_t now_ms);

/* Several times a second: asks members for the next one, if it is due. */
void checkpoint_schedule_tick(struct coordinator *coordinator, uint64_t now_ms);

/* The checkpoint of a step has ended, well or not. */
void checkpoint_schedule_note(struct coordinator *coordinator, uint64_t step, uint64_t now_ms);

/* Whether the checkpoint of a step is one of those that --checkpoint-every asks for. */
bool checkpoint_schedule_is_for_disk(const struct checkpointing *checkpointing, uint64_t step);

/* Whether the end of the job has to wait for a checkpoint, which it does for half of --stall-fail
 * at most. */
bool checkpoint_schedule_awaits_last(struct coordinator *coordinator, uint64_t now_ms);

/* Several times a second, where the coordinator's own absence has been excused: ends that wait. */
void checkpoint_schedule_judge_last(struct coordinator *coordinator, uint64_t now_ms);

/* Whether the end of the job waits for something that this member has not sent. */
bool checkpoint_schedule_lacks(const struct coordinator *coordinator, const struct sender *member);

/* Says that the job ends without its last checkpoint, and ends the wait for it. */
void checkpoint_schedule_give_up_last(struct coordinator *coordinator, const char *why);

#endif
